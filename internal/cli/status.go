package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type statusJSON struct {
	Version  string            `json:"version"`
	Draining bool              `json:"draining"`
	Sync     string            `json:"sync"` // always, interval, none or off; unknown: the server does not say
	Realms   []realmStatusJSON `json:"realms"`
}

type realmStatusJSON struct {
	Realm             string `json:"realm"`
	Error             string `json:"error,omitempty"` // absent: healthy
	Position          uint64 `json:"position"`
	Epoch             uint64 `json:"epoch"`
	CatalogVersion    uint64 `json:"catalog_version"`
	Players           uint64 `json:"players"`
	Draws             uint64 `json:"draws"`
	Events            uint64 `json:"events"`
	Failures          uint64 `json:"failures"`
	Replays           uint64 `json:"replays"`
	LogBytes          uint64 `json:"log_bytes"`
	RequestIDs        uint64 `json:"request_ids"`
	PendingBytes      uint64 `json:"pending_bytes"`
	RecoveredPosition uint64 `json:"recovered_position"`
	RecoveredEvents   uint64 `json:"recovered_events"`
	Clock             int64  `json:"clock_unix_ms"`              // of the server's machine
	Time              int64  `json:"time_unix_ms"`               // the time stamp that a command would get
	Back              int64  `json:"back_ms"`                    // how far the clock was set back in all
	IDsFrom           int64  `json:"ids_from_unix_ms,omitempty"` // older request ids are refused
	Level             uint32 `json:"level"`                      // the realm's format level
	NewestLevel       uint32 `json:"newest_level"`               // that "kuji upgrade --finish" would raise it to
}

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the health and counters of every realm of a server",
		Long: `Status shows every realm of a server, or only the one that --realm names. Counters
start when the server opens the realm. TIME says whether the realm's time stamps
follow the clock of the server's machine: see "kuji clock set --help". Status ends
with exit code 1 if a realm has stopped.`,
		Example: "  kuji status",
		Args:    exactArgs(),
	}
	conn := a.clientCommand(cmd)
	realm := cmd.Flags().Lookup("realm")
	realm.Usage, realm.DefValue = "`name` of the only realm to show (default: all)", ""
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		req := &kujiv1.GetStatusRequest{}
		if cmd.Flags().Changed("realm") {
			req.Realm = c.realm
		}
		resp, err := call(cmd.Context(), c, "", c.admin.GetStatus, req)
		if err != nil {
			return err
		}
		out := newStatusJSON(resp)
		if err := a.print(out, func(w io.Writer) { printStatus(w, out) }); err != nil {
			return err
		}
		var stopped []error
		for _, r := range out.Realms {
			if r.Error != "" {
				stopped = append(stopped, fmt.Errorf("realm %s has stopped: %s", r.Realm, r.Error))
			}
		}
		return errors.Join(stopped...)
	})
	return cmd
}

func newStatusJSON(resp *kujiv1.GetStatusResponse) statusJSON {
	out := statusJSON{Version: resp.GetVersion(), Draining: resp.GetDraining(), Sync: syncName(resp.GetSync()), Realms: make([]realmStatusJSON, 0, len(resp.GetRealms()))}
	for _, r := range resp.GetRealms() {
		out.Realms = append(out.Realms, realmStatusJSON{
			Realm: r.GetRealm(), Error: r.GetError(), Position: r.GetPosition(), Epoch: r.GetEpoch(),
			CatalogVersion: r.GetCatalogVersion(), Players: r.GetPlayers(), Draws: r.GetDraws(), Events: r.GetEvents(),
			Failures: r.GetFailures(), Replays: r.GetReplays(), LogBytes: r.GetLogBytes(), RequestIDs: r.GetRequestIds(),
			PendingBytes: r.GetPendingBytes(), RecoveredPosition: r.GetRecoveredPosition(), RecoveredEvents: r.GetRecoveredEvents(),
			Clock: r.GetClockUnixMs(), Time: r.GetTimeUnixMs(), Back: r.GetBackMs(), IDsFrom: r.GetIdsFromUnixMs(),
			Level: r.GetLevel(), NewestLevel: r.GetNewestLevel(),
		})
	}
	return out
}

// syncName is a sync policy as --sync of serve names it.
func syncName(p kujiv1.SyncPolicy) string {
	if p == kujiv1.SyncPolicy_SYNC_POLICY_UNSPECIFIED {
		return "unknown"
	}
	return strings.ToLower(strings.TrimPrefix(p.String(), "SYNC_POLICY_"))
}

func printStatus(w io.Writer, s statusJSON) {
	state := "serving"
	if s.Draining {
		state = "shutting down"
	}
	fprintf(w, "version %s, %s, sync %s\n\n", s.Version, state, s.Sync)
	fprintf(w, "REALM\tSTATE\tPOSITION\tEPOCH\tCATALOG\tPLAYERS\tDRAWS\tFAILURES\tREPLAYS\tLOG BYTES\tTIME\n")
	for _, r := range s.Realms {
		health := "healthy"
		if r.Error != "" {
			health = "stopped"
		}
		fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", r.Realm, health, r.Position, r.Epoch,
			r.CatalogVersion, r.Players, r.Draws, r.Failures, r.Replays, r.LogBytes, kuji.ClockView{Wall: r.Clock, Time: r.Time, IDsFrom: r.IDsFrom})
	}
	for _, r := range s.Realms {
		if r.Level < r.NewestLevel {
			fprintf(w, "realm %s: its upgrade is not finished: format level %d of %d; see \"kuji upgrade --help\"\n", r.Realm, r.Level, r.NewestLevel)
		}
	}
}
