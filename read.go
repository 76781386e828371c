package kuji

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// Reads run concurrently with the writer. They lock one player or part of a pool, and the realm only to
// wait for what is not durable yet, unless their context is from [Stale]. A realm that stopped because the
// log could not be written answers reads of what is durable, and returns the error that stopped it for the
// rest.

// Stale returns a context for reads that do not wait until what they read is durable: a crash may undo it.
// A follower answers no other reads: what it has is durable, and may be old.
func Stale(ctx context.Context) context.Context { return context.WithValue(ctx, staleKey{}, true) }

type staleKey struct{}

// PlayerView is what a player holds.
type PlayerView struct {
	ID    string  // the player's own, by whatever name it was asked for
	Items []Stack // that the player can spend, in the order in which catalogs first named them; no zero quantities
	Held  []Stack // that the player has, and cannot spend now: stakes, and what holds take
	// Lots are the units that go, item by item in the same order, those that go first first. Other units stay.
	Lots []Lot
	// Mail is what waits in the mailbox, what goes first first: see Collect.
	Mail []Letter
	// Grows are the items that grow and are not full. Items has what they have grown to.
	Grows  []Growing
	Tracks []TrackView
	// Counters are those of the catalog in force that do not stand at 0, the realm's too; Quests are all of its quests.
	Counters []CounterView
	Quests   []QuestView
	// Limits and Free are those of the catalog in force that the player has used; of others all is left.
	Limits, Free []PoolLimit
	Aliases      []AliasView // other names of the player
	Blocked      string      // why the player is blocked; empty: the player is not
	Position     uint64      // of the last batch that changed this player
}

// Growing is an item of a player that grows by itself.
type Growing = view.Growing

// Lot is units of an item that go at one moment.
type Lot = view.Lot

// CounterView is where a counter stands, QuestView how far a player is in a quest, and NeedView what it needs.
type (
	CounterView = view.Counter
	QuestView   = view.Quest
	NeedView    = view.Need
)

// Letter is some of an item in a player's mailbox.
type Letter = view.Letter

// TrackView is what a track of the catalog in force has counted for a player; 0 if PlayerView lacks it.
type TrackView = view.Track

// Player returns what a player holds and what tracks have counted, once durable. CodeNotFound: never seen.
func (r *Realm) Player(ctx context.Context, id string) (PlayerView, error) {
	if err := r.w.gate.answers(ctx); err != nil {
		return PlayerView{}, err
	}
	v, known := PlayerView{ID: id}, false
	_, _, err := r.w.read(ctx, func(t *rules.Tables) (last uint64, current bool) {
		items, counters, last, ok := r.w.state.Holdings(id)
		if known = ok; !known || r.w.tables.Load() != t { // the counters may be those of another catalog
			return 0, !known
		}
		v.Items, v.Held, v.Position = make([]Stack, 0, len(items)), nil, last
		for _, it := range items {
			if it.Quantity > 0 {
				v.Items = append(v.Items, Stack{Item: it.Item, Quantity: it.Quantity})
			}
			if it.Held > 0 {
				v.Held = append(v.Held, Stack{Item: it.Item, Quantity: it.Held})
			}
		}
		if len(t.Growths) > 0 {
			now, back := r.w.instant()
			v.Items, v.Grows = look.Grown(t, v.Items, counters, now, back)
		}
		v.Limits, v.Free = nil, nil
		if look.HasLimits(t, counters) { // otherwise the realm's lock is not needed
			now, back := r.w.instant()
			v.Limits, v.Free = look.LimitsUsed(t, counters, now, back)
		}
		if v.Lots = nil; look.HasLots(t, counters) {
			_, back := r.w.instant()
			v.Lots = look.Lots(t, counters, back, r.w.state.ItemID)
		}
		v.Mail = look.Mail(t, counters, func() int64 {
			_, back := r.w.instant()
			return back
		}, r.w.state.ItemID)
		// If what tracks promise depends on stock, or on what the player holds, the lock is needed too.
		tracks, open := look.Tracks(t, counters)
		seen, current := uint64(0), true
		if open {
			seen, current = r.w.look(t, func(now int64) { look.Promise(r.w.rules, id, now, tracks) })
		}
		v.Tracks = tracks
		seen = max(seen, named(r.w, id, &v))
		if len(t.Counters)+len(t.Quests) > 0 && current {
			var at uint64
			at, current = goalsOf(r.w, t, id, func(g *GoalsView) { v.Counters, v.Quests = g.Counters, g.Quests })
			seen = max(seen, at)
		}
		return max(last, seen), current
	})
	if err == nil && !known {
		err = r.w.unseen(id)
	}
	return value(v, err)
}

// Balance returns how many of one item a player holds. It waits as Player does, and allocates nothing.
// CodeNotFound: the player was never seen, or the catalog in force has no such item.
func (r *Realm) Balance(ctx context.Context, player, item string) (uint64, error) {
	if err := r.w.gate.answers(ctx); err != nil {
		return 0, err
	}
	t, c := r.w.inForce()
	if !t.Has(item) {
		none := errf(CodeNotFound, "item", "there is no item %q in the catalog of realm %q", item, r.w.name)
		return 0, cmp.Or[error](r.w.settle(ctx, c.Position), none)
	}
	if t.GrowthOf(t.ItemNum[item]) != nil {
		return grown(ctx, r, player, item)
	}
	quantity, last, ok := r.w.state.HoldingOf(player, item)
	if err := r.w.settle(ctx, max(last, c.Position)); err != nil {
		return 0, err
	}
	if !ok {
		return 0, r.w.unseen(player)
	}
	return quantity, nil
}

// grown is Balance for an item that grows.
func grown(ctx context.Context, r *Realm, player, item string) (uint64, error) {
	v, err := r.Player(ctx, player)
	i := slices.IndexFunc(v.Items, func(s Stack) bool { return s.Item == item })
	if err != nil || i < 0 {
		return 0, err
	}
	return v.Items[i].Quantity, nil
}

func (h *home) unseen(player string) error {
	return errf(CodeNotFound, "player", "player %q was never seen in realm %q", player, h.name)
}

// countPools makes room to count the draws from every pool. The caller holds mu, or has the realm alone.
func (w *writer) countPools() {
	if n := w.state.Pools(); n > len(w.counts.drawn) {
		w.counts.drawn = append(w.counts.drawn, make([]uint64, n-len(w.counts.drawn))...)
	}
}

// settle waits until a position's batch is durable, unless the context is stale and the realm goes on.
func (w *writer) settle(ctx context.Context, pos uint64) error {
	if pos <= w.gate.acked.Load() || ctx.Value(staleKey{}) != nil && w.gate.usable() == nil {
		return nil
	}
	if !w.gate.leads.Load() { // all that a follower has is durable
		return nil
	}
	w.mu.Lock()
	if pos <= w.gate.acked.Load() {
		w.mu.Unlock()
		return nil
	}
	if err := w.gate.usable(); err != nil { // it will never be durable
		w.mu.Unlock()
		return err
	}
	b := w.batchAt(pos)
	done := b.Done()
	w.unlock()
	return w.settled(ctx, b, done)
}

// settled waits until b is durable. done is what b.Done returned.
func (w *writer) settled(ctx context.Context, b *ledger.Batch, done <-chan struct{}) error {
	if err := step.Wait(ctx, w.world.steps, done); err != nil {
		return &Error{Code: CodeCanceled, Message: "while waiting for what was read to become durable", Err: err}
	}
	if b.Err() != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		return orNil(w.gate.err)
	}
	return nil
}

// read reads what depends on the catalog in force, and waits until that is durable. f returns the position
// that it depends on, and whether the catalog was still that of the tables; if not, it is called again.
func (w *writer) read(ctx context.Context, f func(*rules.Tables) (last uint64, current bool)) (t *rules.Tables, last uint64, err error) {
	for {
		t, c := w.inForce()
		last, current := f(t)
		if current && w.tables.Load() == t {
			last = max(last, c.Position) // what there is depends on the catalog
			return t, last, w.settle(ctx, last)
		}
		runtime.Gosched() // a catalog is being put in force
	}
}

// inForce returns the tables of the catalog in force, and where it was put in force.
func (w *writer) inForce() (*rules.Tables, store.InForce) {
	for {
		t, c := w.tables.Load(), w.state.Catalog()
		if t.Version == c.Version {
			return t, c
		}
		runtime.Gosched() // a catalog is being put in force between the two loads
	}
}

// instant returns the time stamp that a batch would get, and how far the clock has been set back.
func (w *writer) instant() (now, back int64) {
	w.mu.Lock()
	defer w.unlock()
	v := w.clockView()
	return v.Time, v.Back
}

// Seen says what a realm knows of a request id.
type Seen uint8

const (
	// NotSeen: no request with this id was answered. One may still be on its way.
	NotSeen Seen = iota + 1
	// Answered: the first answer is remembered.
	Answered
	// MaybeForgotten: either no request with this id was answered, or the answer was forgotten.
	MaybeForgotten
)

// String returns the word in snake_case.
func (s Seen) String() string {
	if s < NotSeen || s > MaybeForgotten {
		return "unknown"
	}
	return [...]string{NotSeen: "not_seen", Answered: "answered", MaybeForgotten: "maybe_forgotten"}[s]
}

// Lookup is what Realm.Result finds out about a request id.
type Lookup struct {
	Seen Seen
	// Result is the first answer, as a repetition of the request would get it.
	Result Result
	// Player is whose request it was: of a Transfer the giver, of an Atomic the player of all its members,
	// "" if they are several. Codes in the Result are theirs.
	Player string
	// Before is set with MaybeForgotten, in Unix milliseconds. Ids made before it, if the catalog in force
	// wants ids that carry their time, or else answered before it, may have been forgotten.
	Before int64
}

// Result looks for the answer to a request id, and waits until that is durable. It logs nothing.
func (r *Realm) Result(ctx context.Context, id string) (Lookup, error) {
	if id == "" || len(id) > MaxID {
		return Lookup{}, errf(CodeInvalid, "id", "%d bytes long; want a request id of 1 to %d bytes", len(id), MaxID)
	}
	l, last, err := lookup(ctx, r.w, id)
	if err == nil {
		err = r.w.settle(ctx, last)
	}
	return value(l, err)
}

// lookup is Result without waiting. The position that it returns covers what it found.
func lookup(ctx context.Context, w *writer, id string) (l Lookup, last uint64, err error) {
	w.mu.Lock()
	defer w.unlock()
	if err := w.gate.answers(ctx); err != nil {
		return Lookup{}, 0, err
	}
	a, known := w.state.Begin(id)
	defer w.state.End()
	if !known {
		l.Seen, l.Before = forgotten(w, id)
		return l, w.state.Catalog().Position, nil // which says what ids are like
	}
	l.Seen = Answered
	var ev store.Event
	if _, err = store.Decode(a.Event, &ev); err == nil && ev.Kind != store.KindErased {
		l.Player, err = playerOf(w.state, &ev)
	}
	if ev.Kind == store.KindErased {
		ev.Status = uint8(Forgotten)
	}
	if err == nil {
		err = w.answer(&ev, &l.Result, store.At{Position: a.Position, Index: a.Index, Time: a.Time}, a.Version)
	}
	if err != nil {
		return Lookup{}, 0, rememberedWrong(err)
	}
	l.Result.Replayed = true
	return l, a.Position, nil
}

// forgotten reports whether an id that is not remembered may have been answered. The caller holds mu.
func forgotten(w *writer, id string) (Seen, int64) {
	before := w.state.ForgottenBefore()
	if made, ok := w.rules.IDTime(id); ok {
		if before = w.state.IDFloor(); made >= before {
			before = 0
		}
	}
	if before == 0 {
		return NotSeen, 0
	}
	return MaybeForgotten, before
}

// playerOf returns whose request an event answers.
func playerOf(s *store.State, ev *store.Event) (string, error) {
	cmd, _, err := rules.CommandOf(s, ev)
	if err != nil || len(cmd.Members) == 0 {
		return cmd.Player, err
	}
	player := cmd.Members[0].Player
	for i := range cmd.Members {
		if cmd.Members[i].Player != player {
			return "", nil
		}
	}
	return player, nil
}
