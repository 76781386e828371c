package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/cluster"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/verify"
)

type upgradeJSON struct {
	Realms []upgradeRealmJSON `json:"realms"`
}

type upgradeRealmJSON struct {
	Realm    string `json:"realm"`
	Level    uint32 `json:"level"`              // the format level that it has now
	From     uint32 `json:"from_level"`         // that it had before; the same: nothing was done
	Newest   uint32 `json:"newest_level"`       // that the server, or all nodes of the cluster, know
	Position uint64 `json:"position,omitempty"` // of the event in the log
}

func upgradeCommand(a *app) *cobra.Command {
	var data, reason string
	var finish bool
	cmd := &cobra.Command{Use: "upgrade", Short: "Show the format level of each realm, or finish an upgrade"}
	conn := a.connection(cmd.Flags()).allRealms()
	cmd.Flags().BoolVar(&finish, "finish", false, "raise the realms to the newest format level: no older build opens them again")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log: at most 200 bytes of `text`")
	cmd.Flags().StringVar(&data, "data", "", "data `directory` that no server has open, instead of asking a server")
	online := conn.run(func(ctx context.Context, c *api, _ []string) error {
		out, err := upgradeServer(ctx, c, conn.only(), finish, reason)
		return printUpgrade(a, out, err)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if reason != "" && !finish {
			return usagef("--reason without --finish: without it, the levels are only shown")
		}
		if data == "" {
			return online(cmd, args)
		}
		if err := conn.notWith("data"); err != nil {
			return err
		}
		if cluster.IsNode(data) {
			return refusedError{fmt.Sprintf("--data %s belongs to a node of a cluster: ask the cluster, while it runs", data)}
		}
		if !finish {
			out, err := levelsOf(cmd.Context(), data, conn.only())
			return printUpgrade(a, out, err)
		}
		out, err := finishData(cmd.Context(), data, conn.only(), reason)
		return printUpgrade(a, out, err)
	}
	return cmd
}

// upgradeServer shows, or finishes, the upgrade of a server's realms.
func upgradeServer(ctx context.Context, c *api, only string, finish bool, reason string) (out upgradeJSON, err error) {
	resp, err := c.GetStatus(ctx, &kujiv1.GetStatusRequest{Realm: only})
	if err != nil {
		return out, err
	}
	for _, r := range resp.GetRealms() {
		one := upgradeRealmJSON{Realm: r.GetRealm(), Level: r.GetLevel(), From: r.GetLevel(), Newest: r.GetNewestLevel()}
		if finish {
			done, err := c.FinishUpgrade(ctx, &kujiv1.FinishUpgradeRequest{Realm: r.GetRealm(), Reason: reason})
			if err != nil {
				return out, err
			}
			one.Level, one.From, one.Position = done.GetToLevel(), done.GetFromLevel(), done.GetPosition()
		}
		out.Realms = append(out.Realms, one)
	}
	return out, nil
}

// levelsOf shows the levels in a data directory. It writes nothing: a build that opens a log for writing
// begins an epoch in it, and d61c231 refuses a log that has one of another build.
func levelsOf(ctx context.Context, data, only string) (out upgradeJSON, err error) {
	names, err := oneOr(only, func() ([]string, error) {
		names, _, err := realmsIn(data)
		return names, err
	})
	for _, name := range names {
		rep, err := inDirectory(data).verifyRealm(ctx, name, verify.Options{})
		if err != nil {
			return out, err
		}
		level := uint32(rep.Level)
		out.Realms = append(out.Realms, upgradeRealmJSON{Realm: name, Level: level, From: level, Newest: uint32(kuji.FormatLevel())})
	}
	return out, err
}

// finishData finishes the upgrade of a data directory's realms. It opens all before it raises one: there is no way back.
func finishData(ctx context.Context, data, only, reason string) (out upgradeJSON, err error) {
	if err := refuseBackup(data); err != nil {
		return out, err
	}
	engine, err := kuji.Open(data, kuji.Options{MustExist: true})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	names, err := oneOr(only, engine.Realms)
	var realms []*kuji.Realm
	for _, name := range names {
		r, err := engine.Lookup(name)
		if err != nil {
			return out, err
		}
		realms = append(realms, r)
	}
	for _, r := range realms {
		newest := uint32(r.Stats().NewestLevel)
		up, err := r.FinishUpgrade(ctx, "offline", reason)
		if err != nil {
			return out, err
		}
		out.Realms = append(out.Realms, upgradeRealmJSON{Realm: r.Name(), Level: uint32(up.To), From: uint32(up.From), Newest: newest, Position: up.Receipt.Position})
	}
	return out, err
}

func printUpgrade(a *app, out upgradeJSON, failed error) error {
	if failed != nil && len(out.Realms) == 0 {
		return failed
	}
	return errors.Join(a.print(out, func(w io.Writer) {
		rows(w, "REALM\tLEVEL\tNEWEST\tUPGRADE", out.Realms, func(r upgradeRealmJSON) []any {
			state := "finished"
			switch {
			case r.Newest == 0: // the server does not say: it is d61c231, or a build before it
				state = "not begun: the server is of a build without levels"
			case r.Level < r.Newest:
				state = "not finished: --finish raises it"
			case r.From < r.Level:
				state = fmt.Sprintf("finished now, from level %d", r.From)
			}
			return []any{r.Realm, r.Level, r.Newest, state}
		})
	}), failed)
}
