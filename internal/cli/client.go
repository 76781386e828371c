package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuji-dev/kuji/client"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// defaultAddress is where serve listens and clients look, unless told otherwise.
const defaultAddress = "127.0.0.1:7700"

// maxSecret bounds a file with a key or with secrets, in bytes.
const maxSecret = 4096

// connection is what the settings say of how to reach a server.
type connection struct {
	app      *app
	settings *settings
	server   string
	context  string
	key      string
	keyFile  string
	ca       string
	realm    string
	timeout  time.Duration

	serverFlag string // the flag that server comes from, where that is not --server
}

// connection adds the flags of every command that talks to a server.
func (a *app) connection(flags *pflag.FlagSet) *connection {
	c := &connection{app: a, settings: newSettings(flags, a.getenv)}
	flags.StringVar(&c.server, "server", "", "`URL` of the server, or of several nodes of a cluster, with commas (default: that of the context in use, else http://"+defaultAddress+")")
	flags.StringVar(&c.context, "context", "", "`name` of the server's context: see \"kuji context --help\"")
	flags.StringVar(&c.key, "key", "", "API `key`; other users of this machine can see it, so prefer --key-file (default $KUJI_KEY)")
	flags.StringVar(&c.keyFile, "key-file", "", "`file` that holds the API key and nothing else")
	flags.StringVar(&c.ca, "tls-ca", "", "`file` with the certificates (PEM) to trust, instead of the system's")
	flags.StringVar(&c.realm, "realm", "default", "`name` of the realm")
	flags.DurationVar(&c.timeout, "timeout", 10*time.Second, "how long to try, including retries")
	return c
}

// run returns what a command does once it has a client.
func (c *connection) run(do func(ctx context.Context, c *api, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		made, err := c.dial()
		if err != nil {
			return err
		}
		return do(cmd.Context(), made, args)
	}
}

// online completes a command that talks to a server.
func (a *app) online(cmd *cobra.Command, do func(ctx context.Context, c *api, args []string) error) *cobra.Command {
	cmd.RunE = a.connection(cmd.Flags()).run(do)
	return cmd
}

// allRealms makes all realms the default of --realm.
func (c *connection) allRealms() *connection {
	realm := c.settings.flags.Lookup("realm")
	realm.Usage, realm.DefValue = "`name` of the only realm (default: all)", ""
	return c
}

// notWith refuses --server next to a flag that names what is read in its place.
func (c *connection) notWith(flag string) error {
	if c.settings.given("server") {
		return usagef("--%s and --server: expected only one of them", flag)
	}
	return nil
}

// only returns the realm that --realm names, "" if it names none.
func (c *connection) only() string {
	if !c.settings.given("realm") {
		return ""
	}
	return c.realm
}

// settle completes the flags from variables and, unless a flag or a variable names the server, the context.
func (c *connection) settle() error {
	s := c.settings
	if err := errors.Join(s.either("server", "context"), s.either("key", "key-file"), s.fromVariables("tls-ca", "realm", "timeout")); err != nil {
		return err
	}
	if s.given("server") {
		return nil
	}
	all, err := loadContexts(c.app)
	if err != nil {
		return err
	}
	name := cmp.Or(c.context, all.Current)
	if name == "" {
		c.server = "http://" + defaultAddress
		return nil
	}
	one, err := all.get(name)
	if err != nil {
		return err
	}
	if s.given("key") {
		one.KeyFile = ""
	}
	for flag, value := range map[string]string{"key-file": one.KeyFile, "tls-ca": one.CA, "realm": one.Realm, "server": one.Server} {
		if value != "" {
			err = errors.Join(err, s.set(flag, value, "context "+name+": "+flag))
		}
	}
	return err
}

// api is a connection made, and the realm that it is about.
type api struct {
	*client.Client
	kujiv1connect.AdminServiceClient
	realm string
}

func (c *connection) dial() (*api, error) {
	if err := c.settle(); err != nil {
		return nil, err
	}
	if c.timeout <= 0 {
		return nil, usagef("%s %v: expected more than 0", c.settings.said("timeout"), c.timeout)
	}
	o := client.Options{Timeout: c.timeout, Retry: func(err error) { c.app.note("kuji: %v; trying again for %v", err, c.timeout) }}
	var err error
	if o.Key, err = c.apiKey(); err != nil {
		return nil, err
	}
	if o.TLS, err = c.app.trust(c.ca); err != nil {
		return nil, err
	}
	made, err := client.New(strings.Split(c.server, ","), o)
	if err != nil {
		return nil, usagef("%s %w", cmp.Or(c.serverFlag, c.settings.said("server")), err)
	}
	return &api{made, made.Admin, c.realm}, nil
}

// trust returns the settings of TLS that trust the certificates in a file; nil: the system's.
func (a *app) trust(ca string) (*tls.Config, error) {
	if ca == "" {
		return nil, nil
	}
	pem, err := a.readFile(ca, 1<<20)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usagef("--tls-ca %s holds no certificate in PEM form", ca)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func (c *connection) apiKey() (string, error) {
	if c.keyFile == "" {
		return c.key, nil
	}
	return c.app.readKey(c.settings.said("key-file"), c.keyFile)
}

// readKey reads a file that holds one key. said names what names the file.
func (a *app) readKey(said, file string) (string, error) {
	data, err := a.readFile(file, maxSecret)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(data))
	if key == "" || strings.ContainsAny(key, " \t\r\n") {
		return "", usagef("%s %s: expected one key and nothing else", said, file)
	}
	return key, nil
}
