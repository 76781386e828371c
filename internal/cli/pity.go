package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (a *app) pityCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pity",
		Short:   "Set how far pity has counted for a player",
		GroupID: "client",
		Args:    cobra.NoArgs,
		RunE:    needsSubcommand,
	}
	var id, reason string
	set := &cobra.Command{
		Use:   "set PLAYER TRACK DRAWS --reason TEXT",
		Short: "Set how many draws a track has counted since the last hit",
		Long: `Set gives a player's track a value, for instance to make good a fault of the game.
"kuji player" shows a player's tracks. A track's name is the name that pools share
it by, or POOL/TRACK.

The key needs the command admin. The log keeps the reason and the name of the key;
"kuji log events" shows both.`,
		Example: `  kuji pity set ann character-five-star 73 --reason "ticket 99: draws lost by the old server"`,
		Args:    exactArgs("PLAYER", "TRACK", "DRAWS"),
	}
	conn := a.connection(set.Flags())
	set.Flags().StringVar(&id, "id", "", idFlagHelp)
	set.Flags().StringVar(&reason, "reason", "", "why, in at most 1024 bytes (required)")
	set.RunE = func(cmd *cobra.Command, args []string) error {
		draws, err := strconv.ParseUint(args[2], 10, 64)
		if err != nil {
			return usageError{fmt.Errorf("argument %q: expected a whole number of draws", args[2])}
		}
		if reason == "" {
			return usageError{errors.New("missing flag --reason: why the track is set")}
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		id := requestID(id)
		resp, err := call(cmd.Context(), c, id, c.admin.SetTrack, &kujiv1.SetTrackRequest{
			Realm: c.realm, RequestId: id, Player: args[0], Track: args[1], Draws: draws, Reason: reason,
		})
		return a.finish(id, 0, resp.GetResult(), err)
	}
	cmd.AddCommand(set)
	return cmd
}
