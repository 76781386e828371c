package cli

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/driver/jetstream"
)

// natsFlags say which NATS servers keep a cluster's log, if not those within its nodes.
type natsFlags struct {
	urls          []string
	creds, caFile string
}

func (f *natsFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.urls, "nats", nil, "`URL,...` of NATS servers with JetStream that keep the log, such as nats://10.0.1.1:4222 (default: those within the nodes)")
	flags.StringVar(&f.creds, "nats-creds", "", "`file` with the credentials for --nats")
	flags.StringVar(&f.caFile, "nats-ca", "", "`file` with the certificates that sign those of --nats, as PEM (default: the system's)")
}

// external reports whether the servers are not those within the nodes.
func (f *natsFlags) external() bool { return len(f.urls) > 0 }

// check checks the flags. Its errors show no password.
func (f *natsFlags) check() error {
	if !f.external() && (f.creds != "" || f.caFile != "") {
		return usageError{errors.New("--nats-creds and --nats-ca without --nats: expected the URL of a server")}
	}
	for _, one := range f.urls {
		u, err := url.Parse(one)
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return usageError{fmt.Errorf("--nats %q: expected a URL such as nats://10.0.1.1:4222 or tls://10.0.1.1:4222", withoutSecrets(one))}
		}
	}
	return nil
}

// lead makes a driver's options lead to the servers.
func (f *natsFlags) lead(o *jetstream.Options) {
	o.URLs, o.Credentials, o.RootCA = f.urls, f.creds, f.caFile
}
