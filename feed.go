package kuji

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/memory"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/view"
)

// The feed, in short:
//
//	a reader:  find a known place in the log before the first position that is wanted
//	           read the log from there, fold it, and wait at its end
//	           for each batch that survives a crash: decode its events with the state's names
//
// A reader has nothing in common with the writer but the log and the names, which are read without
// the realm's lock. So a slow reader delays nobody: it reads later. It needs no state of its own,
// because numbers are never reused: the names of today tell what an old event names.

// MaxReaders is the most readers of one realm's feed at a time.
const MaxReaders = 128

// TrimmedError says that the events which a reader of the feed wants were trimmed from the log.
type TrimmedError struct {
	First uint64 // the first position that is kept, or that comes next
}

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("the feed begins at position %d: what came before was trimmed", e.First)
}

// Events iterates over the events of all batches from a position on, in order, and waits for those
// to come until ctx ends. 0 and 1 are the beginning.
//
// An event is yielded once it survives a crash, whatever [SyncPolicy] the engine has. Under
// SyncNone that is late: when the log goes on to another segment, at a snapshot, and at close.
//
// The last event of a batch has Record.Last. A reader that has handled it goes on from Position+1
// after a restart. One that begins again in the middle of a batch gets its first events twice: every
// event comes at least once.
//
// It ends with an error: CodeCanceled when ctx ends; CodeNotFound with a [TrimmedError] if the log no
// longer has the position; CodeInvalid if the position lies beyond the end of the log; CodeOverloaded
// if MaxReaders others read; CodeConflict if the engine is in memory, which keeps no log; CodeClosed
// when the realm is closed; CodeNotLeader when another node writes the realm: its feed goes on.
func (r *Realm) Events(ctx context.Context, from uint64) iter.Seq2[Record, error] {
	return r.EventsOf(ctx, EventsQuery{From: from})
}

// EventsQuery says which events a reader of the feed wants. The zero value is all, from the beginning.
type EventsQuery struct {
	From uint64 // a position: see [Realm.Events]
	// Player and Pool, where they are not empty, are those that an event must be about: its request, or
	// a member of its group, names both. The player is who asks, or who gets what is transferred.
	Player, Pool string
	// Pace, if not nil, is called before each entry of the log is read. It may wait, and an error ends
	// the reader, which yields it.
	Pace func(ctx context.Context, at FeedPlace) error
}

// FeedPlace is how far a reader of the feed has come.
type FeedPlace struct {
	Next   uint64 // from here another reader goes on who has all that was yielded
	Bytes  int    // of the log that were read since the last call
	Behind bool   // what is read next was there before: it is not news
}

// EventsOf is Events for readers who do not want all events, or who read only so much at a time. It
// passes over what is not wanted without a description of it: of a batch whose last event is left
// out, no Record has Last.
func (r *Realm) EventsOf(ctx context.Context, q EventsQuery) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		q.From = max(q.From, 1)
		if err := r.follow(ctx, &q, yield); err != nil {
			yield(Record{}, err)
		}
	}
}

// newsWithin is how many entries a reader may be away from the end of the log for what it reads next
// to be news.
const newsWithin = 16

// pace tells a query's Pace where its reader is: at an entry of some bytes, all of whose events were
// yielded.
func (q *EventsQuery) pace(ctx context.Context, r *Realm, at ledger.At, bytes int) error {
	if q.Pace == nil {
		return nil
	}
	behind := r.feeds.log.Durable() > at.Cursor()+newsWithin
	err := q.Pace(ctx, FeedPlace{Next: max(at.Position()+1, q.From), Bytes: bytes, Behind: behind})
	if err != nil && ctx.Err() != nil {
		return r.feedEnds(ctx, err)
	}
	return err
}

// follow yields the events that a query asks for. It returns nil if yield stops it.
func (r *Realm) follow(ctx context.Context, q *EventsQuery, yield func(Record, error) bool) error {
	from := q.From
	newest, err := r.mayFollow(from)
	if err != nil {
		return err
	}
	f, err := r.feeds.join(from)
	if err != nil {
		return err
	}
	defer r.feeds.leave(f)
	if err := q.pace(ctx, r, ledger.At{}, 0); err != nil { // to find the place may take a snapshot
		return err
	}
	start, err := r.placeBefore(ctx, from)
	if err != nil {
		return r.feedEnds(ctx, err)
	}
	d := decoder{names: r.state.Numbers(), version: start.version, want: view.WantedOf(q.Player, q.Pool)}
	for e, err := range ledger.Walk(r.feeds.log, r.name, start.seal(r)).Follow(ctx) {
		if err != nil {
			return r.feedEnds(ctx, err)
		}
		if err := r.readable(); err != nil {
			return err
		}
		if begun, _ := e.Begun(); e.Kind() == ledger.KindEpochBegin && begun.Number > newest {
			return errf(CodeNotLeader, "", "realm %q: another writer has taken the realm over, in epoch %d, at position %d", r.name, begun.Number, e.Position)
		}
		f.at.Store(e.Position)
		if e.Kind() == ledger.KindBatch {
			on, err := d.batch(ctx, &e, e.Position >= from, yield)
			if err != nil {
				return r.feedEnds(ctx, err)
			}
			if !on {
				return nil
			}
		}
		if err := q.pace(ctx, r, e.At(), e.Size()); err != nil {
			return err
		}
	}
	return nil
}

// mayFollow reports why nobody can read the feed from a position on. newest is the newest epoch whose
// events the state has.
func (r *Realm) mayFollow(from uint64) (newest uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.answers(context.Background()); err != nil {
		return 0, err
	}
	if _, ok := r.world.driver.(*memory.Driver); ok {
		return 0, errf(CodeConflict, "", "realm %q is in memory, which keeps no log: it has no feed", r.name)
	}
	if next := r.group.Open().Position; from > next {
		return 0, errf(CodeInvalid, "from", "position %d; the next one is %d", from, next)
	}
	if n := len(r.epochs); n > 0 {
		newest = r.epochs[n-1].Number
	}
	return newest, nil
}

// feedEnds says why a reader cannot go on.
func (r *Realm) feedEnds(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &Error{Code: CodeCanceled, Message: "while reading the feed", Err: ctx.Err()}
	}
	if gone := r.readable(); gone != nil {
		return gone
	}
	if _, ok := errors.AsType[*driver.TrimmedError](err); ok {
		oldest, trimmed, cause := r.oldest(ctx)
		if cause == nil && trimmed {
			return r.trimmedBefore(oldest.at.Position() + 1)
		}
		err = errors.Join(err, cause)
	}
	return r.failed("reading the feed", err)
}

func (r *Realm) trimmedBefore(first uint64) error {
	return &Error{Code: CodeNotFound, Field: "from", Message: fmt.Sprintf("realm %q", r.name), Err: &TrimmedError{First: first}}
}

// decoder makes records of batches.
type decoder struct {
	names   store.Numbers
	version uint64 // of the catalog in force
	want    view.Wanted
	gave    outcomes
}

// mostKnown is how many entries of pools a reader keeps results of.
const mostKnown = 1 << 14

// batch yields those events of a batch that are wanted, none if the batch is not. on is false if
// yield stops it.
func (d *decoder) batch(ctx context.Context, e *ledger.Entry, wanted bool, yield func(Record, error) bool) (on bool, err error) {
	if d.gave.size > mostKnown {
		d.gave = outcomes{}
	}
	d.find()
	for le, err := range eventsOf(e, func([]store.Event) {}) {
		if err != nil {
			return false, err
		}
		version := d.version
		d.version += catalogsIn(le.event)
		if !wanted || !d.want.Match(le.event) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		rec, _, err := newRecord(d.names, &d.gave, &le, version)
		if err != nil {
			return false, e.Corrupt(fmt.Errorf("event %d: %w", le.at.Index, err))
		}
		if !yield(rec, nil) {
			return false, nil
		}
	}
	return true, nil
}

// find finds the numbers of the player and the pool that are wanted, as soon as they have some: the
// state has what any batch says before a reader gets it.
func (d *decoder) find() {
	number := func(id string, num *uint32, find func(string) (uint32, bool)) {
		if id == "" || *num != view.NotNumbered {
			return
		}
		if n, ok := find(id); ok {
			*num = n
		}
	}
	number(d.want.Player, &d.want.PlayerNum, d.names.PlayerNum)
	number(d.want.Pool, &d.want.PoolNum, d.names.PoolNum)
}

// catalogsIn returns how many catalogs an event puts in force.
func catalogsIn(ev *store.Event) (n uint64) {
	if rules.Kind(ev.Kind) != rules.KindCatalog {
		return 0
	}
	var e store.Effect
	for effects := ev.Changes(); effects.Next(&e); {
		if e.Verb == store.Catalog {
			n++
		}
	}
	return n
}

// feeds are the readers of a realm's feed, and places in the log where they can begin.
type feeds struct {
	log driver.Realm

	mu      sync.Mutex
	readers map[*feedReader]struct{}
	places  []place // ascending
	since   int     // bytes of the log behind the last place
	oldest  *oldest // nil: nobody has asked for it

	versions versions // without mu
}

// oldest is the place of the oldest snapshot that a log goes back to, as long as the log begins at first.
type oldest struct {
	place
	first driver.Cursor
}

// knownOldest returns what is known of the oldest place of a log that begins at a cursor, nil if
// nothing is.
func (f *feeds) knownOldest(first driver.Cursor) *oldest {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.oldest == nil || f.oldest.first != first {
		return nil
	}
	return f.oldest
}

func (f *feeds) learnOldest(o *oldest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.oldest = o
}

type feedReader struct{ at atomic.Uint64 } // the position that it has come to

// place is a place in the log.
type place struct {
	at      ledger.At
	version uint64 // of the catalog in force there
	time    int64  // no entry up to here has a later stamp, unless the clock was set back
	epochs  []ledger.Epoch
	inForce store.InForce // the catalog itself, if the place is a snapshot's that oldest returned
}

const (
	placeEvery = 1 << 20 // bytes of the log between places, at least
	maxPlaces  = 256
)

// passed counts bytes of the log. It reports whether the next place is due.
func (f *feeds) passed(bytes int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since += bytes
	return f.since >= placeEvery
}

// add adds the place to which the log has come. If there are too many, every other one of the older
// half goes: the closer to the end, the closer together they are, and readers mostly begin there.
func (f *feeds) add(at ledger.At, version uint64, time int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.places) >= maxPlaces {
		kept := f.places[:0]
		for i, p := range f.places {
			if i >= maxPlaces/2 || i%2 == 0 {
				kept = append(kept, p)
			}
		}
		f.places = kept
	}
	f.places = append(f.places, place{at: at, version: version, time: time})
	f.since = 0
}

// before returns the last known place before a position.
func (f *feeds) before(pos uint64) (p place, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.places) - 1; i >= 0; i-- {
		if f.places[i].at.Position() < pos {
			return f.places[i], true
		}
	}
	return p, false
}

// beforeTime returns the last known place behind which everything from a time on stands.
func (f *feeds) beforeTime(time int64) (p place, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.places) - 1; i >= 0; i-- {
		if f.places[i].time < time {
			return f.places[i], true
		}
	}
	return p, false
}

func (f *feeds) join(from uint64) (*feedReader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.readers) >= MaxReaders {
		return nil, errf(CodeOverloaded, "", "%d readers of the feed, the most there can be: try again later", MaxReaders)
	}
	if f.readers == nil {
		f.readers = map[*feedReader]struct{}{}
	}
	r := new(feedReader)
	r.at.Store(from - 1)
	f.readers[r] = struct{}{}
	return r, nil
}

func (f *feeds) leave(r *feedReader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, r)
}

// lag returns how many readers there are, and by how many positions the slowest is behind one.
func (f *feeds) lag(pos uint64) (readers int, lag uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.readers {
		if at := r.at.Load(); at < pos {
			lag = max(lag, pos-at)
		}
	}
	return len(f.readers), lag
}

// placeBefore returns the last known place before a position. It is before the first entry if the
// log has that.
func (r *Realm) placeBefore(ctx context.Context, pos uint64) (place, error) {
	first, err := r.feeds.log.First(ctx)
	if err != nil {
		return place{}, err
	}
	if p, ok := r.feeds.before(pos); ok && p.at.Cursor() >= first {
		return p, nil
	}
	p, trimmed, err := r.oldest(ctx)
	if err == nil && trimmed && p.at.Position() >= pos {
		err = r.trimmedBefore(p.at.Position() + 1)
	}
	return p, err
}

// oldest returns the oldest place from which the log can be read: its beginning, or, if it was
// trimmed, that of the oldest snapshot that it goes back to.
func (r *Realm) oldest(ctx context.Context) (p place, short bool, err error) {
	t, err := trimmed(ctx, r.feeds.log)
	if t == nil || err != nil {
		return place{}, false, err
	}
	if known := r.feeds.knownOldest(t.First); known != nil { // whoever asks reads no snapshot again
		return known.place, true, nil
	}
	snaps := ledger.SnapshotsOf(r.feeds.log, r.name)
	files, _, err := snaps.List(ctx)
	if err != nil {
		return place{}, true, err
	}
	errs := []error{fmt.Errorf("%w, and no intact snapshot reaches that far", t)}
	for _, f := range files {
		var v catalogLoader
		seal, _, err := snaps.Load(ctx, files, f, &v)
		if err != nil {
			errs = append(errs, err)
		} else if seal.Cursor() >= t.First {
			p := place{at: seal.At, version: v.inForce.Version, epochs: seal.Epochs, inForce: v.inForce}
			r.feeds.learnOldest(&oldest{p, t.First})
			return p, true, nil
		}
	}
	return place{}, true, errors.Join(errs...)
}

// catalogLoader reads a snapshot and keeps only the catalog in force.
type catalogLoader struct{ inForce store.InForce }

func (v *catalogLoader) Block(kind byte, data []byte) error {
	c, err := store.CatalogIn(store.BlockKind(kind), data)
	if c.Version > v.inForce.Version {
		v.inForce, v.inForce.Bytes = c, bytes.Clone(c.Bytes)
	}
	return err
}

func (v *catalogLoader) Loaded() error { return nil }

// seal returns what a walk through the log needs to begin at a place; nil for the first entry.
func (p *place) seal(r *Realm) *ledger.Seal {
	if p.at.Position() == 0 {
		return nil
	}
	epochs := p.epochs
	if epochs == nil { // which of them were not revealed yet, nobody knows: all may be
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range r.epochs {
			if e.First <= p.at.Position() {
				e.Revealed = false
				epochs = append(epochs, e)
			}
		}
	}
	return &ledger.Seal{At: p.at, Epochs: epochs}
}
