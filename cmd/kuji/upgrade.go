package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
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

func (a *app) upgradeCommand() *cobra.Command {
	var data, reason string
	var finish bool
	cmd := &cobra.Command{
		Use:     "upgrade",
		Short:   "Show the format level of each realm, or finish an upgrade",
		GroupID: "client",
		Long: `Upgrade shows the format level of every realm, or only of the one that --realm names.

A new build leaves realms at their level, so that the older build can take them back. It
refuses new commands, and new words in catalogs, until the upgrade is finished. --finish
raises the realms to the newest level. From then on the older build refuses them, and
the only way back is a backup. Do it when you are sure that you will not go back.

In a cluster, all nodes must run the new build: --finish is refused while an older one
runs.

With --data, upgrade does the same in a data directory that no server has open. It opens
the realms as a server does, so each begins and ends an epoch.`,
		Example: `  kuji upgrade
  kuji upgrade --finish --reason "a week without trouble"
  kuji upgrade --finish --data ./kuji-data`,
		Args: exactArgs(),
	}
	conn := a.clientCommand(cmd)
	realm := cmd.Flags().Lookup("realm")
	realm.Usage, realm.DefValue = "`name` of the only realm (default: all)", ""
	cmd.Flags().BoolVar(&finish, "finish", false, "raise the realms to the newest format level: no older build opens them again")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log: at most 200 bytes of `text`")
	cmd.Flags().StringVar(&data, "data", "", "data `directory` that no server has open, instead of asking a server")
	online := conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		only := ""
		if cmd.Flags().Changed("realm") {
			only = c.realm
		}
		out, err := upgradeServer(cmd.Context(), c, only, finish, reason)
		return a.printUpgrade(out, err)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if data == "" {
			return online(cmd, args)
		}
		if cmd.Flags().Changed("server") {
			return usageError{errors.New("--data with --server: expected one of them")}
		}
		only := ""
		if cmd.Flags().Changed("realm") {
			only = realm.Value.String()
		}
		out, err := upgradeData(cmd.Context(), data, only, finish, reason)
		return a.printUpgrade(out, err)
	}
	return cmd
}

// upgradeServer shows, or finishes, the upgrade of a server's realms.
func upgradeServer(ctx context.Context, c *client, only string, finish bool, reason string) (out upgradeJSON, err error) {
	resp, err := call(ctx, c, "", c.admin.GetStatus, &kujiv1.GetStatusRequest{Realm: only})
	if err != nil {
		return out, err
	}
	for _, r := range resp.GetRealms() {
		one := upgradeRealmJSON{Realm: r.GetRealm(), Level: r.GetLevel(), From: r.GetLevel(), Newest: r.GetNewestLevel()}
		if finish {
			done, err := call(ctx, c, "", c.admin.FinishUpgrade, &kujiv1.FinishUpgradeRequest{Realm: r.GetRealm(), Reason: reason})
			if err != nil {
				return out, err
			}
			one.Level, one.From, one.Position = done.GetToLevel(), done.GetFromLevel(), done.GetPosition()
		}
		out.Realms = append(out.Realms, one)
	}
	return out, nil
}

// upgradeData does the same with a data directory.
func upgradeData(ctx context.Context, data, only string, finish bool, reason string) (out upgradeJSON, err error) {
	engine, err := kuji.Open(data, kuji.Options{MustExist: true})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	names := []string{only}
	if only == "" {
		if names, err = engine.Realms(); err != nil {
			return out, err
		}
	}
	for _, name := range names {
		r, err := engine.Lookup(name)
		if err != nil {
			return out, err
		}
		st := r.Stats()
		one := upgradeRealmJSON{Realm: name, Level: uint32(st.Level), From: uint32(st.Level), Newest: uint32(st.NewestLevel)}
		if finish {
			up, err := r.FinishUpgrade(ctx, "offline", reason)
			if err != nil {
				return out, err
			}
			one.Level, one.Position = uint32(up.To), up.Receipt.Position
		}
		out.Realms = append(out.Realms, one)
	}
	return out, nil
}

func (a *app) printUpgrade(out upgradeJSON, failed error) error {
	if failed != nil && len(out.Realms) == 0 {
		return failed
	}
	return errors.Join(a.print(out, func(w io.Writer) {
		fprintf(w, "REALM\tLEVEL\tNEWEST\tUPGRADE\n")
		for _, r := range out.Realms {
			state := "finished"
			switch {
			case r.Level < r.Newest:
				state = "not finished: an older build can still take it back"
			case r.From < r.Level:
				state = fmt.Sprintf("finished now, from level %d", r.From)
			}
			fprintf(w, "%s\t%d\t%d\t%s\n", r.Realm, r.Level, r.Newest, state)
		}
	}), failed)
}
