package kuji

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// A reader of the feed finds a known place before the first position that it wants, folds the log from
// there, and waits at its end for batches that survive a crash. It shares only the log and the names with
// the writer, without the realm's lock: a slow reader delays nobody. It needs no state, since numbers are
// never reused.

// Feed is the feed of a realm's events.
type Feed struct {
	w      *writer
	log    driver.Realm
	places *places

	mu      sync.Mutex
	readers map[*feedReader]struct{}
}

// MaxReaders is the most readers of one realm's feed at a time.
const MaxReaders = 128

// TrimmedError says that the events which a reader wants were trimmed from the log.
type TrimmedError struct {
	First uint64 // the first position that is kept, or that comes next
}

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("the feed begins at position %d: what came before was trimmed", e.First)
}

// Events iterates over the events of all batches from a position on, in order, and waits for more until ctx
// ends. 0 and 1 are the beginning.
//
// An event is yielded once it survives a crash, whatever [SyncPolicy] the engine has. Under SyncNone that
// is late: when the log goes on to another segment, at a snapshot, and at close.
//
// The last event of a batch has Record.Last: a reader that has handled it goes on from Position+1 after a
// restart. One that begins again in the middle of a batch gets its first events twice.
//
// It ends with an error: CodeCanceled: ctx ended. CodeNotFound, with a [TrimmedError]: the log no longer
// has the position. CodeInvalid: the position is beyond the end of the log. CodeOverloaded: MaxReaders
// others read. CodeConflict: an engine in memory keeps no log. CodeClosed: the realm is closed.
// CodeNotLeader: another node writes the realm, and its feed goes on.
func (f *Feed) Events(ctx context.Context, from uint64) iter.Seq2[Record, error] {
	return f.Query(ctx, EventsQuery{From: from})
}

// EventsQuery says which events a reader of the feed wants. The zero value is all, from the beginning.
type EventsQuery struct {
	From uint64 // a position: see [Feed.Events]
	// Player and Pool, if not empty, are those of the request or a member: who asks, or receives a transfer. Or
	// the event settles what was due for the player, perhaps among others.
	Player, Pool string
	// Pace, if not nil, is called before each entry of the log is read. It may wait; its error ends it all.
	Pace func(ctx context.Context, at FeedPlace) error
}

// FeedPlace is how far a reader of the feed has come.
type FeedPlace struct {
	Next   uint64 // from here another reader goes on who has all that was yielded
	Bytes  int    // of the log that were read since the last call
	Behind bool   // the reader is still far from the end of the log: what it reads next is old
}

// Query is Events for readers that want only some events, or set the pace. If the last event of a batch is
// not wanted, no Record of the batch has Last.
func (f *Feed) Query(ctx context.Context, q EventsQuery) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		q.From = max(q.From, 1)
		if err := f.follow(ctx, &q, yield); err != nil {
			yield(Record{}, err)
		}
	}
}

const newsWithin = 16 // entries from the end of the log that are still news

// pace tells a query's Pace that its reader has yielded all before an entry, after so many bytes.
func (q *EventsQuery) pace(ctx context.Context, f *Feed, at ledger.At, bytes int) error {
	if q.Pace == nil {
		return nil
	}
	behind := f.log.Durable() > at.Cursor()+newsWithin
	err := q.Pace(ctx, FeedPlace{Next: max(at.Position()+1, q.From), Bytes: bytes, Behind: behind})
	if err != nil && ctx.Err() != nil {
		return f.ends(ctx, err)
	}
	return err
}

// follow yields the events that a query asks for. It returns nil if yield stops it.
func (f *Feed) follow(ctx context.Context, q *EventsQuery, yield func(Record, error) bool) error {
	newest, err := f.mayFollow(q.From)
	if err != nil {
		return err
	}
	reader, err := f.join(q.From)
	if err != nil {
		return err
	}
	defer f.leave(reader)
	if err := q.pace(ctx, f, ledger.At{}, 0); err != nil { // to find the place may take a snapshot
		return err
	}
	start, trimmed, err := f.places.before(ctx, func(p *place) bool { return p.at.Position() < q.From })
	if err == nil && trimmed && start.at.Position() >= q.From {
		err = trimmedBefore(f.w.name, start.at.Position()+1)
	}
	if err != nil {
		return f.ends(ctx, err)
	}
	d := decoder{names: f.w.state.Numbers(), version: start.version, want: look.WantedOf(q.Player, q.Pool)}
	return f.walk(ctx, reader, &start, func(e *ledger.Entry) (on bool, err error) {
		if err := f.w.gate.readable(); err != nil {
			return false, err
		}
		if begun, _ := e.Begun(); e.Kind() == ledger.KindEpochBegin && begun.Number > newest {
			return false, errf(CodeNotLeader, "", "realm %q: another writer has taken the realm over, in epoch %d, at position %d", f.w.name, begun.Number, e.Position)
		}
		if e.Kind() == ledger.KindBatch {
			if on, err := d.batch(ctx, e, e.Position >= q.From, yield); !on || err != nil {
				return false, f.ends(ctx, err)
			}
		}
		return true, q.pace(ctx, f, e.At(), e.Size())
	})
}

// walk calls each for the entries of the log after a place, and waits for those to come, until each stops it.
func (f *Feed) walk(ctx context.Context, reader *feedReader, start *place, each func(*ledger.Entry) (on bool, err error)) error {
	for e, err := range ledger.Walk(f.log, f.w.name, start.footer(f.w)).Follow(ctx) {
		if err != nil {
			return f.ends(ctx, err)
		}
		reader.at.Store(e.Position)
		if on, err := each(&e); !on || err != nil {
			return err
		}
	}
	return nil
}

// mayFollow reports why nobody can read the feed from a position on. newest is the state's newest epoch.
func (f *Feed) mayFollow(from uint64) (newest uint64, err error) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if err := f.w.gate.answers(context.Background()); err != nil {
		return 0, err
	}
	if !f.w.keepsLog() {
		return 0, errf(CodeConflict, "", "realm %q is in memory, which keeps no log: it has no feed", f.w.name)
	}
	if next := f.w.group.Open().Position; from > next {
		return 0, errf(CodeInvalid, "from", "position %d; the next one is %d", from, next)
	}
	if n := len(f.w.proofs.epochs); n > 0 {
		newest = f.w.proofs.epochs[n-1].Number
	}
	return newest, nil
}

// ends says why a reader cannot go on; nil if err is.
func (f *Feed) ends(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return &Error{Code: CodeCanceled, Message: "while reading the feed", Err: ctx.Err()}
	}
	if gone := f.w.gate.readable(); gone != nil {
		return gone
	}
	if _, ok := errors.AsType[*driver.TrimmedError](err); ok {
		oldest, trimmed, cause := f.places.begin(ctx)
		if cause == nil && trimmed {
			return trimmedBefore(f.w.name, oldest.at.Position()+1)
		}
		err = errors.Join(err, cause)
	}
	return f.w.failed("reading the feed", err)
}

func trimmedBefore(realm string, first uint64) error {
	return &Error{Code: CodeNotFound, Field: "from", Message: fmt.Sprintf("realm %q", realm), Err: &TrimmedError{First: first}}
}

type decoder struct {
	names   store.Numbers
	version uint64 // of the catalog in force
	want    look.Wanted
	gave    outcomes
}

const mostKnown = 1 << 14 // entries of pools that a reader keeps results of

// batch yields the events of a batch that are wanted, none if the batch is not. on: yield wants more.
func (d *decoder) batch(ctx context.Context, e *ledger.Entry, wanted bool, yield func(Record, error) bool) (on bool, err error) {
	if d.gave.size > mostKnown {
		d.gave = outcomes{}
	}
	d.find()
	for le, err := range logged.Events(e, nil) {
		if err != nil {
			return false, err
		}
		version := d.version
		d.version += logged.Catalogs(le.Event)
		if !wanted || !d.want.Match(le.Event) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		rec, err := newRecord(d.names, &d.gave, &le, version)
		if err != nil {
			return false, e.Corrupt(fmt.Errorf("event %d: %w", le.At.Index, err))
		}
		if !yield(rec, nil) {
			return false, nil
		}
	}
	return true, nil
}

// find finds the numbers of the player and pool that are wanted. The state has them before they are needed.
func (d *decoder) find() {
	w := &d.want
	if w.Player != "" { // whose name it is can change
		if n, own, ok := d.names.PlayerNum(w.Player); ok {
			w.PlayerNum, w.OwnNum = n, own
		}
	}
	if w.Pool != "" && w.PoolNum == look.NotNumbered {
		if n, ok := d.names.PoolNum(w.Pool); ok {
			w.PoolNum = n
		}
	}
}

type feedReader struct{ at atomic.Uint64 } // the position that it has come to

func (f *Feed) join(from uint64) (*feedReader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.readers) >= MaxReaders {
		return nil, errf(CodeOverloaded, "", "%d readers of the feed, the most there can be: try again later", MaxReaders)
	}
	r := new(feedReader)
	r.at.Store(from - 1)
	f.readers[r] = struct{}{}
	return r, nil
}

func (f *Feed) leave(r *feedReader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, r)
}

// lag returns how many readers there are, and how many positions the slowest has still to read up to pos.
func (f *Feed) lag(pos uint64) (readers int, lag uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.readers {
		if at := r.at.Load(); at < pos {
			lag = max(lag, pos-at)
		}
	}
	return len(f.readers), lag
}

// Granted returns how much of each item grants have given since a time, by who asked for them (Note.By).
// Grants in groups count, also in one that is held; start grants, draws and grants without Note.By do not. It reads the log from the
// last known place before the time to the newest acknowledged batch, so it says the same after a restart
// and on another node. What was trimmed does not count, and an engine in memory has granted nothing.
//
// It takes a place among the feed's readers: see [MaxReaders]. Errors are those of Events.
func (f *Feed) Granted(ctx context.Context, since time.Time) (map[string]map[string]uint64, error) {
	all := map[string]map[string]uint64{}
	if !f.w.keepsLog() {
		return all, nil
	}
	if _, err := f.mayFollow(1); err != nil {
		return nil, err
	}
	through := f.w.gate.acked.Load()
	if err := f.log.Sync(ctx); err != nil { // the walk sees nothing else
		return nil, f.w.failed("making the log durable", err)
	}
	reader, err := f.join(1)
	if err != nil {
		return nil, err
	}
	defer f.leave(reader)
	from := since.UnixMilli()
	start, _, err := f.places.before(ctx, func(p *place) bool { return p.time < from })
	if err != nil {
		return nil, f.ends(ctx, err)
	}
	if start.at.Position() >= through {
		return all, nil
	}
	return all, f.walk(ctx, reader, &start, func(e *ledger.Entry) (on bool, err error) {
		if e.Kind() == ledger.KindBatch {
			err = f.w.failed("reading the feed", f.addGranted(e, from, all))
		}
		return e.Position < through, err
	})
}

// addGranted adds what the grants of a batch gave, if it is not from before a time.
func (f *Feed) addGranted(e *ledger.Entry, from int64, all map[string]map[string]uint64) error {
	at, _, _, err := ledger.OpenBatch(e.Payload())
	if err != nil || at < from {
		return e.Corrupt(err)
	}
	names := f.w.state.Numbers()
	for le, err := range logged.Events(e, nil) {
		if err != nil {
			return err
		}
		kind := rules.Kind(le.Event.Kind)
		if kind != rules.KindGrant && kind != rules.KindAtomic && kind != rules.KindHold || le.Event.Status != 0 {
			continue
		}
		cmd, _, err := rules.CommandOf(names, le.Event)
		if err != nil {
			return e.Corrupt(err)
		}
		if cmd.Note == nil || cmd.Note.By == "" {
			continue
		}
		to := all[cmd.Note.By]
		if to == nil {
			to = map[string]uint64{}
			all[cmd.Note.By] = to
		}
		for _, grant := range append(cmd.Members, cmd) {
			if grant.Kind != rules.KindGrant {
				continue
			}
			for _, s := range grant.Items {
				if to[s.Item] += s.Quantity; to[s.Item] < s.Quantity {
					to[s.Item] = math.MaxUint64
				}
			}
		}
	}
	return nil
}

type place struct {
	at      ledger.At
	version uint64 // of the catalog in force there
	time    int64  // no entry up to here has a later stamp, unless the clock was set back
	epochs  []ledger.Epoch
	inForce store.InForce // the catalog itself, if the place is that of the oldest snapshot
}

// footer returns what a walk through the log needs to begin at a place; nil for the first entry.
func (p *place) footer(w *writer) *ledger.Footer {
	if p.at.Position() == 0 {
		return nil
	}
	epochs := p.epochs
	if epochs == nil { // which of them were not revealed yet, nobody knows: all may be
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, e := range w.proofs.epochs {
			if e.First <= p.at.Position() {
				e.Revealed = false
				epochs = append(epochs, e)
			}
		}
	}
	return &ledger.Footer{At: p.at, Epochs: epochs}
}

// places are places in a realm's log where readers can begin.
type places struct {
	w   *writer
	log driver.Realm

	mu     sync.Mutex
	known  []place       // ascending
	since  int           // bytes of the log after the last one
	oldest *place        // of the oldest snapshot that the log goes back to; nil: nobody has asked
	first  driver.Cursor // where the log began when somebody asked
}

const (
	placeEvery = 1 << 20 // bytes of the log between places, at least
	maxPlaces  = 256
)

// passed counts bytes of the log up to a place, and adds the place if one is due.
func (p *places) passed(bytes int, at ledger.At, version uint64, time int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since += bytes; p.since >= placeEvery {
		p.add(place{at: at, version: version, time: time})
	}
}

// add adds a place; too many lose every other one of the older half. p.mu is held, or nobody reads.
func (p *places) add(next place) {
	if len(p.known) >= maxPlaces {
		kept := p.known[:0]
		for i, old := range p.known {
			if i >= maxPlaces/2 || i%2 == 0 {
				kept = append(kept, old)
			}
		}
		p.known = kept
	}
	p.known, p.since = append(p.known, next), 0
}

// before returns the last known place that lies before what a reader wants, or else the oldest one.
func (p *places) before(ctx context.Context, lies func(*place) bool) (at place, trimmed bool, err error) {
	first, err := p.log.First(ctx)
	if err != nil {
		return at, false, err
	}
	p.mu.Lock()
	for i := range slices.Backward(p.known) {
		if lies(&p.known[i]) {
			at = p.known[i]
			break
		}
	}
	p.mu.Unlock()
	if at.at.Position() > 0 && at.at.Cursor() >= first {
		return at, false, nil
	}
	return p.begin(ctx)
}

// begin returns the oldest place to read the log from: its beginning, or its oldest snapshot's.
func (p *places) begin(ctx context.Context) (at place, short bool, err error) {
	t, err := logged.Trimmed(ctx, p.log)
	if t == nil || err != nil {
		return at, false, err
	}
	p.mu.Lock()
	known, first := p.oldest, p.first
	p.mu.Unlock()
	if known != nil && first == t.First { // no snapshot is read again
		return *known, true, nil
	}
	snaps := ledger.SnapshotsOf(p.log, p.w.name)
	files, _, err := snaps.List(ctx)
	if err != nil {
		return at, true, err
	}
	errs := []error{fmt.Errorf("%w, and no intact snapshot reaches that far", t)}
	for _, f := range files {
		var v catalogLoader
		footer, _, err := snaps.Load(ctx, files, f, &v)
		if err != nil {
			errs = append(errs, err)
		} else if footer.Cursor() >= t.First {
			at := place{at: footer.At, version: v.inForce.Version, epochs: footer.Epochs, inForce: v.inForce}
			p.mu.Lock()
			p.oldest, p.first = &at, t.First
			p.mu.Unlock()
			return at, true, nil
		}
	}
	return at, true, errors.Join(errs...)
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
