package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func statusCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show the health and counters of every realm of a server"}
	conn := a.connection(cmd.Flags()).allRealms()
	cmd.RunE = conn.run(func(ctx context.Context, c *api, _ []string) error {
		resp, err := c.GetStatus(ctx, &kujiv1.GetStatusRequest{Realm: conn.only()})
		if err != nil {
			return err
		}
		if err := a.print(resp, func(w io.Writer) { printStatus(w, resp) }); err != nil {
			return err
		}
		return errors.Join(each(resp.GetRealms(), func(r *kujiv1.RealmStatus) error {
			if r.GetError() == "" {
				return nil
			}
			return fmt.Errorf("realm %s has stopped: %s", r.GetRealm(), r.GetError())
		})...)
	})
	return cmd
}

func printStatus(w io.Writer, s *kujiv1.GetStatusResponse) {
	state := choose(s.GetDraining(), "shutting down", "serving")
	fprintf(w, "version %s, %s, sync %s\n\n", s.GetVersion(), state, contract.Word(s.GetSync()))
	rows(w, "REALM\tSTATE\tPOSITION\tEPOCH\tCATALOG\tPLAYERS\tDRAWS\tFAILURES\tREPLAYS\tLOG BYTES\tTIME", s.GetRealms(), func(r *kujiv1.RealmStatus) []any {
		health := choose(r.GetError() != "", "stopped", "healthy")
		return []any{r.GetRealm(), health, r.GetPosition(), r.GetEpoch(), r.GetCatalogVersion(), r.GetPlayers(), r.GetDraws(), r.GetFailures(),
			r.GetReplays(), r.GetLogBytes(), kuji.ClockView{Wall: r.GetClockUnixMs(), Time: r.GetTimeUnixMs(), IDsFrom: r.GetIdsFromUnixMs()}}
	})
	for _, r := range s.GetRealms() {
		if r.GetLevel() < r.GetNewestLevel() {
			fprintf(w, "realm %s: its upgrade is not finished: format level %d of %d; see \"kuji upgrade --help\"\n", r.GetRealm(), r.GetLevel(), r.GetNewestLevel())
		}
	}
}
