package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// identityCommands are the commands of kuji player that change who a player is.
func identityCommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		blockCommand(a, "block", "Let a player do nothing any more, by no name", false),
		forgetCommand(a), linkCommand(a), linkCodeCommand(a), mergeCommand(a),
		blockCommand(a, "unblock", "Let a player who is blocked in again", true),
		unlinkCommand(a),
	}
}

func linkCodeCommand(a *app) *cobra.Command {
	req := &kujiv1.LinkCodeRequest{}
	cmd := &cobra.Command{Use: "link-code PLAYER", Short: "Give a player a code, with which another name can be linked in the next ten minutes"}
	cmd.Flags().StringVar(&req.Code, "code", "", "the `code` (default: a new one, which is printed)")
	call := func(c *api, ctx context.Context, req *kujiv1.LinkCodeRequest) (*kujiv1.LinkCodeResponse, error) {
		resp, err := c.LinkCode(ctx, req)
		if resp.GetResult().GetStatus() == kujiv1.Status_STATUS_OK {
			if a.json {
				a.note("the code is %s", req.GetCode())
			} else {
				fprintf(output{a}, "code      %s\n", req.GetCode())
			}
		}
		return resp, err
	}
	return write(a, cmd, req, call, func() error {
		if req.GetCode() == "" {
			req.Code = kuji.NewLinkCode()
		}
		return nil
	})
}

func linkCommand(a *app) *cobra.Command {
	req := &kujiv1.LinkRequest{}
	cmd := &cobra.Command{Use: "link NAME", Short: "Make a name another name of a player: the one with a code, or the one of --to"}
	cmd.Flags().StringVar(&req.Code, "code", "", "the `code` of the player: see kuji player link-code")
	cmd.Flags().StringVar(&req.To, "to", "", "the `player`, in place of a code")
	return write(a, cmd, req, (*api).Link, func() error {
		if (req.GetCode() == "") == (req.GetTo() == "") {
			return usagef("expected either --code or --to: whose name it becomes")
		}
		req.Player = cmd.Flags().Arg(0)
		return nil
	})
}

func unlinkCommand(a *app) *cobra.Command {
	req := &kujiv1.UnlinkRequest{}
	cmd := &cobra.Command{Use: "unlink NAME", Short: "Make a name that was linked one of nobody"}
	return write(a, cmd, req, (*api).Unlink, func() error {
		req.Player = cmd.Flags().Arg(0)
		return nil
	})
}

func mergeCommand(a *app) *cobra.Command {
	req := &kujiv1.MergeRequest{}
	cmd := &cobra.Command{Use: "merge PLAYER FROM", Short: "Make two players one: PLAYER gets all that FROM has. It cannot be undone"}
	cmd.Flags().BoolVar(&req.Strict, "strict", false, "tracks stay where they are further from their hit (default: where they are nearer)")
	return write(a, cmd, req, (*api).Merge, final(a, cmd, func() (string, string) {
		return "merged", "player " + word(req.GetPlayer()) + " gets all that " + word(req.GetFrom()) + " has"
	}))
}

func forgetCommand(a *app) *cobra.Command {
	req := &kujiv1.ForgetRequest{}
	cmd := &cobra.Command{Use: "forget PLAYER", Short: "Take all that a player has, and the player's names, out of the realm. It cannot be undone"}
	return write(a, cmd, req, (*api).Forget, final(a, cmd, func() (string, string) {
		return "forgotten", "player " + word(req.GetPlayer()) + " loses everything, and is forgotten by all names"
	}))
}

// final says what cannot be undone, and refuses it without the flag that confirms it.
func final(a *app, cmd *cobra.Command, what func() (done, how string)) func() error {
	yes := cmd.Flags().BoolP("yes", "y", false, "do it: it cannot be undone (required)")
	return func() error {
		done, how := what()
		if !*yes {
			return refusedError{"not " + done + ": " + how + ". It cannot be undone. Repeat with --yes to do it"}
		}
		a.note("%s. It cannot be undone", how)
		return nil
	}
}

func blockCommand(a *app, name, short string, ends bool) *cobra.Command {
	req := &kujiv1.BlockRequest{Ends: ends}
	cmd := &cobra.Command{Use: name + " PLAYER --reason TEXT", Short: short}
	return write(a, cmd, req, (*api).Block, needsReason(cmd, "the player is "+name+"ed"))
}

// needsReason refuses a command without a reason.
func needsReason(cmd *cobra.Command, what string) func() error {
	return func() error {
		if cmd.Flag("reason").Value.String() == "" {
			return usagef("missing flag --reason: why %s", what)
		}
		return nil
	}
}
