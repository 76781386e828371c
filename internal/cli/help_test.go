package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// TestHelpFitsAScreen checks that the first help shows every command on a terminal of 80 columns and 24
// lines, with the line of the prompt below it.
func TestHelpFitsAScreen(t *testing.T) {
	a := &app{getenv: func(string) string { return "" }}
	for _, args := range [][]string{{"--help"}, {"help"}, {}} {
		var out bytes.Buffer
		a.stdout, a.stderr = &out, &out
		if code := a.run(t.Context(), args); code != exitOK {
			t.Errorf("kuji %v exits with %d", args, code)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) > 23 {
			t.Errorf("kuji %v: %d lines, want at most 23", args, len(lines))
		}
		for _, line := range lines {
			if len(line) > 80 {
				t.Errorf("kuji %v: %d columns: %s", args, len(line), line)
			}
		}
		words := strings.FieldsFunc(out.String(), func(r rune) bool { return strings.ContainsRune(" ,\n", r) })
		for _, cmd := range a.rootCommand().Commands() {
			if topic := !cmd.Runnable() && !cmd.HasSubCommands(); topic {
				if !strings.Contains(out.String(), `"kuji help `+cmd.Name()+`"`) {
					t.Errorf("kuji %v does not name the topic %s", args, cmd.Name())
				}
			} else if !slices.Contains(words, cmd.Name()) {
				t.Errorf("kuji %v does not name the command %s", args, cmd.Name())
			}
		}
	}
	all := everyCommand(a.rootCommand())
	for _, cmd := range a.rootCommand().Commands() {
		short, _, _ := strings.Cut(cmd.Short, " ")
		if cmd.GroupID != "" && !strings.Contains(all, fmt.Sprintf("\n  %-12s%s", cmd.Name(), short)) {
			t.Errorf("kuji help commands does not say what %s does", cmd.Name())
		}
	}
}
