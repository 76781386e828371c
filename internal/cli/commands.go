package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// commands are all commands, as help groups them: by what somebody wants to do. A new one has a file of
// its own and its name here.
var commands = []struct {
	id, title string
	all       []func(*app) *cobra.Command
}{
	{"server", "Run a server", []func(*app) *cobra.Command{
		benchCommand,
		clusterCommand,
		demoCommand,
		keysCommand,
		serveCommand,
	}},
	{"give", "Draw and give", []func(*app) *cobra.Command{
		atomicCommand,
		claimCommand,
		collectCommand,
		consumeCommand,
		drawCommand,
		grantCommand,
		holdCommand,
		progressCommand,
		redeemCommand,
		registerCommand,
		reverseCommand,
		roundCommand,
		transferCommand,
	}},
	{"ask", "Ask", []func(*app) *cobra.Command{
		historyCommand,
		listCommand,
		oddsCommand,
		playerCommand,
		poolCommand,
		questsCommand,
		ranksCommand,
		resultCommand,
		statusCommand,
		tailCommand,
		watchCommand,
	}},
	{"rules", "Change the rules", []func(*app) *cobra.Command{
		applyCommand,
		catalogCommand,
		simulateCommand,
	}},
	{"admin", "Administer", []func(*app) *cobra.Command{
		backupCommand,
		clockCommand,
		codesCommand,
		contextCommand,
		counterCommand,
		feedCommand,
		limitCommand,
		pityCommand,
		realmCommand,
		restoreCommand,
		upgradeCommand,
	}},
	{"check", "Check", []func(*app) *cobra.Command{
		logCommand,
		verifyCommand,
	}},
	{"help", "Get help", []func(*app) *cobra.Command{
		manCommand,
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
