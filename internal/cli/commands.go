package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// commands are all commands, as help groups them. A new one has a file of its own and its name here.
var commands = []struct {
	id, title string
	all       []func(*app) *cobra.Command
}{
	{"server", "Run a server:", []func(*app) *cobra.Command{
		benchCommand,
		clusterCommand,
		demoCommand,
		keysCommand,
		serveCommand,
	}},
	{"client", "Talk to a server:", []func(*app) *cobra.Command{
		applyCommand,
		atomicCommand,
		backupCommand,
		claimCommand,
		clockCommand,
		codesCommand,
		collectCommand,
		consumeCommand,
		contextCommand,
		counterCommand,
		drawCommand,
		feedCommand,
		grantCommand,
		historyCommand,
		holdCommand,
		limitCommand,
		listCommand,
		oddsCommand,
		pityCommand,
		playerCommand,
		poolCommand,
		progressCommand,
		questsCommand,
		ranksCommand,
		realmCommand,
		redeemCommand,
		registerCommand,
		resultCommand,
		reverseCommand,
		roundCommand,
		statusCommand,
		tailCommand,
		transferCommand,
		upgradeCommand,
		watchCommand,
	}},
	{"offline", "Work on files:", []func(*app) *cobra.Command{
		catalogCommand,
		logCommand,
		restoreCommand,
		simulateCommand,
		verifyCommand,
		versionCommand,
	}},
}

// group makes a command of others.
func group(use, short string, of ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: needsSubcommand}
	cmd.AddCommand(of...)
	return cmd
}

// needsSubcommand is the action of a command that only groups others.
func needsSubcommand(cmd *cobra.Command, _ []string) error {
	return usagef("missing command after %q: expected %s", cmd.CommandPath(), strings.Join(each(cmd.Commands(), (*cobra.Command).Name), ", "))
}

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
