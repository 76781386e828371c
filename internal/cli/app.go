package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// app is what every command works with: the process's streams and environment.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time // the wall clock of realms; nil: time.Now
	configDir      string           // of this user; may be empty
	json           bool             // --json: one JSON object on stdout, tables nowhere
	printed        bool             // the object is out: an error adds nothing to stdout
	said           said
	logged         bool // the error is in the log on stderr, of which each line is JSON
}

// run carries out one command line and returns the process's exit code.
func (a *app) run(ctx context.Context, args []string) exitCode {
	started := false
	root := a.rootCommand()
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	err := root.ExecuteContext(ctx)
	if err != nil && !started {
		err = usageError{err} // cobra refused the command line itself, and may not have come to --json
		end := slices.Index(append(args, "--"), "--")
		a.json = a.json || slices.Contains(args[:end], "--json")
	}
	if err == nil {
		return exitOK
	}
	f := classify(ctx, err)
	if !a.logged {
		a.note("kuji: %s", markup(f.Message))
	}
	if a.json && !a.printed {
		if err := encodeJSON(output{a}, map[string]any{"error": f}); err != nil {
			return exitUnexpected
		}
	}
	return f.Exit
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "kuji",
		Short:         "A durable reward engine: draws that are logged before anyone sees them",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("kuji {{.Version}}\n")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "write one JSON object to standard output, errors included")
	for _, g := range commands {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, command := range g.all {
			cmd := command(a)
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(commandsTopic(), exitCodesTopic())
	completeCommand(root)
	root.SetCompletionCommandGroupID("help")
	root.SetHelpCommand(helpCommand())
	root.SetHelpCommandGroupID("help")
	setHelp(root)
	return root
}

// output is the standard output of a command's result.
type output struct{ *app }

// Write implements [io.Writer].
func (o output) Write(p []byte) (int, error) {
	o.printed = true
	n, err := o.stdout.Write(p)
	if err != nil {
		err = fmt.Errorf("write to standard output: %w", err)
	}
	return n, err
}

// print writes the result: v as JSON, with API messages in plain form, or what table writes.
func (a *app) print(v any, table func(w io.Writer)) error {
	if a.json {
		return encodeJSON(output{a}, v)
	}
	w := newColumns(output{a})
	table(w)
	return w.Flush()
}

// nothing ends what was not begun.
func nothing() error { return nil }

// note writes a line about progress to standard error, for people. A line that cannot be written is dropped.
func (a *app) note(format string, args ...any) {
	fprintf(a.stderr, format+"\n", args...)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// readFile reads a file, or standard input for "-", up to limit bytes.
func (a *app) readFile(name string, limit int64) ([]byte, error) {
	r := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usageError{err}
		}
		defer f.Close() // read only: nothing to lose
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if errors.Is(err, syscall.EISDIR) {
		return nil, usagef("%s is a directory; expected a file", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, usagef("%s is larger than the %d bytes allowed", name, limit)
	}
	return data, nil
}

// replaceFile replaces a file, which only this user can read: a crash leaves the old bytes or the new ones.
func replaceFile(name string, data []byte) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(name), ".new-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	_, err = temp.Write(data)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}
