package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func tailCommand(a *app) *cobra.Command {
	var from, count uint64
	var player, pool string
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Show events as they come",
		Long: `Show the events of a realm as they come, once a crash can no longer undo them. The
command goes on until you interrupt it, or until it has shown --count events. After
a lost connection it goes on where it was; --timeout says how long it tries.

With --json, every event is an object on its own line, as "kuji log events" writes
it. If you store events, keep the position: after an event with "last", go on with
--from position+1, otherwise with --from position. Codes are redacted.`,
		Example: `  kuji tail
  kuji tail --from 1 --player ann
  kuji tail --pool splash --json`,
		Args: exactArgs(),
	}
	conn := a.connection(cmd.Flags())
	flags := cmd.Flags()
	flags.Uint64Var(&from, "from", 0, "first `position` to show; 1 is the beginning (default: what comes from now on)")
	flags.Uint64Var(&count, "count", 0, "end after so many events (default: never)")
	flags.StringVar(&player, "player", "", "only events about this `player`")
	flags.StringVar(&pool, "pool", "", "only events about this `pool`")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *api, _ []string) error {
		req := &kujiv1.StreamEventsRequest{Realm: c.realm, Player: player, Pool: pool}
		if cmd.Flags().Changed("from") {
			req.From = &from
		}
		for m, err := range c.Events(cmd.Context(), req) {
			if err != nil {
				return err
			}
			for _, e := range m.GetEvents() {
				if err := showEvent(a, e); err != nil {
					return err
				}
				if count--; count == 0 { // from 0 it goes round, and never ends
					return nil
				}
			}
		}
		return nil
	})
	return cmd
}

// showEvent writes an event on a line of its own.
func showEvent(a *app, e *kujiv1.Event) error {
	rec := recordOf(e)
	if a.json {
		return a.writeJSON(rec)
	}
	line := sprintf("%d.%d  %s  %s\n", e.GetPosition(), e.GetIndex(), timeText(e.GetTimeUnixMs()), recordText(&rec))
	_, err := io.WriteString(a.stdout, line)
	return err
}

// recordText says in a line what an event, or a member of a group, was.
func recordText(rec *kuji.Record) string {
	var b strings.Builder
	add := func(format string, args ...any) { fprintf(&b, " "+format, args...) }
	b.WriteString(rec.Kind)
	if rec.NewCatalogVersion > 0 {
		add("version %d", rec.NewCatalogVersion)
	}
	for _, s := range []string{rec.Player, rec.Pool, rec.Track, rec.List} {
		if s != "" {
			add("%s", word(s))
		}
	}
	if rec.Count > 1 {
		add("x%d", rec.Count)
	}
	for _, s := range rec.Items {
		add("%d %s", s.Quantity, word(s.Item))
	}
	if rec.To != "" {
		add("to %s", word(rec.To))
	}
	add("%s", rec.Status)
	if rec.Subject != "" {
		add("(%s)", word(rec.Subject))
	}
	for i, o := range rec.Outcomes {
		add("%s%s", map[bool]string{true: "→ "}[i == 0], word(o.Entry))
		for _, s := range o.Items {
			add("+%d %s", s.Quantity, word(s.Item))
		}
	}
	for i := range rec.Members {
		add("[%s]", recordText(&rec.Members[i]))
	}
	if rec.ID != "" {
		add("id %s", word(rec.ID))
	}
	return b.String()
}

// recordOf makes the record of an event.
func recordOf(e *kujiv1.Event) kuji.Record {
	rec := kuji.Record{
		Position: e.GetPosition(), Index: int(e.GetIndex()), Last: e.GetLast(), Time: e.GetTimeUnixMs(), Kind: e.GetKind(), ID: e.GetRequestId(),
		Status: contract.Word(e.GetStatus()), Subject: e.GetSubject(), CatalogVersion: e.GetCatalogVersion(), Player: e.GetPlayer(), To: e.GetTo(),
		Pool: e.GetPool(), Count: int(e.GetCount()), List: e.GetList(), Number: e.Number, Pay: e.GetPay(), Items: kujiStacks(e.GetItems()),
		Paid: kujiStacks(e.GetPaid()), Track: e.GetTrack(), Draws: e.Draws, By: e.GetBy(), Reason: e.GetReason(), Metadata: e.GetMetadata(),
		Bytes: int(e.GetBytes()), NewCatalogVersion: e.GetNewCatalogVersion(),
	}
	if l := e.GetLimit(); l != nil {
		rec.Limit = &kuji.Limit{Per: perOf(l.GetPer()), Window: l.GetWindowMs(), Draws: l.GetDraws(), Left: l.GetLeft(), Resets: l.GetResetsUnixMs()}
	}
	for _, l := range e.GetLacks() {
		rec.Lacks = append(rec.Lacks, kuji.Lack{Item: l.GetItem(), Have: l.GetHave(), Need: l.GetNeed()})
	}
	for _, o := range e.GetOutcomes() {
		out := kuji.Outcome{Entry: o.GetEntry(), Items: kujiStacks(o.GetItems()), Via: o.GetVia(), Draw: int(o.GetDraw())}
		for _, code := range o.GetCodes() {
			out.Codes = append(out.Codes, kuji.RewardCode{List: code.GetList(), Number: code.GetNumber(), Code: code.GetCode()})
		}
		rec.Outcomes = append(rec.Outcomes, out)
	}
	for _, m := range e.GetMembers() {
		rec.Members = append(rec.Members, recordOf(m))
	}
	for _, c := range e.GetChanges() {
		rec.Changes = append(rec.Changes, kuji.BalanceChange{Player: c.GetPlayer(), Item: c.GetItem(), Delta: c.GetDelta(), Balance: c.Balance})
	}
	rec.Level = uint8(e.GetLevel())
	if c := e.GetClock(); c != nil {
		rec.Clock = &kuji.ClockSet{To: c.GetToUnixMs(), By: c.GetBy(), Reason: c.GetReason()}
	}
	return rec
}

func kujiStacks(all []*kujiv1.Stack) []kuji.Stack {
	var out []kuji.Stack
	for _, s := range all {
		out = append(out, kuji.Stack{Item: s.GetItem(), Quantity: s.GetQuantity()})
	}
	return out
}

// perOf is the inverse of what the server makes of a limit's period: the numbers are the same.
func perOf(p kujiv1.LimitPeriod) catalog.Per { return catalog.Per(p) }
