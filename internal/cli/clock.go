package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func clockCommand(a *app) *cobra.Command {
	return group("clock", "Set the clock of a realm", clockSetCommand(a))
}

func clockSetCommand(a *app) *cobra.Command {
	var reason, at string
	cmd := &cobra.Command{Use: "set --reason TEXT", Short: "Make a realm's time follow the server's clock from here on, forward or back"}
	conn := a.connection(cmd.Flags())
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log: 1 to 200 bytes of `text` (required)")
	cmd.Flags().StringVar(&at, "time", "", "the right `time`, as in 2026-11-23T19:20:00Z (default: this machine's)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if reason == "" {
			return usagef("missing flag --reason: why the clock is set, for the log")
		}
		now := time.Now()
		if at != "" {
			var err error
			if now, err = parseTime("time", at); err != nil {
				return err
			}
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		resp, err := c.SetClock(cmd.Context(), &kujiv1.SetClockRequest{Realm: c.realm, TimeUnixMs: now.UnixMilli(), Reason: reason})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			to, from := resp.GetToUnixMs(), resp.GetIdsFromUnixMs()
			fprintf(w, "realm %s: time continues from %s; the last stamp was %s (position %d)\n", c.realm, utc(to), utc(resp.GetFromUnixMs()), resp.GetPosition())
			if from > to {
				fprintf(w, "New request ids are refused as too old until %s. If you cannot wait, apply a catalog with\n\"ids: any\" until then.\n", utc(from))
			}
		})
	}
	return cmd
}

func utc(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

func parseTime(flag, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usagef("--%s %q: expected a time such as 2026-11-23T19:20:00Z", flag, text)
	}
	return t, nil
}

// clockError says how to start a server whose clock is far ahead of a realm's log.
func clockError(err error) error {
	if kuji.CodeOf(err) != kuji.CodeClock {
		return err
	}
	return refusedError{fmt.Sprintf("%v. Server not started. Start it with --confirm-clock %s if that is the right time", err, time.Now().UTC().Format(time.RFC3339))}
}
