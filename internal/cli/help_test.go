package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write testdata/help.golden anew")

// TestHelp compares the help of every command with a golden file, so that a
// change to a flag or a sentence arrives as a readable difference.
func TestHelp(t *testing.T) {
	a := &app{getenv: func(string) string { return "" }}
	var got bytes.Buffer
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			return // cobra's own
		}
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		var out bytes.Buffer
		one := &app{stdout: &out, stderr: &out, getenv: a.getenv}
		if code := one.run(t.Context(), args); code != exitOK {
			t.Errorf("%s --help exits with %d", cmd.CommandPath(), code)
		}
		fmt.Fprintf(&got, "$ %s --help\n%s\n", cmd.CommandPath(), out.Bytes())
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Name() != "version" && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	root := a.rootCommand()
	walk(root)
	for path := range helpTexts() {
		if words := strings.Fields(path); len(words) > 0 {
			if cmd, _, err := root.Find(words[1:]); err != nil || cmd.CommandPath() != path {
				t.Errorf("help.txt has a text for %q, which is no command", path)
			}
		}
	}

	golden := filepath.Join("testdata", "help.golden")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("help differs from %s (run with -update to accept):\n%s", golden, diff)
	}
}
