package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func grantCommand(a *app) *cobra.Command {
	req := &kujiv1.GrantRequest{}
	return write(a, &cobra.Command{
		Use:     "grant PLAYER ITEM=QUANTITY...",
		Short:   "Give items to a player",
		Example: "  kuji grant ann starlight=1600 stardust=10",
		Args:    atLeastItem("PLAYER"),
	}, req, (*api).Grant, func(args []string) (err error) {
		req.Player = args[0]
		req.Items, err = parseItems(args[1:])
		return err
	})
}

func consumeCommand(a *app) *cobra.Command {
	req := &kujiv1.ConsumeRequest{}
	return write(a, &cobra.Command{
		Use:     "consume PLAYER ITEM=QUANTITY...",
		Short:   "Take items from a player, all or none",
		Example: "  kuji consume ann stardust=5",
		Args:    atLeastItem("PLAYER"),
	}, req, (*api).Consume, func(args []string) (err error) {
		req.Player = args[0]
		req.Items, err = parseItems(args[1:])
		return err
	})
}

func transferCommand(a *app) *cobra.Command {
	req := &kujiv1.TransferRequest{}
	return write(a, &cobra.Command{
		Use:     "transfer FROM TO ITEM=QUANTITY...",
		Short:   "Move items between two players, all or none",
		Example: "  kuji transfer ann bob starlight=160",
		Args:    atLeastItem("FROM", "TO"),
	}, req, (*api).Transfer, func(args []string) (err error) {
		req.From, req.To = args[0], args[1]
		req.Items, err = parseItems(args[2:])
		return err
	})
}

// parseItems reads ITEM=QUANTITY arguments. Beyond its being a number, the server judges a quantity.
func parseItems(args []string) ([]*kujiv1.Stack, error) {
	items := make([]*kujiv1.Stack, 0, len(args))
	for _, arg := range args {
		item, text, ok := strings.Cut(arg, "=")
		if !ok || item == "" {
			return nil, usagef("argument %q: expected ITEM=QUANTITY, as in gems=100", arg)
		}
		quantity, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, usagef("argument %q: expected a whole number after the equals sign", arg)
		}
		items = append(items, &kujiv1.Stack{Item: item, Quantity: quantity})
	}
	return items, nil
}
