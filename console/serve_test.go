package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// serve runs kuji serve, as users do, and returns its address.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{"serve", "--json", "--until-eof", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data")}, args...)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), asKuji+"="+strings.Join(args, " "))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stdin.Close(); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, stdout) // until it ends
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var ready struct{ Address string }
	if err := json.Unmarshal(line, &ready); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return ready.Address
}

// TestServe: kuji serve has the console unless it is turned off, and there a catalog is tried on
// simulated players.
func TestServe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "festival.yaml")
	if err := os.WriteFile(file, festival, 0o600); err != nil {
		t.Fatal(err)
	}
	address := serve(t, "--catalog", file)
	p := browse(t, address, view{360, 800, true, "Europe/Berlin"}, "/catalog/new")
	p.press("[name=load]")
	p.until("document.querySelector('[name=yaml]').value.includes('Lantern Festival')")
	p.press("[name=check]")
	p.has("main", "This is the catalog in force")
	p.set("[name=sim-pool]", "banner")
	p.set("[name=sim-until]", "hoshimi")
	p.press("[name=simulate]")
	p.has("#simulated", "What it costs: Hoshimi of the Lanterns")
	p.until("document.querySelector('#simulated .plot canvas')")
	p.accessible("simulation")
	p.fits("simulation")
	p.look("simulation-360-dark")

	without := serve(t, "--console=false")
	for path, want := range map[string]int{"/": http.StatusOK, "/console/": http.StatusNotImplemented} {
		got, err := http.Get("http://" + without + path)
		if err != nil {
			t.Fatal(err)
		}
		if got.StatusCode != want {
			t.Errorf("%s: HTTP %d, want %d", path, got.StatusCode, want)
		}
		if err := got.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}
