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

func redeemCommand(a *app) *cobra.Command {
	req := &kujiv1.RedeemRequest{}
	return write(a, &cobra.Command{
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
	}, req, (*api).Redeem, func() error {
		if req.GetCode() == "-" {
			line, err := bufio.NewReader(io.LimitReader(a.stdin, 2*kuji.MaxCode)).ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("read the code from standard input: %w", err)
			}
			req.Code = strings.TrimRight(line, "\r\n")
		}
		return nil
	})
}
