package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (a *app) grantCommand() *cobra.Command {
	return a.itemsCommand(&cobra.Command{
		Use:     "grant PLAYER ITEM=QUANTITY...",
		Short:   "Give items to a player",
		Example: "  kuji grant ann starlight=1600 stardust=10",
	}, []string{"PLAYER"}, func(ctx context.Context, c *client, id string, players []string, items []*kujiv1.Stack, why reasons) (*kujiv1.Result, error) {
		resp, err := call(ctx, c, id, c.rewards.Grant, &kujiv1.GrantRequest{
			Realm: c.realm, RequestId: id, Player: players[0], Items: items, Reason: why.reason, Metadata: why.metadata,
		})
		return resp.GetResult(), err
	})
}

func (a *app) consumeCommand() *cobra.Command {
	return a.itemsCommand(&cobra.Command{
		Use:     "consume PLAYER ITEM=QUANTITY...",
		Short:   "Take items from a player, all or none",
		Example: "  kuji consume ann stardust=5",
	}, []string{"PLAYER"}, func(ctx context.Context, c *client, id string, players []string, items []*kujiv1.Stack, why reasons) (*kujiv1.Result, error) {
		resp, err := call(ctx, c, id, c.rewards.Consume, &kujiv1.ConsumeRequest{
			Realm: c.realm, RequestId: id, Player: players[0], Items: items, Reason: why.reason, Metadata: why.metadata,
		})
		return resp.GetResult(), err
	})
}

func (a *app) transferCommand() *cobra.Command {
	return a.itemsCommand(&cobra.Command{
		Use:     "transfer FROM TO ITEM=QUANTITY...",
		Short:   "Move items between two players, all or none",
		Example: "  kuji transfer ann bob starlight=160",
	}, []string{"FROM", "TO"}, func(ctx context.Context, c *client, id string, players []string, items []*kujiv1.Stack, why reasons) (*kujiv1.Result, error) {
		resp, err := call(ctx, c, id, c.rewards.Transfer, &kujiv1.TransferRequest{
			Realm: c.realm, RequestId: id, From: players[0], To: players[1], Items: items, Reason: why.reason, Metadata: why.metadata,
		})
		return resp.GetResult(), err
	})
}

// reasons is what the log keeps of why something was asked.
type reasons struct{ reason, metadata string }

// newReasons adds the flags that say why.
func newReasons(cmd *cobra.Command) *reasons {
	r := new(reasons)
	cmd.Flags().StringVar(&r.reason, "reason", "", "why: the log keeps it, with the name of the API key")
	cmd.Flags().StringVar(&r.metadata, "metadata", "", "any `text` of at most 1024 bytes to find in the log, such as an order's number")
	return r
}

// sendItems sends one command that moves items of the players named.
type sendItems func(ctx context.Context, c *client, id string, players []string, items []*kujiv1.Stack, why reasons) (*kujiv1.Result, error)

// itemsCommand completes a command whose arguments are players and then items.
func (a *app) itemsCommand(cmd *cobra.Command, players []string, send sendItems) *cobra.Command {
	var id string
	cmd.Args = atLeastItem(players...)
	conn := a.clientCommand(cmd)
	cmd.Flags().StringVar(&id, "id", "", idFlagHelp)
	why := newReasons(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		items, err := parseItems(args[len(players):])
		if err != nil {
			return err
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		id := requestID(id)
		result, err := send(cmd.Context(), c, id, args[:len(players)], items, *why)
		return a.finish(id, 0, result, err)
	}
	return cmd
}

// parseItems reads ITEM=QUANTITY arguments. Beyond its being a number, the
// server judges a quantity.
func parseItems(args []string) ([]*kujiv1.Stack, error) {
	items := make([]*kujiv1.Stack, 0, len(args))
	for _, arg := range args {
		item, text, ok := strings.Cut(arg, "=")
		if !ok || item == "" {
			return nil, usageError{fmt.Errorf("argument %q: expected ITEM=QUANTITY, as in gems=100", arg)}
		}
		quantity, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, usageError{fmt.Errorf("argument %q: expected a whole number after the equals sign", arg)}
		}
		items = append(items, &kujiv1.Stack{Item: item, Quantity: quantity})
	}
	return items, nil
}
