//go:build unix

package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestStart does what docs/start.md tells its reader to do, in order, and compares what the
// commands print with what the page shows. A block with a file's name is that file.
func TestStart(t *testing.T) {
	for _, tool := range []string{"go", "perl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool + " here")
		}
	}
	page, err := os.ReadFile("../../docs/start.md")
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
	var server *child
	commands := 0
	for _, block := range regexp.MustCompile("(?s)```(\\w+)(?: ([\\w.]+))?\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		language, file, text := block[1], block[2], block[3]
		if file != "" {
			if server != nil {
				text = strings.ReplaceAll(text, "http://127.0.0.1:7700", server.ready.URL)
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if language != "console" {
			continue
		}
		for _, part := range strings.Split("\n"+text, "\n$ ")[1:] {
			line, shown, _ := strings.Cut(part, "\n")
			commands++
			switch {
			case strings.HasPrefix(line, "kuji serve "):
				server = startReadmeServer(t, dir, kuji, strings.Fields(line))
				continue
			case strings.HasPrefix(line, "kuji verify ") && server != nil: // “press Ctrl-C”
				if err := server.stop(time.Minute); err != nil {
					t.Fatal(err)
				}
				server = nil
			}
			run := startCommand(t, dir, bin, line)
			if server != nil {
				run.Env = append(run.Env, "KUJI_SERVER="+server.ready.URL)
			}
			out, err := run.CombinedOutput()
			if fails := strings.HasPrefix(shown, "kuji: ") || strings.Contains(shown, "\nkuji: "); fails != (err != nil) {
				t.Fatalf("%s\n%v\n%s", line, err, out)
			}
			if !shownAs(shown).Match(out) {
				t.Errorf("%s\nprints\n%s\nthe page shows\n%s", line, out, shown)
			}
		}
	}
	if commands < 25 {
		t.Errorf("found %d commands on the page", commands)
	}
}

// startCommand is a command of the page, for a shell in the reader's directory.
func startCommand(t *testing.T, dir, bin, line string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	if strings.HasPrefix(line, "cd ") {
		cmd.Args = []string{"sh", "-c", "true"} // the reader is there already
	}
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "KUJI_KEY=")
	return cmd
}

// shownAs matches what a command prints when it is like what the page shows: other numbers, ids and
// luck, and anything in place of "…".
func shownAs(shown string) *regexp.Regexp {
	text := regexp.QuoteMeta(strings.TrimSpace(shown))
	for _, r := range [][2]string{
		{`\b[0-9A-Z]{26}\b`, "\x01"},
		{`(drawn +)(candle|lantern)( +)(candle|lantern)`, `drawn +(candle|lantern) +(candle|lantern)`},
		{`\{(candle|lantern)\\\}`, `{(candle|lantern)\}`},
		{`\b[0-9a-f]{8}…`, "\x02"},
		{`\b[0-9]+(\b|%)`, `[0-9]+$1`},
		{`…`, `(?s:.*)`},
		{` {2,}`, ` +`},
		{"\x01", `[0-9A-Z]{26}`},
		{"\x02", `[0-9a-f]{64}`},
	} {
		text = regexp.MustCompile(r[0]).ReplaceAllString(text, r[1])
	}
	return regexp.MustCompile(`^\s*` + text + `\s*$`)
}
