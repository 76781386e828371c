//go:build unix

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/examples"
)

// TestFirstDraw does what docs/how-to/first-draw.md tells its reader to do in a shell, in order. The draw in Python is one
// of the command line here, and so is the catalog of the console.
func TestFirstDraw(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/first-draw.md")
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := t.TempDir(), t.TempDir()
	kuji := filepath.Join(bin, "kuji")
	if err := os.Symlink(exe, kuji); err != nil { // under this name it is the command: see TestMain
		t.Fatal(err)
	}
	banner, err := examples.Files.ReadFile("gacha-banner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rich := regexp.MustCompile("(?s)```yaml\n *(start: [^\n]*)").FindSubmatch(page)
	line := regexp.MustCompile(`(?m)^start: .*$`)
	if rich == nil || !line.Match(banner) {
		t.Fatal("the page changes a line that the example does not have")
	}
	if err := os.WriteFile(filepath.Join(dir, "banner.yaml"), line.ReplaceAll(banner, rich[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	var server *child
	run := func(command string) string {
		t.Helper()
		cmd := startCommand(t, dir, bin, command)
		if server != nil {
			cmd.Env = append(cmd.Env, "KUJI_SERVER="+server.ready.URL)
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s\n%v\n%s", command, err, out)
		}
		return string(out)
	}
	var ran []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		command := strings.TrimSpace(block[1])
		switch {
		case strings.Contains(command, "python"), strings.HasPrefix(command, "mkdir"):
			continue
		case strings.HasPrefix(command, "kuji serve"):
			server = startReadmeServer(t, dir, kuji, strings.Fields(command))
			run("kuji apply banner.yaml --key-file ops.key")
			run("kuji draw ann banner --count 10 --key-file shop.key")
			run("kuji draw ann banner --count 9 --key-file shop.key")
		case strings.HasPrefix(command, "token="):
			_, token, ok := strings.Cut(strings.TrimSpace(run(command)), "&token=")
			if !ok {
				t.Fatalf("%s prints no token", command)
			}
			run("kuji draw ann banner --key " + token)
		case strings.HasPrefix(command, "kuji verify"):
			if err := server.stop(time.Minute); err != nil {
				t.Fatal(err)
			}
			if out := run(command); !strings.Contains(out, " good ") {
				t.Error(out)
			}
		default:
			run(command)
		}
		ran = append(ran, command)
	}
	if len(ran) != 5 {
		t.Errorf("the page has other commands: %q", ran)
	}
	private, err := os.ReadFile(filepath.Join(dir, "players.jwk"))
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := os.ReadFile(filepath.Join(dir, "keys.txt")); err != nil || bytes.Count(keys, []byte("\n")) != 3 || bytes.Contains(keys, private) {
		t.Errorf("the key file: %v\n%s", err, keys)
	}
}
