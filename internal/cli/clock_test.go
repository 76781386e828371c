package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// TestServeConfirmsClock: a server does not start with a clock that is far ahead of a log, says how
// it would, and does when the time is confirmed. A clock that is behind the log is a warning.
func TestServeConfirmsClock(t *testing.T) {
	dir := t.TempDir()
	create := func(apart time.Duration, confirmed time.Time) {
		t.Helper()
		engine, err := kuji.Open(dir, kuji.Options{Now: func() time.Time { return time.Now().Round(0).Add(apart) }, ClockConfirmed: confirmed})
		if err != nil {
			t.Fatal(err)
		}
		realm, err := engine.Realm("default")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := realm.SetClock(t.Context(), time.Now().Add(apart), "", "for a test"); err != nil {
			t.Fatal(err)
		}
		if err := engine.Close(); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(want exitCode, more ...string) string {
		t.Helper()
		var out, said bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &said, getenv: func(string) string { return "" }}
		if code := a.run(t.Context(), append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0", "--until-eof", "--log-level", "warn"}, more...)); code != want {
			t.Fatalf("exit code %d, want %d: %s", code, want, said.String())
		}
		return said.String()
	}
	create(-kuji.MaxDowntime-time.Hour, time.Time{})
	if said := serve(exitRefused); !strings.Contains(said, "--confirm-clock 20") {
		t.Errorf("a clock that is far ahead: %q", said)
	}
	serve(exitRefused, "--confirm-clock", "2020-01-01T00:00:00Z")
	serve(exitUsage, "--confirm-clock", "yes")
	if said := serve(exitOK, "--confirm-clock", time.Now().UTC().Format(time.RFC3339)); said != "" {
		t.Errorf("confirmed: %q", said)
	}
	if said := serve(exitOK); said != "" {
		t.Errorf("the next time: %q", said)
	}
	create(24*time.Hour, time.Time{})
	if said := serve(exitOK); !strings.Contains(said, "level=WARN") || !strings.Contains(said, "realm=default") {
		t.Errorf("a log that is ahead: %q", said)
	}
}
