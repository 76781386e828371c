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
	return write(a, &cobra.Command{Use: "redeem PLAYER CODE", Short: "Use a code for a player: it pays for draws"}, req, (*api).Redeem, func() error {
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
