package cli

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// screen is the width of a terminal that help is written for, in columns.
const screen = 80

// completeCommand gives a command and its subcommands help texts and checks of arguments, by their use lines.
func completeCommand(cmd *cobra.Command) {
	if text, ok := helpTexts()[cmd.CommandPath()]; ok {
		cmd.Long, cmd.Example, _ = strings.Cut(text, "\nExamples:\n")
		cmd.Long = strings.TrimSpace(cmd.Long)
	}
	if cmd.Args == nil && cmd.HasParent() {
		cmd.Args = argumentsOf(cmd.Use).check
	}
	for _, sub := range cmd.Commands() {
		completeCommand(sub)
	}
}

// helpTexts are what the help of commands says at length, and their examples, by the commands' paths.
var helpTexts = sync.OnceValue(func() map[string]string {
	texts := map[string]string{}
	for section := range strings.SplitSeq("\n"+helpText, "\n# ") {
		path, text, _ := strings.Cut(section, "\n")
		texts[path] = strings.TrimRight(text, "\n")
	}
	return texts
})

//go:embed help.txt
var helpText string

// helpCommand is cobra's own, except that it fails for a command that does not exist.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, _, err := cmd.Root().Find(args)
			if err != nil {
				return usageError{err}
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// commandsTopic is the help page that says what every command does: "kuji help commands".
func commandsTopic() *cobra.Command {
	return &cobra.Command{Use: "commands", Short: "What each command does"}
}

// setHelp makes the first help fit a screen: it only names the commands. What each does is the topic
// "commands". All other help is cobra's.
func setHelp(root *cobra.Command) {
	usual := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		switch cmd.CommandPath() {
		case "kuji":
			_, _ = io.WriteString(cmd.OutOrStdout(), overview(cmd)) // as cobra: nobody is left to tell
		case "kuji commands":
			_, _ = io.WriteString(cmd.OutOrStdout(), everyCommand(cmd.Root()))
		default:
			usual(cmd, args)
		}
	})
}

// overview is the first help.
func overview(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(root.Long + "\n\n" + root.Example + "\n\n")
	for _, g := range root.Groups() {
		var names []string
		for _, cmd := range commandsOf(root, g) {
			names = append(names, cmd.Name())
		}
		b.WriteString(hang(fmt.Sprintf("%-18s", g.Title), strings.Join(names, ", "), screen) + "\n")
	}
	b.WriteString(`
"kuji help commands" says what each command does, "kuji COMMAND --help" how to
use it, "kuji help exit-codes" how it ends. With --json, the answer is JSON.
`)
	return b.String()
}

// everyCommand is the topic "commands".
func everyCommand(root *cobra.Command) string {
	var b strings.Builder
	for i, g := range root.Groups() {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(g.Title + ":\n")
		for _, cmd := range commandsOf(root, g) {
			b.WriteString(hang(fmt.Sprintf("  %-12s", cmd.Name()), cmd.Short, screen) + "\n")
		}
	}
	return b.String()
}

// commandsOf are the commands of a group, in the order of their names.
func commandsOf(root *cobra.Command, g *cobra.Group) []*cobra.Command {
	var in []*cobra.Command
	for _, cmd := range root.Commands() {
		if cmd.GroupID == g.ID {
			in = append(in, cmd)
		}
	}
	return in
}

// hang writes text after head, in lines of at most width columns, each below the first.
func hang(head, text string, width int) string {
	lines, indent := []string{head}, strings.Repeat(" ", len(head))
	for word := range strings.FieldsSeq(text) {
		last := lines[len(lines)-1]
		switch {
		case last == head || last == indent:
			lines[len(lines)-1] += word
		case len(last)+1+len(word) <= width:
			lines[len(lines)-1] += " " + word
		default:
			lines = append(lines, indent+word)
		}
	}
	return strings.Join(lines, "\n")
}
