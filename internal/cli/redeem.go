package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (a *app) redeemCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "redeem PLAYER CODE",
		Short: "Use a code for a player: it pays for draws",
		Long: `Redeem uses a code that a player sends. The code pays for draws from the pool that
names its list in the catalog, once for each player. Case, spaces, hyphens, dots and
underscores make no difference. With - as the code, the command reads it from standard
input, so that the list of processes does not show it.

A code that does not exist counts as a guess, and the catalog limits guesses. If an
answer is lost, the command tries again with the same request id, which can never
use a code twice.`,
		Example: `  kuji redeem ann K7QD-2MXP`,
		Args:    exactArgs("PLAYER", "CODE"),
	}
	conn := a.clientCommand(cmd)
	cmd.Flags().StringVar(&id, "id", "", idFlagHelp)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		code := args[1]
		if code == "-" {
			line, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 2*kuji.MaxCode)).ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("read the code from standard input: %w", err)
			}
			code = strings.TrimRight(line, "\r\n")
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		id := requestID(id)
		resp, err := call(cmd.Context(), c, id, c.rewards.Redeem, &kujiv1.RedeemRequest{
			Realm: c.realm, RequestId: id, Player: args[0], Code: code,
		})
		draws := 0
		for _, o := range resp.GetResult().GetOutcomes() {
			draws = int(o.GetDraw()) + 1
		}
		return a.finish(id, draws, resp.GetResult(), err)
	}
	return cmd
}
