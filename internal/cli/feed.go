package cli

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/client"
	"github.com/kuji-dev/kuji/history"
	"github.com/kuji-dev/kuji/internal/contract"
	"github.com/kuji-dev/kuji/internal/step"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/sink"
)

type feedFlags struct {
	to           string
	secretFile   string
	position     string
	player, pool string
	from         uint64
	allowPrivate bool
	historyAge   time.Duration
}

type feedJSON struct {
	Position uint64 `json:"position"` // where the next process continues
}

func feedCommand(a *app) *cobra.Command {
	var f feedFlags
	cmd := &cobra.Command{Use: "feed --to URL", Short: "Deliver events to a webhook, Kafka or PostgreSQL"}
	conn := a.connection(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "`URL` of the target (required)")
	flags.StringVar(&f.secretFile, "secret-file", "", "`file` with the webhook's secret, whsec_…; with several, each signs")
	flags.StringVar(&f.position, "position", "", "`file` that keeps how far the webhook has come; made if it is not there")
	flags.BoolVar(&f.allowPrivate, "allow-private", false, "let the webhook be http, or at an address of this machine or its network")
	flags.Uint64Var(&f.from, "from", 1, "where a target begins that has nothing yet: a `position`; not for PostgreSQL")
	flags.DurationVar(&f.historyAge, "history-age", 0, "for how long PostgreSQL keeps events, such as 2160h; older ones are removed (default: all are kept)")
	flags.StringVar(&f.player, "player", "", "only events about this `player`; not for PostgreSQL")
	flags.StringVar(&f.pool, "pool", "", "only events about this `pool`; not for PostgreSQL")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd.Flags().Changed); err != nil {
			return err
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		done, err := feed(cmd.Context(), a, c, &f)
		if err = unlessStopped(cmd.Context(), err); err != nil {
			return err
		}
		return a.print(done, func(w io.Writer) {
			fprintf(w, "the feed continues at position %d\n", done.Position)
		})
	}
	return cmd
}

func (f *feedFlags) webhook() bool {
	return strings.HasPrefix(f.to, "https://") || strings.HasPrefix(f.to, "http://")
}

func (f *feedFlags) kafka() bool { return strings.HasPrefix(f.to, "kafka://") }

// onlyFor says of flags for which targets they are.
var onlyFor = []struct{ flags, targets string }{
	{"secret-file position allow-private", "webhooks"},
	{"history-age", "PostgreSQL"},
	{"from player pool", "webhooks and Kafka: PostgreSQL has the whole realm"},
}

// check checks which flags are given together. It never says the URL, which may have a password in it.
func (f *feedFlags) check(given func(flag string) bool) error {
	target := ""
	switch {
	case f.to == "":
		return usagef("missing flag --to: where the events go")
	case f.webhook():
		target = "webhooks"
	case f.kafka():
		target = "Kafka"
	case history.IsURL(f.to):
		target = "PostgreSQL"
	default:
		return usagef("--to: expected https://…, kafka://… or postgres://…")
	}
	for _, only := range onlyFor {
		targets, _, _ := strings.Cut(only.targets, ":")
		for flag := range strings.FieldsSeq(only.flags) {
			if given(flag) && !strings.Contains(targets, target) {
				return usagef("--%s is only for %s", flag, only.targets)
			}
		}
	}
	if f.webhook() && (f.secretFile == "" || f.position == "") {
		return usagef("a webhook needs --secret-file and --position")
	}
	return atLeast("history-age", f.historyAge, 0)
}

// feed delivers until ctx ends or something fails for good.
func feed(ctx context.Context, a *app, c *api, f *feedFlags) (done feedJSON, err error) {
	handler := choose[slog.Handler](a.json, slog.NewJSONHandler(a.stderr, nil), slog.NewTextHandler(a.stderr, nil))
	log := slog.New(handler).With("realm", c.realm)
	if history.IsURL(f.to) {
		return c.feedHistory(ctx, f, log)
	}
	var target sink.Target
	of := sink.Feed{Realm: c.realm, Player: f.player, Pool: f.pool}
	if f.kafka() {
		target, err = sink.NewKafka(sink.Kafka{URL: f.to, Feed: of, Log: log})
	} else {
		secrets, bad := a.readFile(f.secretFile, maxSecret)
		if bad != nil {
			return done, bad
		}
		target, err = sink.NewWebhook(sink.Webhook{
			URL: f.to, Secrets: string(secrets), Position: filepath.ToSlash(f.position), Feed: of, AllowPrivate: f.allowPrivate, Log: log})
	}
	if err != nil {
		return done, err
	}
	if end, ok := target.(interface{ Close() }); ok {
		defer end.Close()
	}
	run, err := sink.Run(ctx, c.source(f.player, f.pool), target, f.from, log)
	return feedJSON{run.To.Position}, err
}

// source returns the feed of a server.
func (c *api) source(player, pool string) sink.Source {
	return func(ctx context.Context, from uint64) iter.Seq2[sink.Step, error] {
		return func(yield func(sink.Step, error) bool) {
			for m, err := range c.Events(ctx, &kujiv1.StreamEventsRequest{Realm: c.realm, From: &from, Player: player, Pool: pool}) {
				if err != nil {
					err = feedError(err)
				}
				if !yield(sink.Step{Next: m.GetNext(), Events: each(m.GetEvents(), recordOf)}, err) {
					return
				}
			}
		}
	}
}

// feedError gives what a server said of the position that was asked for the type that it has in Go.
func feedError(err error) error {
	detail := client.Detail(err)
	if first := detail.GetFirstPosition(); first > 0 {
		return &kuji.Error{Code: kuji.CodeNotFound, Field: "from", Err: errors.Join(&kuji.TrimmedError{First: first}, err)}
	}
	for _, v := range detail.GetViolations() {
		if v.GetField() == "from" {
			return &kuji.Error{Code: kuji.CodeInvalid, Field: "from", Err: err}
		}
	}
	return err
}

// Pauses between attempts to write to PostgreSQL.
const (
	firstFeedPause = time.Second
	lastFeedPause  = time.Minute
)

func (c *api) feedHistory(ctx context.Context, f *feedFlags, log *slog.Logger) (done feedJSON, err error) {
	db, err := history.Open(ctx, f.to, c.realm, history.Options{Age: f.historyAge})
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	log.Info("the feed continues", "position", db.State().Position+1)
	var broke error // of the feed
	feed := func(ctx context.Context, from uint64) iter.Seq2[kuji.Record, error] {
		return func(yield func(kuji.Record, error) bool) {
			for step, err := range c.source("", "")(ctx, from) {
				if err != nil {
					if ctx.Err() == nil { // it was not ended because PostgreSQL failed
						broke = err
					}
					yield(kuji.Record{}, err)
					return
				}
				for _, rec := range step.Events {
					if !yield(rec, nil) {
						return
					}
				}
			}
		}
	}
	for wait := firstFeedPause; ; wait = min(2*wait, lastFeedPause) {
		begun := time.Now()
		broke = nil
		err = db.Run(ctx, feed)
		done.Position = db.State().Position + 1
		switch {
		case ctx.Err() != nil:
			return done, ctx.Err()
		case kuji.CodeOf(err) == kuji.CodeConflict:
			return done, err
		case broke != nil:
			return done, broke
		}
		if time.Since(begun) > lastFeedPause {
			wait = firstFeedPause
		}
		log.Warn("PostgreSQL did not take the events", "error", err, "again_in", wait)
		step.Pause(ctx, wait)
	}
}

// recordOf returns the record that an event of the API was made from, as sinks take it.
func recordOf(e *kujiv1.Event) kuji.Record {
	rec := kuji.Record{
		Position: e.GetPosition(), Index: int(e.GetIndex()), Last: e.GetLast(), Time: e.GetTimeUnixMs(), Kind: e.GetKind(), ID: e.GetRequestId(),
		Status: contract.Word(e.GetStatus()), Subject: e.GetSubject(), CatalogVersion: e.GetCatalogVersion(), Player: e.GetPlayer(), To: e.GetTo(),
		Pool: e.GetPool(), Count: int(e.GetCount()), List: e.GetList(), Number: e.Number, Pay: e.GetPay(), Items: kujiStacks(e.GetItems()),
		Paid: kujiStacks(e.GetPaid()), Track: e.GetTrack(), Draws: e.Draws, By: e.GetBy(), Reason: e.GetReason(), Metadata: e.GetMetadata(),
		Bytes: int(e.GetBytes()), NewCatalogVersion: e.GetNewCatalogVersion(), Level: uint8(e.GetLevel()),
		Lacks: each(e.GetLacks(), func(l *kujiv1.Lack) kuji.Lack {
			return kuji.Lack{Item: l.GetItem(), Have: l.GetHave(), Need: l.GetNeed()}
		}),
		Outcomes: each(e.GetOutcomes(), func(o *kujiv1.Outcome) kuji.Outcome {
			return kuji.Outcome{Entry: o.GetEntry(), Items: kujiStacks(o.GetItems()), Via: o.GetVia(), Draw: int(o.GetDraw()), Codes: kujiCodes(o.GetCodes())}
		}),
		Event: e.GetEvent(), Key: e.GetKey(), Counter: e.GetCounter(), Value: e.Value, Quest: e.GetQuest(),
		Claims: each(e.GetClaims(), func(c *kujiv1.Claimed) kuji.Claimed {
			return kuji.Claimed{Quest: c.GetQuest(), Tier: int(c.GetTier()), Player: c.GetPlayer(), Items: kujiStacks(c.GetItems()), Via: c.GetVia(), Codes: kujiCodes(c.GetCodes()),
				Counter: c.GetCounter(), Rank: c.GetRank(), Missed: c.GetMissed(), Place: c.GetPlace(), Value: c.GetValue()}
		}),
		Beyond: each(e.GetBeyond(), func(b *kujiv1.Beyond) kuji.Beyond {
			return kuji.Beyond{Item: b.GetItem(), Quantity: b.GetQuantity(), How: b.GetHow(), Player: b.GetPlayer()}
		}),
		Round: roundOf(e.GetRound()), Entrants: e.GetEntrants(), Reversed: e.GetReversed(), Proposal: e.GetProposal(), ProposedBy: e.GetProposedBy(), ProposedWhy: e.GetProposedReason(), Names: e.GetNames(), Hold: heldOf(e.GetHold()),
		Freed:   each(e.GetFreed(), func(f *kujiv1.Freed) kuji.Freed { return kuji.Freed{Player: f.GetPlayer(), Hold: f.GetHold()} }),
		Members: each(e.GetMembers(), recordOf),
		Changes: each(e.GetChanges(), func(c *kujiv1.BalanceChange) kuji.BalanceChange {
			return kuji.BalanceChange{Player: c.GetPlayer(), Item: c.GetItem(), Delta: c.GetDelta(), Balance: c.Balance}
		}),
	}
	if l := e.GetLimit(); l != nil { // the periods' numbers are the same
		rec.Limit = &kuji.Limit{Per: catalog.Per(l.GetPer()), Window: l.GetWindowMs(), Draws: l.GetDraws(), Left: l.GetLeft(), Resets: l.GetResetsUnixMs()}
	}
	if g := e.GetGiven(); g != nil {
		rec.Given = &kuji.Given{Items: kujiStacks(g.GetItems()), Codes: kujiCodes(g.GetCodes())}
	}
	if c := e.GetClock(); c != nil {
		rec.Clock = &kuji.ClockSet{To: c.GetToUnixMs(), By: c.GetBy(), Reason: c.GetReason()}
	}
	if d := e.GetDue(); d != nil {
		rec.Due = &kuji.Due{Swept: d.GetSwept(), Players: d.GetPlayers(), Counter: d.GetCounter(), Period: d.GetPeriod(), From: d.GetRankFrom(), Count: d.GetRankCount(), Round: d.GetRound(), Holds: d.GetHolds()}
	}
	return rec
}

// roundOf returns what an event of the API says of a round, as records have it.
func roundOf(r *kujiv1.Round) *kuji.RoundView {
	if r == nil {
		return nil
	}
	v := &kuji.RoundView{Name: r.GetRound(), Number: r.GetNumber(), State: contract.Word(r.GetState()), Entrants: r.GetEntrants(), Tickets: r.GetTickets()}
	if r.GetState() == kujiv1.RoundState_ROUND_STATE_UNSPECIFIED {
		v.State = ""
	}
	v.Winners = each(r.GetWinners(), func(w *kujiv1.Winner) kuji.WinnerView {
		return kuji.WinnerView{Player: w.GetPlayer(), Missed: w.GetMissed()}
	})
	return v
}

func kujiCodes(all []*kujiv1.RewardCode) []kuji.RewardCode {
	return each(all, func(c *kujiv1.RewardCode) kuji.RewardCode {
		return kuji.RewardCode{List: c.GetList(), Number: c.GetNumber(), Code: c.GetCode()}
	})
}

func kujiStacks(all []*kujiv1.Stack) []kuji.Stack {
	return each(all, func(s *kujiv1.Stack) kuji.Stack { return kuji.Stack{Item: s.GetItem(), Quantity: s.GetQuantity()} })
}
