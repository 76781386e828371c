package kuji

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// Limits of holds.
const (
	MinHold = time.Second
	MaxHold = 30 * 24 * time.Hour
	// MaxHolds is the most holds that a read returns at a time.
	MaxHolds = 1000
	// MaxPlayerHolds is the most open holds in which something of a player is held.
	MaxPlayerHolds = 100
)

// What is documented is what is checked and shown.
var (
	_ [rules.MaxHold/1000 - int(MaxHold/time.Second)]struct{}
	_ [int(MaxHold/time.Second) - rules.MaxHold/1000]struct{}
	_ [rules.MinHold/1000 - int(MinHold/time.Second)]struct{}
	_ [int(MinHold/time.Second) - rules.MinHold/1000]struct{}
	_ [rules.MaxPlayerHolds - MaxPlayerHolds]struct{}
	_ [MaxPlayerHolds - rules.MaxPlayerHolds]struct{}
	_ [look.MaxHolds - MaxHolds]struct{}
	_ [MaxHolds - look.MaxHolds]struct{}
)

// HoldView is a request that is held, or was in the last day.
type HoldView = view.Hold

// HeldPart is what is held of a member of a HoldView.
type HeldPart = view.HoldPart

// Holding says that a request is carried out, but not yet for good, in a [Draw], a [Consume], a [Transfer] or an
// [Atomic] of these and of Grants. A [Confirm] gives what it gives, and a [Cancel] gives back what it took. At the
// deadline it is cancelled by an event of its own. Until then what it gives belongs to its player, who cannot spend it.
//
// A Draw that is cancelled gives back stock, moments, codes and budgets. Its price, limits, free draws and tracks stay
// spent: whoever sees the outcome has paid for it. So in an Atomic that draws, Consumes and Transfers are for good at
// once. With Refund everything comes back; then the draw is made by the Confirm, and its stock is reserved until then.
//
// A request that is held needs an ID. Items that last for a time cannot be held. It needs format level 5.
type Holding struct {
	For    time.Duration // from MinHold to MaxHold; 0: it is not held. Parts of a millisecond do not count
	Refund bool
}

// Confirm gives for good what a request gives that is held. What it gives must fit then: if not, it stays held.
type Confirm struct {
	ID   string
	Hold string // the request id of what is held
	Note Note
}

// Cancel gives back what a request has taken that is held, and what it would have given.
type Cancel struct {
	ID   string
	Hold string // the request id of what is held
	Note Note
}

func (q Confirm) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Note, cmd.Hold = rules.KindConfirm, q.ID, q.Note.note(), &rules.HoldOf{Of: q.Hold}
	return nil
}

func (q Cancel) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Note, cmd.Hold = rules.KindCancel, q.ID, q.Note.note(), &rules.HoldOf{Of: q.Hold}
	return nil
}

// hold makes a command that is no group one that is held.
func (h Holding) hold(w *work, cmd *rules.Command) {
	from := len(w.members)
	w.members = append(w.members, *cmd)
	m := &w.members[from]
	m.ID, m.Note = "", nil
	*cmd = rules.Command{Kind: rules.KindHold, ID: cmd.ID, Note: cmd.Note, Members: w.members[from : from+1 : from+1]}
	cmd.Hold = &rules.HoldOf{For: h.For.Milliseconds(), Refund: h.Refund, One: true}
}

// Hold is what a request that is held, or that confirms or cancels a hold, has left of it. With [HoldEnded] it says what
// became of it before. It is read-only. Other results have nil.
func (r Result) Hold() *HoldView {
	if r.rare == nil || r.rare.hold == nil {
		return nil
	}
	h := *r.rare.hold // its times are relative to that of the event
	at := r.Receipt.Time
	h.Asked, h.Until, h.Ended = h.Asked+at, h.Until+at, h.Ended+at
	switch {
	case h.State == "open":
		h.Ended = 0
	case r.Status != OK:
		h.Asked, h.Until = 0, 0
	default:
		h.Until = 0
	}
	return &h
}

// Given is what a Confirm gave of what was held or promised. What it drew is in Outcomes. For a group, each of Members
// has its own.
func (r Result) Given() Given {
	if r.rare == nil {
		return Given{}
	}
	return r.rare.given
}

// Given is what a player got with a Confirm, and in a [Record] what all players got. It is read-only.
type Given struct {
	Items []Stack      `json:"items,omitempty"`
	Codes []RewardCode `json:"codes,omitempty"`
}

// holds fills in what an event says of a hold.
func (rec *Record) holds(s names, ev *store.Event, cmd *rules.Command, res *Result) (err error) {
	if rec.Hold = res.Hold(); rec.Hold == nil && cmd.Hold.Of != "" {
		rec.Hold = &HoldView{ID: cmd.Hold.Of}
	}
	if cmd.Hold.Of == "" {
		return nil
	}
	given := res.Given()
	for i := range res.Members {
		m := &res.Members[i]
		rec.Outcomes, rec.Claims, rec.Beyond = append(rec.Outcomes, m.Outcomes...), append(rec.Claims, m.Claims()...), append(rec.Beyond, m.Beyond()...)
		given.Items, given.Codes = append(given.Items, m.Given().Items...), append(given.Codes, m.Given().Codes...)
	}
	if len(given.Items)+len(given.Codes) > 0 {
		rec.Given = &given
	}
	if rec.Freed, err = freedIn(s, ev); err != nil {
		return err
	}
	rec.frees(cmd.Hold.Of)
	return nil
}

// frees adds those to Freed whose balances have changed: by another name than they asked by, or as they got something.
func (rec *Record) frees(hold string) {
	for i := range rec.Changes {
		player := rec.Changes[i].Player
		if player != "" && player != rec.Player && !slices.ContainsFunc(rec.Freed, func(f Freed) bool { return f.Player == player && (hold == "" || f.Hold == hold) }) {
			rec.Freed = append(rec.Freed, Freed{player, hold})
		}
	}
}

// Freed is a player of whom a hold has held something, or who got something of it, until an event ended that.
type Freed struct {
	Player string `json:"player"`
	Hold   string `json:"hold"` // the request id; empty: one of those that the event ended
}

// freedIn returns whom an event that ends holds has freed.
func freedIn(s names, ev *store.Event) (all []Freed, err error) {
	var e store.Effect
	effects := ev.Changes()
	for effects.Next(&e) {
		num, id, ok := rules.FreedIn(&e)
		switch {
		case !ok:
		case num >= s.Players():
			return nil, fmt.Errorf("player number %d of %d", num, s.Players())
		default:
			all = append(all, Freed{s.PlayerID(num), id})
		}
	}
	return all, effects.Err()
}

// Holds is the view of what is held in a realm.
type Holds struct{ w *writer }

// HoldsOf returns the view of what is held in a realm.
func HoldsOf(r *Realm) Holds { return Holds{r.w} }

// Get returns a hold by the id of the request that is held. CodeNotFound: there is none, or it was forgotten, a day
// after it was confirmed or cancelled.
func (h Holds) Get(ctx context.Context, id string) (HoldView, error) {
	var v HoldView
	found := false
	err := h.read(ctx, func(s rules.State) { v, found = look.Hold(s, id) })
	if err == nil && !found {
		err = errf(CodeNotFound, "hold", "nothing is held with the request id %q in realm %q", id, h.w.name)
	}
	return value(v, err)
}

// Of returns the open holds in which something of a player is held, by request id.
func (h Holds) Of(ctx context.Context, player string) ([]HoldView, error) {
	var all []HoldView
	err := h.read(ctx, func(s rules.State) { all = look.HoldsOf(s, player) })
	return value(all, err)
}

// Open returns at most MaxHolds open holds, by deadline and then by request id: those that come after one with this
// deadline, in Unix milliseconds, and id. Begin with 0 and "", and go on with the last one until there are none. Large
// groups make it fewer.
func (h Holds) Open(ctx context.Context, until int64, id string) ([]HoldView, error) {
	var all []HoldView
	err := h.read(ctx, func(s rules.State) { all = look.Holds(s, until, id) })
	return value(all, err)
}

func (h Holds) read(ctx context.Context, read func(s rules.State)) error {
	if err := h.w.gate.answers(ctx); err != nil {
		return err
	}
	_, _, err := h.w.read(ctx, func(t *rules.Tables) (uint64, bool) {
		return h.w.look(t, func(int64) { read(h.w.state) })
	})
	return err
}
