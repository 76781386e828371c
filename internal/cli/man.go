package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func manCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages, one for each command",
		RunE: func(cmd *cobra.Command, args []string) error {
			build := thisBuild()
			day := build.date()
			if day.IsZero() {
				day = a.now()
			}
			n, err := writeManual(args[0], cmd.Root(), build.Version, day.UTC())
			if err != nil {
				return err
			}
			a.note("%d pages in %s", n, args[0])
			return nil
		},
	}
}

// writeManual writes the page of each command and help topic to a directory, which it makes, and returns
// how many there are. The same build writes the same bytes.
func writeManual(dir string, root *cobra.Command, version string, day time.Time) (pages int, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, fmt.Errorf("write the manual: %w", err)
	}
	// As when a command runs: cobra adds its own commands and flags late.
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	root.InitDefaultCompletionCmd()
	var write func(cmd *cobra.Command) error
	write = func(cmd *cobra.Command) error {
		cmd.InitDefaultHelpFlag()
		name := filepath.Join(dir, manName(cmd)+".1")
		if err := os.WriteFile(name, manPage(cmd, version, day), 0o666); err != nil {
			return fmt.Errorf("write the manual: %w", err)
		}
		pages++
		for _, sub := range cmd.Commands() {
			if sub.Hidden {
				continue
			}
			if err := write(sub); err != nil {
				return err
			}
		}
		return nil
	}
	err = write(root)
	return pages, err
}

// manName is how people ask for the page: man kuji-catalog-check.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the page of a command in the man macros of troff: see man(7).
func manPage(cmd *cobra.Command, version string, day time.Time) []byte {
	var p roff
	fmt.Fprintf(&p, `.TH %q 1 %s "kuji %s" Kuji`+"\n", strings.ToUpper(manName(cmd)), day.Format(time.DateOnly), version)
	p.section("NAME")
	p.text(manName(cmd) + " - " + cmd.Short)
	topic := !cmd.Runnable() && !cmd.HasSubCommands()
	if !topic {
		p.section("SYNOPSIS")
		use := cmd.UseLine()
		if !cmd.HasParent() {
			use = "kuji COMMAND [ARGUMENTS] [flags]"
		}
		p.macro("B", use)
	}
	p.section("DESCRIPTION")
	switch {
	case cmd.CommandPath() == "kuji commands":
		p.commands(cmd.Root())
	case cmd.Long != "":
		p.prose(cmd.Long)
	default:
		p.text(cmd.Short + ".")
	}
	if len(cmd.Commands()) > 0 && cmd.HasParent() {
		p.section("COMMANDS")
		for _, sub := range cmd.Commands() {
			p.item(sub.Name(), sub.Short)
		}
	}
	if !cmd.HasParent() {
		p.section("COMMANDS")
		p.commands(cmd)
	}
	if !topic {
		p.flags("OPTIONS", cmd.NonInheritedFlags())
		p.flags("GLOBAL OPTIONS", cmd.InheritedFlags())
	}
	if cmd.Example != "" {
		p.section("EXAMPLES")
		p.verbatim(cmd.Example)
	}
	p.section("SEE ALSO")
	p.text(strings.Join(manSeeAlso(cmd), ", "))
	return []byte(p.String())
}

// manSeeAlso are the pages next to a command's: its parent, its subcommands, and those on all commands.
func manSeeAlso(cmd *cobra.Command) []string {
	var pages []string
	add := func(other *cobra.Command) { pages = append(pages, manName(other)+"(1)") }
	if cmd.HasParent() {
		add(cmd.Parent())
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	for _, topic := range []string{"commands", "exit-codes"} {
		if cmd.Name() != topic {
			pages = append(pages, "kuji-"+topic+"(1)")
		}
	}
	return pages
}

// roff is a manual page that is being written.
type roff struct{ strings.Builder }

// macro begins a line with a macro and its arguments.
func (p *roff) macro(name string, args ...string) {
	p.WriteString("." + name)
	for _, arg := range args {
		p.WriteString(` "` + strings.ReplaceAll(roffEscape(arg), `"`, `\(dq`) + `"`)
	}
	p.WriteString("\n")
}

func (p *roff) section(title string) { p.macro("SH", title) }

// text writes lines that may be filled.
func (p *roff) text(s string) {
	for line := range strings.SplitSeq(s, "\n") {
		p.WriteString(roffLine(strings.TrimSpace(line)) + "\n")
	}
}

// item is a word with what it means, indented below it.
func (p *roff) item(word, meaning string) {
	p.macro("TP")
	p.macro("B", word)
	p.text(meaning)
}

// verbatim writes lines as they stand.
func (p *roff) verbatim(s string) {
	p.macro("nf")
	for line := range strings.SplitSeq(s, "\n") {
		p.WriteString(roffLine(line) + "\n")
	}
	p.macro("fi")
}

// prose writes the text of a help: paragraphs with an empty line between them. One with a table, a list or
// an example in it, which begins lines with spaces, a dash or a number, stays as it is.
func (p *roff) prose(s string) {
	for i, paragraph := range strings.Split(s, "\n\n") {
		if i > 0 {
			p.macro("PP")
		}
		if asIs := strings.ContainsAny(paragraph[:min(1, len(paragraph))], " -0123456789") || strings.Contains(paragraph, "\n "); asIs {
			p.verbatim(paragraph)
			continue
		}
		p.text(paragraph)
	}
}

// commands lists all commands by group.
func (p *roff) commands(root *cobra.Command) {
	for _, g := range root.Groups() {
		p.macro("SS", g.Title)
		for _, cmd := range commandsOf(root, g) {
			p.item("kuji "+cmd.Name(), cmd.Short)
		}
	}
}

func (p *roff) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.section(title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		switch f.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			format := " (default %s)"
			if f.Value.Type() == "string" {
				format = " (default %q)"
			}
			usage += fmt.Sprintf(format, f.DefValue)
		}
		p.item(name, usage)
	})
}

// roffLine is a line of text that troff does not take for a macro.
func roffLine(s string) string {
	s = roffEscape(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// roffEscape writes what means something to troff so that it means itself. A dash becomes the one that can
// be copied into a shell.
func roffEscape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(s)
}
