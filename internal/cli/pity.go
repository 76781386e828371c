package cli

import (
	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func pityCommand(a *app) *cobra.Command {
	req := &kujiv1.SetTrackRequest{}
	set := &cobra.Command{
		Use:   "set PLAYER TRACK DRAWS --reason TEXT",
		Short: "Set how many draws a track has counted since the last hit",
		Long: `Set gives a player's track a value, for instance to make good a fault of the game.
"kuji player" shows a player's tracks. A track's name is the name that pools share
it by, or POOL/TRACK.

The key needs the command admin. The log keeps the reason and the name of the key;
"kuji log events" shows both.`,
		Example: `  kuji pity set ann character-five-star 73 --reason "ticket 99: draws lost by the old server"`,
	}
	set.Flags().StringVar(&req.Reason, "reason", "", "why, in at most 1024 bytes (required)")
	return group("pity", "Set how far pity has counted for a player", write(a, set, req, (*api).SetTrack, func() error {
		if req.GetReason() == "" {
			return usagef("missing flag --reason: why the track is set")
		}
		return nil
	}))
}
