package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

const (
	adminKey = "test-key-of-the-admin"
	writeKey = "test-key-of-the-game"
	readKey  = "test-key-of-the-dashboard"
)

func keyLine(t testing.TB, role, key, name string) string {
	t.Helper()
	line, err := server.KeyLine(role, key, name)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func writeKeys(t testing.TB, path string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func keyFile(t testing.TB) *server.Keys {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, "# keys of the test", "", keyLine(t, "admin", adminKey, "ops"),
		"  "+keyLine(t, "write", writeKey, "game server 1"), keyLine(t, "read", readKey, ""))
	k, err := server.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	if k.Len() != 3 {
		t.Fatalf("%d keys, want 3", k.Len())
	}
	return k
}

func TestKeyFileErrors(t *testing.T) {
	good := keyLine(t, "read", "k", "")
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "no key"},
		{"comments only", "# admin\n\n", "no key"},
		{"unknown role", "root " + strings.Repeat("ab", 32), `line 1: role "root"`},
		{"one field", good + "\nadmin", "line 2: got 1 fields"},
		{"short hash", "admin abcd", "64 hexadecimal digits"},
		{"long hash", "admin " + strings.Repeat("ab", 33), "64 hexadecimal digits"},
		{"not hex", "admin " + strings.Repeat("zz", 32), "64 hexadecimal digits"},
		{"twice", good + "\n" + good, "line 2"},
		{"too many", strings.Repeat(good+"\n", server.MaxKeys+1), "line 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			writeKeys(t, path, tt.text)
			_, err := server.LoadKeys(path)
			if !errors.Is(err, server.ErrKeys) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want ErrKeys with %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "zz") {
				t.Error("the error repeats what may be a key")
			}
		})
	}
	if _, err := server.LoadKeys(filepath.Join(t.TempDir(), "none")); !errors.Is(err, server.ErrKeys) {
		t.Errorf("missing file: %v, want ErrKeys", err)
	}
	if _, err := server.KeyLine("read", "k", "two\nlines"); err == nil {
		t.Error("a name of two lines makes a line")
	}
	if _, err := server.KeyLine("owner", "k", ""); err == nil {
		t.Error("an unknown role makes a line")
	}
	if _, err := server.KeyLine("read", strings.Repeat("k", server.MaxKeyBytes+1), ""); err == nil {
		t.Error("a key that no request can present makes a line")
	}
	if a, b := server.NewKey(), server.NewKey(); a == b || len(a) < 40 {
		t.Errorf("keys %q and %q", a, b)
	}
}

func TestReload(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, keyLine(t, "write", "old", ""))
	keys, err := server.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, server.Options{Keys: keys})
	draw := func(key string) connect.Code {
		_, err := newClient("", h1(t), f.url, withKey(key)).reward.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "free"})
		if err == nil {
			return 0
		}
		return connect.CodeOf(err)
	}
	if got := draw("old"); got != 0 {
		t.Fatalf("before: %v", got)
	}
	writeKeys(t, path, "broken")
	if err := keys.Reload(); !errors.Is(err, server.ErrKeys) {
		t.Fatalf("broken file: %v", err)
	}
	if got := draw("old"); got != 0 {
		t.Errorf("after a failed reload the old key gets %v", got)
	}
	writeKeys(t, path, keyLine(t, "write", "new", ""))
	if err := keys.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := draw("old"); got != connect.CodeUnauthenticated {
		t.Errorf("after the reload the old key gets %v", got)
	}
	if got := draw("new"); got != 0 {
		t.Errorf("after the reload the new key gets %v", got)
	}
}
