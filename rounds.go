package kuji

import (
	"context"

	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// MaxEntrants is the most entrants of a round that a read returns at a time.
const MaxEntrants = 1000

// What is documented is what is shown.
var (
	_ [look.MaxEntrants - MaxEntrants]struct{}
	_ [MaxEntrants - look.MaxEntrants]struct{}
)

// Rounds is the view of a realm's rounds.
type Rounds struct{ w *writer }

// RoundsOf returns the view of a realm's rounds.
func RoundsOf(r *Realm) Rounds { return Rounds{r.w} }

// RoundView is a round: one that is open, or was closed in the last day, or whose winners can be drawn again.
type RoundView = view.Round

// EntrantView is a player who has joined a round, and HeldView some of an item that is held of one.
type (
	EntrantView = view.Entrant
	HeldView    = view.Held
)

// WinnerView is a player who has won a round.
type WinnerView = view.Winner

// OpenRound opens a round that the catalog declares, and that the calendar does not open. A player who is named joins
// it: with a stake, or with tickets if Tickets is not 0. It needs format level 5, as all requests about rounds do. None of them can be a member of an Atomic.
type OpenRound struct {
	ID      string
	Player  string // who opens it; empty: nobody
	Round   string
	Stake   []Stack // of a round with stakes, and a player
	Tickets uint64  // of a round with tickets; 0: the player does not join
	Note    Note
}

// Join lets a player join a round. What it stakes, or what its tickets cost, is held until the round is closed.
type Join struct {
	ID      string
	Player  string
	Round   string
	Number  uint64  // 0: the one of this name that was opened last, of those that are open
	Stake   []Stack // of a round with stakes. None if everyone stakes what the first one did
	Tickets uint64  // of a round with tickets; 0 means 1
	Note    Note
}

// Settle closes a round that is open and chooses its winners. With too few entrants, everything goes back. A round
// settles itself when it is full, and at its deadline.
type Settle struct {
	ID     string
	Round  string
	Number uint64 // 0: the one of this name that was opened last, of those that are open
	Note   Note
}

// Reroll draws one more winner of a round that was settled, somebody who has not won yet.
type Reroll struct {
	ID     string
	Round  string
	Number uint64
	Note   Note
}

// CancelRound closes a round that is open, and gives everything back.
type CancelRound struct {
	ID     string
	Round  string
	Number uint64 // 0: the one of this name that was opened last, of those that are open
	Note   Note
}

func (q OpenRound) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Items, cmd.Note = rules.KindOpenRound, q.ID, q.Player, q.Stake, q.Note.note()
	cmd.Round = &rules.RoundOf{Name: q.Round, Tickets: q.Tickets}
	return nil
}

func (q Join) fill(_ *work, cmd *rules.Command) error {
	cmd.Kind, cmd.ID, cmd.Player, cmd.Items, cmd.Note = rules.KindJoin, q.ID, q.Player, q.Stake, q.Note.note()
	cmd.Round = &rules.RoundOf{Name: q.Round, Number: q.Number, Tickets: q.Tickets}
	return nil
}

func (q Settle) fill(_ *work, cmd *rules.Command) error {
	return fillRound(cmd, rules.KindSettle, q.ID, q.Round, q.Number, q.Note)
}

func (q Reroll) fill(_ *work, cmd *rules.Command) error {
	return fillRound(cmd, rules.KindReroll, q.ID, q.Round, q.Number, q.Note)
}

func (q CancelRound) fill(_ *work, cmd *rules.Command) error {
	return fillRound(cmd, rules.KindCancelRound, q.ID, q.Round, q.Number, q.Note)
}

func fillRound(cmd *rules.Command, kind rules.Kind, id, round string, number uint64, n Note) error {
	cmd.Kind, cmd.ID, cmd.Note, cmd.Round = kind, id, n.note(), &rules.RoundOf{Name: round, Number: number}
	return nil
}

// Get returns a round by its number, with at most MaxEntrants of its entrants, by the order of joining, from one on.
// CodeNotFound: there is no such round, or it was forgotten.
func (r Rounds) Get(ctx context.Context, number, from uint64) (RoundView, error) {
	return r.Page(ctx, number, from, MaxEntrants)
}

// Page is Get with at most so many entrants.
func (r Rounds) Page(ctx context.Context, number, from uint64, entrants int) (RoundView, error) {
	if entrants < 0 || entrants > MaxEntrants {
		return RoundView{}, errf(CodeInvalid, "entrants", "%d, want at most %d", entrants, MaxEntrants)
	}
	var v RoundView
	found := false
	err := r.read(ctx, func(t *rules.Tables) (uint64, bool) {
		return r.w.look(t, func(int64) { v, found = look.Round(r.w.state, t, number, from, entrants) })
	})
	if err == nil && !found {
		err = errf(CodeNotFound, "number", "there is no round number %d in realm %q", number, r.w.name)
	}
	return value(v, err)
}

// Open returns the rounds that are open, by name and then by number, without their entrants.
func (r Rounds) Open(ctx context.Context) ([]RoundView, error) {
	all, _, err := r.OpenPage(ctx, 0, rules.MaxOpenRounds)
	return all, err
}

// OpenPage is Open with at most some of the rounds, from one on. It returns how many are open, too.
func (r Rounds) OpenPage(ctx context.Context, from, most int) (some []RoundView, of int, err error) {
	err = r.read(ctx, func(t *rules.Tables) (uint64, bool) {
		return r.w.look(t, func(int64) { some, of = look.Rounds(r.w.state, t, from, most) })
	})
	if err != nil {
		return nil, 0, err
	}
	return some, of, nil
}

func (r Rounds) read(ctx context.Context, read func(t *rules.Tables) (last uint64, current bool)) error {
	if err := r.w.gate.answers(ctx); err != nil {
		return err
	}
	_, _, err := r.w.read(ctx, read)
	return err
}

// Round is the round that a request about one has changed, without its entrants. Claims has what its winners got. It is
// read-only. Other results have nil.
func (r Result) Round() *RoundView {
	if r.rare == nil {
		return nil
	}
	return r.rare.round
}

// roundView is what a result says of a round.
func roundView(s names, o *rules.RoundNow) *RoundView {
	v := &RoundView{Name: o.Name, Number: o.Number, State: o.State, Entrants: o.Entrants, Tickets: o.Tickets}
	for _, w := range o.Winners {
		v.Winners = append(v.Winners, view.Winner{Player: s.PlayerID(w.Player), Missed: w.Missed})
	}
	return v
}
