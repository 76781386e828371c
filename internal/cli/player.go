package cli

import (
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type playerJSON struct {
	Player   string         `json:"player"`
	Items    []stackJSON    `json:"items"`
	Pity     []trackJSON    `json:"pity,omitempty"`
	Limits   []standingJSON `json:"limits,omitempty"` // of which draws were used
	Free     []standingJSON `json:"free,omitempty"`   // free draws of pools, of which some were used
	Position uint64         `json:"position"`
}

// trackJSON is what a track has counted for a player.
type trackJSON struct {
	Track     string `json:"track"`
	Draws     uint64 `json:"draws"`                  // since the last hit
	CertainIn uint64 `json:"certain_in,omitempty"`   // the draw from now on that is certain to hit, at the latest
	Pool      string `json:"certain_pool,omitempty"` // from which pool it must be; absent: any of the track
	Unless    string `json:"unless,omitempty"`       // tracks and entries that can come in its place
}

// certainText says in how many draws a hit is certain.
func (t *trackJSON) certainText() string {
	text := strconv.FormatUint(t.CertainIn, 10)
	if t.Pool != "" {
		text += " from " + t.Pool
	}
	if t.Unless != "" {
		text += " unless " + strings.ReplaceAll(t.Unless, ", ", " or ") + " comes"
	}
	return text
}

func (a *app) playerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "player PLAYER",
		Short:   "Show what a player holds, how far pity has counted and what is left of limits and free draws",
		Example: "  kuji player ann",
		Args:    exactArgs("PLAYER"),
	}
	conn := a.clientCommand(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		resp, err := call(cmd.Context(), c, "", c.rewards.GetPlayer, &kujiv1.GetPlayerRequest{Realm: c.realm, Player: args[0]})
		if err != nil {
			return err
		}
		p := resp.GetPlayer()
		out := playerJSON{Player: p.GetId(), Items: newStacksJSON(p.GetItems()), Position: p.GetPosition()}
		for _, t := range p.GetPity() {
			out.Pity = append(out.Pity, trackJSON{t.GetTrack(), t.GetDraws(), t.GetCertainIn(), t.GetPool(), t.GetUnless()})
		}
		for _, l := range p.GetLimits() {
			out.Limits = append(out.Limits, newStandingJSON(l))
		}
		for _, l := range p.GetFree() {
			out.Free = append(out.Free, newStandingJSON(l))
		}
		return a.print(out, func(w io.Writer) { printPlayer(w, &out) })
	})
	return cmd
}

func printPlayer(w io.Writer, p *playerJSON) {
	if len(p.Items) == 0 {
		fprintf(w, "%s holds nothing\n", word(p.Player))
	} else {
		fprintf(w, "ITEM\tQUANTITY\n")
	}
	for _, s := range p.Items {
		fprintf(w, "%s\t%d\n", s.Item, s.Quantity)
	}
	if len(p.Pity) > 0 {
		fprintf(w, "\nPITY\tDRAWS\tCERTAIN IN\n")
	}
	for _, t := range p.Pity {
		certain := "-"
		if t.CertainIn != 0 {
			certain = t.certainText()
		}
		fprintf(w, "%s\t%d\t%s\n", t.Track, t.Draws, certain)
	}
	printLimits(w, "LIMIT", p.Limits)
	printLimits(w, "FREE DRAWS", p.Free)
}
