package server_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

const (
	adminKey = "test-key-of-the-admin"
	writeKey = "test-key-of-the-game"
	readKey  = "test-key-of-the-dashboard"
)

// keyLine returns the line of a key that may read, write (and read) or do everything, and grant
// without request ids. For the default see TestGrantsNeedIDs.
func keyLine(t testing.TB, role, key, name string, options ...string) string {
	t.Helper()
	if role == "write" {
		role = strings.Join(allCommands, ",")
	}
	if role == "admin" || strings.Contains(role, "grant") {
		options = append(options, "ids=optional")
	}
	line, err := access.KeyLine(role, key, cmp.Or(name, key), options...)
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

func keyFile(t testing.TB) *access.Keys {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, "# keys of the test", "", keyLine(t, "admin", adminKey, "ops"),
		"  "+keyLine(t, "write", writeKey, "game-server-1"), keyLine(t, "read", readKey, ""))
	k, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	if k.Len() != 3 {
		t.Fatalf("%d keys, want 3", k.Len())
	}
	return k
}

func TestKeyFileErrors(t *testing.T) {
	good, hash := keyLine(t, "read", "k", ""), strings.Repeat("ab", 32)
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "read %064x k%d\n", i, i)
		}
		return b.String()
	}
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "no key"},
		{"comments only", "# admin\n\n", "no key"},
		{"unknown command", "write " + hash + " a", `line 1: command "write", want some of read, draw, redeem, register, grant`},
		{"no command", "read,, " + hash + " a", `line 1: command ""`},
		{"two fields", good + "\nadmin " + hash, "line 2: got 2 fields"},
		{"short hash", "admin abcd a", "64 hexadecimal digits"},
		{"long hash", "admin " + hash + "ab a", "64 hexadecimal digits"},
		{"not hex", "admin " + strings.Repeat("zz", 32) + " a", "64 hexadecimal digits"},
		{"twice", good + "\n" + strings.TrimSuffix(good, "k") + "other", "line 2: the same hash"},
		{"same name", good + "\nread " + hash + " k", `line 2: another line has the name "k"`},
		{"long name", "read " + hash + " " + strings.Repeat("n", kuji.MaxBy+1), "want at most 64 bytes"},
		{"name that is an option", "read " + hash + " realms=a", "without ="},
		{"unknown option", good + " colour=red", `option "colour"`},
		{"option without value", good + " realms=", `option "realms="`},
		{"option twice", good + " rate=1 rate=2", `option "rate=2"`},
		{"empty pool", good + " pools=a,,b", "pools=a,,b: want names"},
		{"no rate", good + " rate=0", "rate=0: want 1 to 1000000"},
		{"grants of who may not grant", good + " grants=gem:1", `option "grants"`},
		{"ids of who may not grant", good + " ids=optional", `option "ids"`},
		{"other ids", "grant " + hash + " a ids=none", "want ids=optional"},
		{"no quantity", "grant " + hash + " a grants=gem", "grants=gem: want item:N or item:N/M"},
		{"nothing in a request", "grant " + hash + " a grants=gem:0", "want item:N"},
		{"less in a day than in a request", "grant " + hash + " a grants=gem:1/5,sword:5/1", "grants=sword:5/1: want"},
		{"an item twice", "grant " + hash + " a grants=gem:1,gem:2", "each item once"},
		{"a day of nothing", "admin " + hash + " a grants=*:1/", "want item:N"},
		{"too many", many(access.MaxKeys + 1), "line 1025: more than 1024 keys"},
		{"players who grant", "grant jwks=players.json p algs=ES256", "not grant"},
		{"players who settle", "join,settle jwks=players.json p algs=ES256", "not settle"},
		{"players who unlink", "link,unlink jwks=players.json p algs=ES256", "not unlink"},
		{"players who report progress", "progress jwks=players.json p algs=ES256", "not progress"},
		{"players who are admin", "admin jwks=players.json p algs=ES256", "not admin"},
		{"no algorithm", "draw jwks=players.json p", "no algs="},
		{"shared secret", "draw jwks=players.json p algs=HS256", `algorithm "HS256"`},
		{"none", "draw jwks=players.json p algs=none", `algorithm "none"`},
		{"no jwks", "draw jwks=players.json p algs=ES256", "players.json"},
		{"jwks in plain text", "draw jwks=http://example.com/keys p algs=ES256", "want an https:// URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			writeKeys(t, path, tt.text)
			_, err := access.LoadKeys(path)
			if !errors.Is(err, access.ErrKeys) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want ErrKeys with %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "zz") {
				t.Error("the error repeats what may be a key")
			}
		})
	}
	if _, err := access.LoadKeys(filepath.Join(t.TempDir(), "none")); !errors.Is(err, access.ErrKeys) {
		t.Errorf("missing file: %v, want ErrKeys", err)
	}
	if _, err := access.KeyLine("read", "k", "two\nlines"); err == nil {
		t.Error("a name of two lines makes a line")
	}
	if _, err := access.KeyLine("owner", "k", "name"); err == nil {
		t.Error("an unknown command makes a line")
	}
	if _, err := access.KeyLine("read", "k", ""); err == nil {
		t.Error("a key without a name makes a line")
	}
	if _, err := access.KeyLine("read", strings.Repeat("k", access.MaxKeyBytes+1), "name"); err == nil {
		t.Error("a key that no request can present makes a line")
	}
	if a, b := access.NewKey(), access.NewKey(); a == b || len(a) < 40 {
		t.Errorf("keys %q and %q", a, b)
	}
}

func TestReload(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, keyLine(t, "write", "old", ""))
	keys, err := access.LoadKeys(path)
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
	if err := keys.Reload(); !errors.Is(err, access.ErrKeys) {
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
