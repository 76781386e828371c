//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The tests here paste what the README shows.

func readme(t *testing.T) (root, text string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return root, string(data)
}

// blocks returns the fenced blocks of a language.
func blocks(text, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// TestReadmeProgram compiles the program of the README and runs it twice: the
// second time it has to get its first answer again.
func TestReadmeProgram(t *testing.T) {
	root, text := readme(t)
	programs := blocks(text, "go")
	if len(programs) != 1 {
		t.Fatalf("%d Go blocks in the README, want 1", len(programs))
	}
	dir := t.TempDir()
	source, overlay, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(programs[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	// The overlay puts the program into the module without writing into it.
	replace, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(root, "examples", "readme", "main.go"): source},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", binary, "./examples/readme")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var outputs [2]string
	for i := range outputs {
		run := exec.CommandContext(t.Context(), binary)
		run.Dir = dir
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("run %d: %v\n%s", i+1, err, out)
		}
		outputs[i] = string(out)
	}
	if !strings.HasPrefix(outputs[0], "ok ") || outputs[0] != outputs[1] {
		t.Errorf("first run printed %q, second run %q; want the same, beginning with ok", outputs[0], outputs[1])
	}
}

// TestReadmeCommands runs the README's commands in their order against one
// server, as a reader would, with a free port instead of the usual one.
func TestReadmeCommands(t *testing.T) {
	root, text := readme(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl here")
	}
	var serve string
	var clients, offline []string
	for _, block := range blocks(text, "sh") {
		for _, line := range strings.Split(strings.TrimSpace(strings.ReplaceAll(block, "\\\n", " ")), "\n") {
			switch {
			case strings.Contains(line, "kuji serve"):
				serve = line
			case strings.Contains(line, "kuji demo"), strings.Contains(line, "kuji bench"), strings.HasPrefix(line, "go test"):
			case strings.Contains(line, "kuji verify"):
				offline = append(offline, line)
			default:
				clients = append(clients, line)
			}
		}
	}
	if serve == "" || len(clients) < 4 || len(offline) != 1 {
		t.Fatalf("found serve %q, clients %q, offline %q", serve, clients, offline)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	kuji := filepath.Join(dir, "kuji") // the test binary under this name is the command: see TestMain
	if err := os.Link(exe, kuji); err != nil {
		data, err := os.ReadFile(exe)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(kuji, data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	shell := func(line, url string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		line = strings.ReplaceAll(line, "go run ./cmd/kuji", kuji)
		line = strings.ReplaceAll(line, "http://127.0.0.1:7700", url)
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KUJI_SERVER="+url, "KUJI_KEY=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}

	server := startReadmeServer(t, dir, kuji, strings.Fields(serve))
	var answers []string
	for _, line := range append([]string{clients[0]}, clients...) { // “Send it again”
		out, err := shell(line, server.ready.URL)
		if err != nil {
			t.Fatalf("%s\n%v\n%s", line, err, out)
		}
		answers = append(answers, out)
	}
	if !strings.Contains(answers[0], `"status":"STATUS_OK"`) || strings.Contains(answers[0], `"replayed"`) {
		t.Errorf("the first curl answers %s", answers[0])
	}
	if !strings.Contains(answers[1], `"replayed":true`) {
		t.Errorf("the second curl answers %s", answers[1])
	}
	if !strings.Contains(answers[2], "answered before") {
		t.Errorf("kuji draw with the same id answers %s", answers[2])
	}
	if err := server.stop(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	if out, err := shell(offline[0], ""); err != nil || !strings.Contains(out, "good") {
		t.Errorf("%s\n%v\n%s", offline[0], err, out)
	}
}

// startReadmeServer runs the README's serve line on a free port.
func startReadmeServer(t *testing.T, dir, kuji string, words []string) *child {
	t.Helper()
	at := 0
	for i, word := range words {
		if word == "serve" {
			at = i + 1
		}
	}
	cmd := exec.Command(kuji, append([]string{"serve", "--json", "--listen", "127.0.0.1:0"}, words[at:]...)...)
	cmd.Dir = dir
	c, err := runChild(t.Context(), cmd, filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", strings.Join(words, " "), err))
	}
	t.Cleanup(c.kill)
	return c
}
