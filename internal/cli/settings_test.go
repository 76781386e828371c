package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestWithoutSecrets(t *testing.T) {
	for value, want := range map[string]string{
		"sqlite":                        "sqlite",
		"/var/lib/kuji?a=b":             "/var/lib/kuji?a=b",
		"postgres://db/kuji":            "postgres://db/kuji",
		"postgres://ann:s3cret@db/kuji": "postgres://ann:xxxxx@db/kuji",
		"postgres://db/kuji?user=ann&password=s3cret&sslmode=verify-full": "postgres://db/kuji?user=ann&password=xxxxx&sslmode=verify-full",
		"postgres://db/kuji?p%61ssword=s3cret&sslPassword=s":              "postgres://db/kuji?p%61ssword=xxxxx&sslPassword=xxxxx",
		"postgres://ann:s3%cret@db/kuji":                                  "postgres://xxxxx",
		"postgres://ann@db/kuji":                                          "postgres://ann@db/kuji",
		"nats://s3cret@10.0.0.1:4222":                                     "nats://xxxxx@10.0.0.1:4222",
		"https://traces.example/v1?api-key=s3cret":                        "https://traces.example/v1?api-key=xxxxx",
		"https://traces.example?s3cret":                                   "https://traces.example?xxxxx",
		"https://s3cret@traces.example":                                   "https://xxxxx@traces.example",
		"https://traces.example/#s3cret":                                  "https://traces.example/#xxxxx",
		"host=db password='s3 cret' dbname=kuji":                          "host=db password=xxxxx dbname=kuji",
		"host=db PASSWORD = s3cret":                                       "host=db PASSWORD = xxxxx",
	} {
		if got := withoutSecrets(value); got != want {
			t.Errorf("withoutSecrets(%q) = %q, want %q", value, got, want)
		}
	}
}

// TestSettingsHideSecrets: whatever flag a secret stands in, the log at the start does not have it.
func TestSettingsHideSecrets(t *testing.T) {
	cmd := serveCommand(&app{})
	for _, secret := range []string{"https://ann:s3cret@host/?a=s3cret#s3cret", "https://s3cret@host/?s3cret", "host=db password=s3cret"} {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { _ = flag.Value.Set(secret) })
		var said bytes.Buffer
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { fprintf(&said, "%s: %v\n", flag.Name, shown(flag)) })
		if strings.Contains(said.String(), "s3cret") || !strings.Contains(said.String(), "xxxxx") {
			t.Errorf("%s: %s", secret, said.String())
		}
	}
}
