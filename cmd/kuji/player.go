package main

import (
	"io"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type playerJSON struct {
	Player   string      `json:"player"`
	Items    []stackJSON `json:"items"`
	Position uint64      `json:"position"`
}

func (a *app) playerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "player PLAYER",
		Short:   "Show what a player holds",
		Example: "  kuji player ann",
		Args:    exactArgs("PLAYER"),
	}
	conn := a.clientCommand(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := conn.dial()
		if err != nil {
			return err
		}
		resp, err := call(cmd.Context(), c, "", c.rewards.GetPlayer, &kujiv1.GetPlayerRequest{Realm: c.realm, Player: args[0]})
		if err != nil {
			return err
		}
		p := resp.GetPlayer()
		out := playerJSON{Player: p.GetId(), Items: newStacksJSON(p.GetItems()), Position: p.GetPosition()}
		return a.print(out, func(w io.Writer) {
			if len(out.Items) == 0 {
				fprintf(w, "%s holds nothing\n", out.Player)
				return
			}
			fprintf(w, "ITEM\tQUANTITY\n")
			for _, s := range out.Items {
				fprintf(w, "%s\t%d\n", s.Item, s.Quantity)
			}
		})
	}
	return cmd
}
