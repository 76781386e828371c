package cli

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// TestServeNamesDamagedSnapshot: a server starts without a snapshot that is
// damaged, says so, and says nothing once the file is gone.
func TestServeNamesDamagedSnapshot(t *testing.T) {
	dir := t.TempDir()
	engine, err := kuji.Open(dir, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	realm, err := engine.Realm("default")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte("kuji: 1\nitems: {hat: {}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "realms", "default", "snapshots", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("snapshots %q, %v; want one", files, err)
	}
	serve := func() string {
		t.Helper()
		var out, said bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &said, getenv: func(string) string { return "" }}
		if code := a.run(t.Context(), []string{"serve", "--data", dir, "--listen", "127.0.0.1:0", "--until-eof"}); code != exitOK {
			t.Fatalf("exit code %d: %s", code, said.String())
		}
		return said.String()
	}
	if said := serve(); strings.Contains(said, "WARN") {
		t.Errorf("a sound snapshot: %q", said)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := serve(); !strings.Contains(said, "WARN") || !strings.Contains(said, filepath.Base(files[0])) {
		t.Errorf("a damaged snapshot %s: %q", files[0], said)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if said := serve(); strings.Contains(said, "WARN") {
		t.Errorf("no snapshot: %q", said)
	}
}

// TestListenOnIPv4: who says 0.0.0.0 gets no address of IPv6.
func TestListenOnIPv4(t *testing.T) {
	listener, err := net.Listen(network("0.0.0.0:0"), "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if got := listener.Addr().(*net.TCPAddr).IP.String(); got != "0.0.0.0" {
		t.Errorf("0.0.0.0 listens on %s", got)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"0.0.0.0:1": "tcp4", ":1": "tcp", "[::]:1": "tcp", "[::1]:1": "tcp", "localhost:1": "tcp", "bad": "tcp",
	} {
		if got := network(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
