package cli

import (
	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func grantCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "grant PLAYER ITEM=QUANTITY...", Short: "Give items to a player"}
	return write(a, cmd, &kujiv1.GrantRequest{}, (*api).Grant)
}

func consumeCommand(a *app) *cobra.Command {
	req := &kujiv1.ConsumeRequest{}
	cmd := &cobra.Command{Use: "consume PLAYER ITEM=QUANTITY...", Short: "Take items from a player, all or none"}
	return write(a, cmd, req, (*api).Consume, holding(cmd, &req.HoldMs, &req.Refund))
}

func transferCommand(a *app) *cobra.Command {
	req := &kujiv1.TransferRequest{}
	cmd := &cobra.Command{Use: "transfer FROM TO ITEM=QUANTITY...", Short: "Move items between two players, all or none"}
	return write(a, cmd, req, (*api).Transfer, holding(cmd, &req.HoldMs, &req.Refund))
}
