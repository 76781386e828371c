package cli

import (
	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func pityCommand(a *app) *cobra.Command {
	req := &kujiv1.SetTrackRequest{}
	set := &cobra.Command{Use: "set PLAYER TRACK DRAWS --reason TEXT", Short: "Set how many draws a track has counted since the last hit"}
	set.Flags().StringVar(&req.Reason, "reason", "", "why, in at most 1024 bytes (required)")
	return group("pity", "Set how far pity has counted for a player", write(a, set, req, (*api).SetTrack, func() error {
		if req.GetReason() == "" {
			return usagef("missing flag --reason: why the track is set")
		}
		return nil
	}))
}
