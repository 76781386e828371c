package cli

import (
	"io"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func progressCommand(a *app) *cobra.Command {
	req := &kujiv1.ProgressRequest{}
	cmd := &cobra.Command{Use: "progress PLAYER EVENT [N]", Short: "Report an event of a player, which counters count"}
	cmd.Flags().StringVar(&req.Key, "event-key", "", "the event's `key`: what tells it apart, for counters of different keys: the boss, the level")
	return write(a, cmd, req, (*api).Progress, func() error {
		if cmd.Flags().NArg() > 2 {
			return atLeast("n", req.GetN(), 1)
		}
		return nil
	})
}

func counterCommand(a *app) *cobra.Command {
	req := &kujiv1.SetCounterRequest{}
	set := &cobra.Command{Use: "set PLAYER COUNTER VALUE --reason TEXT", Short: "Set where a counter stands in its present period"}
	return group("counter", "Set where a counter stands", write(a, set, req, (*api).SetCounter, func() error {
		if set.Flag("reason").Value.String() == "" {
			return usagef("missing flag --reason: why the counter is set")
		}
		return nil
	}))
}

// printCounters writes where counters stand.
func printCounters(w io.Writer, counters []*kujiv1.PlayerCounter) {
	if len(counters) == 0 {
		return
	}
	rows(w, "\nCOUNTER\tSTANDS AT\tRESETS", counters, func(c *kujiv1.PlayerCounter) []any {
		value := whole(c.GetValue()) + when(c.GetRank() > 0, ", rank "+whole(c.GetRank()))
		return []any{c.GetCounter() + when(c.GetRealm(), " (realm)"), value, resetText(c.GetResetsUnixMs())}
	})
}

// resetText says when something begins again.
func resetText(ms int64) string { return choose(ms != 0, timeText(ms), "-") }
