package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func realmCommand(a *app) *cobra.Command {
	return group("realm", "Delete a realm", realmDeleteCommand(a))
}

func realmDeleteCommand(a *app) *cobra.Command {
	req := &kujiv1.DeleteRealmRequest{}
	cmd := &cobra.Command{Use: "delete NAME --confirm NAME", Short: "Delete a realm of a server, with its log and its files. It cannot be undone"}
	cmd.Flags().StringVar(&req.Confirm, "confirm", "", "the realm's `name` once more (required)")
	return a.online(cmd, func(ctx context.Context, c *api, args []string) error {
		req.Realm = args[0]
		if req.GetConfirm() != req.GetRealm() {
			return refusedError{"not deleted: realm " + word(req.GetRealm()) + " goes with its log and its files. It cannot be undone. Repeat with --confirm " + word(req.GetRealm()) + " to do it"}
		}
		a.note("realm %s goes with its log and its files. It cannot be undone", word(req.GetRealm()))
		resp, err := c.DeleteRealm(ctx, req)
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { fprintf(w, "realm %s is deleted\n", word(req.GetRealm())) })
	})
}
