package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func tailCommand(a *app) *cobra.Command {
	var from, count uint64
	var player, pool string
	cmd := &cobra.Command{Use: "tail", Short: "Show events as they come"}
	flags := cmd.Flags()
	flags.Uint64Var(&from, "from", 0, "first `position` to show; 1 is the beginning (default: only what happens from now on)")
	flags.Uint64Var(&count, "count", 0, "end after this many events (default: never)")
	flags.StringVar(&player, "player", "", "only events about this `player`")
	flags.StringVar(&pool, "pool", "", "only events about this `pool`")
	return a.online(cmd, func(ctx context.Context, c *api, _ []string) error {
		req := &kujiv1.StreamEventsRequest{Realm: c.realm, Player: player, Pool: pool}
		if cmd.Flags().Changed("from") {
			req.From = &from
		}
		for m, err := range c.Events(ctx, req) {
			if err != nil {
				return err
			}
			for _, e := range m.GetEvents() {
				if err := showEvent(a, e); err != nil {
					return err
				}
				if count--; count == 0 { // from 0 it wraps around, and never ends
					return nil
				}
			}
		}
		return nil
	})
}

// showEvent writes an event on a line of its own.
func showEvent(a *app, e *kujiv1.Event) error {
	return a.print(e, func(w io.Writer) { printEvent(w, e) })
}

// printEvent writes when and where an event was, and what it was.
func printEvent(w io.Writer, e *kujiv1.Event) {
	fprintf(w, "%d.%d  %s  %s\n", e.GetPosition(), e.GetIndex(), timeText(e.GetTimeUnixMs()), eventText(e))
}

// eventText says in a line what an event, or a member of a group, was.
func eventText(e *kujiv1.Event) string {
	var b strings.Builder
	add := func(format string, args ...any) { fprintf(&b, " "+format, args...) }
	b.WriteString(e.GetKind())
	if e.GetNewCatalogVersion() > 0 {
		add("version %d", e.GetNewCatalogVersion())
	}
	for _, s := range []string{e.GetPlayer(), e.GetPool(), e.GetTrack(), e.GetList(), e.GetEvent(), e.GetKey(), e.GetCounter(), e.GetQuest()} {
		if s != "" {
			add("%s", word(s))
		}
	}
	if r := e.GetRound(); r != nil {
		add("%s", word(r.GetRound()))
	}
	if h := e.GetHold(); h != nil && e.GetKind() != "hold" {
		add("of %s", word(h.GetHold()))
	}
	if e.Value != nil {
		add("%d", e.GetValue())
	}
	if e.GetCount() > 1 {
		add("x%d", e.GetCount())
	}
	for _, s := range e.GetItems() {
		add("%d %s", s.GetQuantity(), word(s.GetItem()))
	}
	if e.GetTo() != "" {
		add("%s %s", choose(e.GetKind() == "merge", "from", "to"), word(e.GetTo()))
	}
	if e.GetReversed() != "" {
		add("of %s", word(e.GetReversed()))
	}
	if e.GetProposal() != 0 {
		add("proposal %d", e.GetProposal())
	}
	if e.GetKind() == "block" && e.GetCount() > 0 {
		add("ends")
	}
	add("%s", contract.Word(e.GetStatus()))
	if e.GetSubject() != "" {
		add("(%s)", word(e.GetSubject()))
	}
	addDue(e, add)
	if r := e.GetRound(); r.GetState() != kujiv1.RoundState_ROUND_STATE_UNSPECIFIED { // else the request failed
		add("(%s)", roundText(r))
	}
	if h := e.GetHold(); h.GetUntilUnixMs() != 0 {
		add("until %s", timeText(h.GetUntilUnixMs()))
	}
	if g := e.GetGiven(); g != nil {
		add("gave %s", gaveText(&kujiv1.Outcome{Items: g.GetItems(), Codes: g.GetCodes()}))
	}
	for i, o := range e.GetOutcomes() {
		add("%s%s", when(i == 0, "→ "), word(o.GetEntry()))
		for _, s := range o.GetItems() {
			add("+%d %s", s.GetQuantity(), word(s.GetItem()))
		}
	}
	for _, b := range e.GetBeyond() {
		add("%d %s %s%s", b.GetQuantity(), word(b.GetItem()), b.GetHow(), when(b.GetPlayer() != "", " of "+word(b.GetPlayer())))
	}
	if len(e.GetNames()) > 1 { // the first is the player's own
		add("also %s", strings.Join(each(e.GetNames()[1:], word), " "))
	}
	addClaims(e, add)
	for _, m := range e.GetMembers() {
		add("[%s]", eventText(m))
	}
	if e.GetRequestId() != "" {
		add("id %s", word(e.GetRequestId()))
	}
	return b.String()
}

// addDue adds what was due.
func addDue(e *kujiv1.Event, add func(format string, args ...any)) {
	switch d := e.GetDue(); {
	case d.GetCounter() != "" && d.GetRankFrom() == 0:
		add("%s: period %d has ended, with %s", word(d.GetCounter()), d.GetPeriod(), counted(d.GetRankCount(), "player"))
	case d.GetRound() > 0 && e.GetRound() == nil:
		add("round number %d", d.GetRound())
	case d.GetRound() > 0: // what follows says it
	case len(d.GetHolds()) > 0:
		add("holds %s", strings.Join(each(d.GetHolds(), word), " "))
	case d != nil && d.GetCounter() == "":
		gone := "expired: "
		for _, c := range e.GetChanges() {
			if c.GetDelta() < 0 { // others are what quests gave then
				add("%s%s %+d %s", gone, word(c.GetPlayer()), c.GetDelta(), word(c.GetItem()))
				gone = ""
			}
		}
	}
}

// addClaims adds what quests, ranks and rounds gave.
func addClaims(e *kujiv1.Event, add func(format string, args ...any)) {
	for _, c := range e.GetClaims() {
		what := fmt.Sprintf("quest %s tier %d", word(c.GetQuest()), c.GetTier())
		if c.GetPlace() > 0 {
			what = fmt.Sprintf("place %d", c.GetPlace()) + when(c.GetValue() > 0, fmt.Sprintf(" with %d", c.GetValue()))
		}
		if c.GetRank() > 0 {
			what = fmt.Sprintf("%s rank %d", word(c.GetCounter()), c.GetRank())
		}
		add("→ %s%s%s", what, when(c.GetPlayer() != "", " of "+word(c.GetPlayer())), when(c.GetMissed(), " missed"))
		for _, s := range c.GetItems() {
			add("+%d %s", s.GetQuantity(), word(s.GetItem()))
		}
	}
}
