package cli

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (a *app) tailCommand() *cobra.Command {
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
	conn := a.clientCommand(cmd)
	flags := cmd.Flags()
	flags.Uint64Var(&from, "from", 0, "first `position` to show; 1 is the beginning (default: what comes from now on)")
	flags.Uint64Var(&count, "count", 0, "end after so many events (default: never)")
	flags.StringVar(&player, "player", "", "only events about this `player`")
	flags.StringVar(&pool, "pool", "", "only events about this `pool`")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		t := &follower{c: c, req: &kujiv1.StreamEventsRequest{Realm: c.realm, Player: player, Pool: pool}}
		t.take = func(events []*kujiv1.Event, _ uint64) error {
			for _, e := range events {
				if err := a.showEvent(e); err != nil {
					return err
				}
				if count > 0 {
					if count--; count == 0 {
						return errFeedDone
					}
				}
			}
			return nil
		}
		if cmd.Flags().Changed("from") {
			t.req.From = &from
		}
		return t.run(cmd.Context())
	})
	return cmd
}

// follower reads the events of a stream, and begins again where one ended.
type follower struct {
	c   *client
	req *kujiv1.StreamEventsRequest
	// take gets the events of a message, maybe none, and from where a reader goes on who has them. The
	// events before are never repeated.
	take func(events []*kujiv1.Event, next uint64) error
	// The last event that was taken: after a lost connection it may come again.
	position uint64
	index    uint32
}

// errFeedDone is what take returns when it wants no more.
var errFeedDone = errors.New("all were taken")

func (t *follower) run(ctx context.Context) error {
	begun, pause := time.Now(), firstPause
	for {
		came, err := t.follow(ctx)
		if came {
			begun, pause = time.Now(), firstPause
		}
		again, _ := retryable(err)
		switch {
		case errors.Is(err, errFeedDone):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !again || time.Since(begun) > t.c.timeout:
			return err
		case pause == firstPause:
			t.c.note("kuji: the feed broke off (%v); trying again for %v", shortError(err), t.c.timeout)
		}
		wait := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
		pause = min(2*pause, lastPause)
	}
}

// follow takes what one stream brings. came is true if that was anything.
func (t *follower) follow(ctx context.Context) (came bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before Close, which would read on
	s, err := t.c.rewards.StreamEvents(ctx, t.req)
	if err != nil {
		return false, err
	}
	for s.Receive() {
		came = true
		events := s.Msg().GetEvents()
		for len(events) > 0 && t.has(events[0]) {
			events = events[1:]
		}
		if n := len(events); n > 0 {
			t.position, t.index = events[n-1].GetPosition(), events[n-1].GetIndex()
		}
		if err := t.take(events, s.Msg().GetNext()); err != nil {
			return true, err
		}
		next := s.Msg().GetNext()
		t.req.From = &next
	}
	if err := s.Err(); err != nil {
		return came, err
	}
	return came, connect.NewError(connect.CodeUnavailable, errors.New("the server ended the feed"))
}

// has reports whether an event was taken.
func (t *follower) has(e *kujiv1.Event) bool {
	return e.GetPosition() < t.position || e.GetPosition() == t.position && e.GetIndex() <= t.index
}

// showEvent writes an event on a line of its own.
func (a *app) showEvent(e *kujiv1.Event) error {
	rec := recordOf(e)
	if a.json {
		a.printed = true
		return newJSON(a.stdout).Encode(rec)
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

func statusWord(s kujiv1.Status) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STATUS_"))
}

// recordOf makes the record of an event.
func recordOf(e *kujiv1.Event) kuji.Record {
	rec := kuji.Record{
		Position: e.GetPosition(), Index: int(e.GetIndex()), Last: e.GetLast(), Time: e.GetTimeUnixMs(), Kind: e.GetKind(), ID: e.GetRequestId(),
		Status: statusWord(e.GetStatus()), Subject: e.GetSubject(), CatalogVersion: e.GetCatalogVersion(), Player: e.GetPlayer(), To: e.GetTo(),
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
