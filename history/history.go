// Package history keeps what happened in a realm where it can be asked for: in a database. It reads
// the realm's feed and writes rows, by player, pool and item, with every balance after every change.
// docs/history.md shows the schema.
//
// The database follows the log and is never asked by the realm. It can be deleted: it is built again
// from the log. No rule of the game enters here, and nothing that the feed does not say.
//
//	Run:   read the feed; whenever the last transaction is done, write all events that have come
//	       since in one transaction, with the place of the last one
//	reads: answer from one snapshot of the database, with that place
//
// Because place and rows change together, every event is there once, whenever either side crashes.
package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji"
	levels "github.com/kuji-dev/kuji/internal/format"
)

// Limits of a page.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Place is the place of an event in a realm's log.
type Place struct {
	Position uint64 // of its batch, from 1; 0: before all events
	Index    int    // in its batch, from 0
}

// seq is the place as one number that sorts the same.
func (p Place) seq() int64 { return int64(p.Position)<<indexBits | int64(p.Index) }

func placeOf(seq int64) Place {
	return Place{uint64(seq) >> indexBits, int(seq & (1<<indexBits - 1))}
}

// indexBits is how many bits of a seq are the index. A batch of the log has at most 16 MiB of events
// of 6 bytes or more before its last one. The other bits last for 60 000 batches a second for a year.
const (
	indexBits   = 22
	maxPosition = 1<<(63-indexBits) - 1
)

// State says what a history knows.
type State struct {
	Position     uint64 // it has every event up to here, and perhaps some of later ones
	CompleteFrom uint64 // it had every event from this position on; 1: from the beginning
	// KeptFrom is the position from which on it keeps events; those before were older than Options.Age
	// and are removed. 0: none was. What players hold, and balances, do not suffer from it.
	KeptFrom     uint64
	KeptFromTime int64 // the time of the oldest event that is kept, in Unix milliseconds
}

// Options are how a history is kept. The zero value is good.
type Options struct {
	// Age is for how long events are kept, counted back from the newest. Older ones are removed as new
	// ones come. 0: for ever.
	Age time.Duration
}

// progress is the row that changes together with all others.
type progress struct {
	at           Place // of the last event
	last         bool  // it was the last of its batch
	completeFrom uint64
	keptFrom     uint64 // 0: nothing was removed
	keptTime     int64
}

func (p *progress) state() State {
	s := State{p.at.Position, p.completeFrom, p.keptFrom, p.keptTime}
	if !p.last && s.Position > 0 {
		s.Position--
	}
	return s
}

// DB is the history of one realm in a database. Any number of goroutines may read it while one
// follows the feed.
type DB struct {
	realm string
	o     Options
	db    database
	reads chan conn     // idle connections for reads; nil ones are not open yet
	asked chan struct{} // holds one when somebody waits for what is not written yet

	mu        sync.Mutex
	closed    bool
	fault     error         // why nothing is served
	moved     chan struct{} // closed when it has come further
	following atomic.Bool
	known     atomic.Pointer[State]
	most      int                    // events in a transaction; fewer in tests
	rest      time.Duration          // for which events gather
	remember  int                    // names of a kind, and balances, that a writer keeps in memory
	failpoint func(sql string) error // of tests: before each statement that writes
}

// database opens connections.
type database interface {
	open(ctx context.Context, write bool) (conn, error)
	schema() []string
}

// conn is a connection to a database. Arguments are int64, string or nil, and stand for $1, $2 and so
// on, which a statement names in this order.
type conn interface {
	// exec carries out a statement, which it keeps prepared, and returns how many rows it changed.
	exec(ctx context.Context, sql string, args ...any) (int64, error)
	// query calls row for every row that a statement returns.
	query(ctx context.Context, sql string, row func(r row) error, args ...any) error
	// lookup is query with a statement that it keeps prepared.
	lookup(ctx context.Context, sql string, row func(r row) error, args ...any) error
	// read begins a transaction that only reads and sees one snapshot.
	read(ctx context.Context) error
	close() error
}

// row is what a statement returned. A value that is NULL is 0 or "".
type row interface {
	int(column int) int64
	text(column int) string
	null(column int) bool
}

// maxReads is how many reads a DB carries out at a time.
const maxReads = 4

// Open opens the history of a realm, and creates it if there is none. target is the name of an
// SQLite file or the URL of a PostgreSQL database, postgres://…, in which the realm gets a schema of
// its own, kuji_REALM. An error is a *kuji.Error: CodeInvalid for a bad URL, CodeConflict if what is
// there is the history of another realm or of another version of this package.
func Open(ctx context.Context, target, realm string, o Options) (*DB, error) {
	if o.Age < 0 {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "age", Message: fmt.Sprintf("is %v, want 0 or more", o.Age)}
	}
	h := &DB{realm: realm, o: o, moved: make(chan struct{}), asked: make(chan struct{}, 1), reads: make(chan conn, maxReads), most: maxWaiting, rest: restTime, remember: maxKnown}
	var err error
	if IsURL(target) {
		h.db, err = newPostgres(target, realm)
	} else {
		h.db = sqlite{target}
	}
	if err != nil {
		return nil, err
	}
	for range maxReads {
		h.reads <- nil
	}
	c, err := h.db.open(ctx, true)
	if err != nil {
		return nil, failed("opening", err)
	}
	err = h.create(ctx, c)
	return h, errors.Join(err, c.close())
}

// IsURL reports whether a target names a database on a server.
func IsURL(target string) bool {
	return strings.HasPrefix(target, "postgres://") || strings.HasPrefix(target, "postgresql://")
}

// create makes the tables, if they are not there.
func (h *DB) create(ctx context.Context, c conn) error {
	for _, sql := range h.db.schema() {
		if _, err := c.exec(ctx, sql); err != nil {
			return failed("creating", err)
		}
	}
	if _, err := c.exec(ctx, `INSERT INTO progress (id, format, realm, position, event, last, complete_from, kept_from, kept_time)
		VALUES (1, $1, $2, 0, 0, 1, 1, 0, 0) ON CONFLICT DO NOTHING`, int64(format), h.realm); err != nil {
		return failed("creating", err)
	}
	p, err := h.progress(ctx, c)
	if err == nil {
		h.known.Store(new(p.state()))
	}
	return err
}

// move notes how far the history has come, and wakes who waits for that.
func (h *DB) move(p progress) {
	h.known.Store(new(p.state()))
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.moved)
	h.moved = make(chan struct{})
}

// Wait waits until the history has every event up to a position. Somebody must follow the feed.
func (h *DB) Wait(ctx context.Context, position uint64) error {
	for {
		h.mu.Lock()
		moved, fault := h.moved, h.fault
		h.mu.Unlock()
		if fault != nil || h.State().Position >= position {
			return fault
		}
		signal(h.asked)
		select {
		case <-moved:
		case <-ctx.Done():
			return failed("waiting for", ctx.Err())
		}
	}
}

// progress reads how far the history has come.
func (h *DB) progress(ctx context.Context, c conn) (p progress, err error) {
	found := false
	if err := h.checkFormat(ctx, c); err != nil {
		return p, err
	}
	err = c.query(ctx, `SELECT realm, position, event, last, complete_from, kept_from, kept_time FROM progress WHERE id = 1`, func(r row) error {
		found = true
		if realm := r.text(0); realm != h.realm {
			return &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("the history of realm %q, want %q", realm, h.realm)}
		}
		p = progress{Place{uint64(r.int(1)), int(r.int(2))}, r.int(3) != 0, uint64(r.int(4)), uint64(r.int(5)), r.int(6)}
		return nil
	})
	if err == nil && !found {
		err = errors.New("the table progress is empty")
	}
	return p, failed("reading", err)
}

// checkFormat refuses the history of another version of this package.
func (h *DB) checkFormat(ctx context.Context, c conn) error {
	return failed("reading", c.query(ctx, `SELECT format FROM progress WHERE id = 1`, func(r row) error {
		if err := levels.Newer("history", uint64(r.int(0)), format); err != nil {
			return &kuji.Error{Code: kuji.CodeFormat, Err: err}
		}
		if f := r.int(0); f != format {
			return &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("a history of format %d, want %d: delete it, and it is built again", f, format)}
		}
		return nil
	}))
}

// State returns what the history knows.
func (h *DB) State() State { return *h.known.Load() }

// Following reports whether the history has been compared with the realm's log since it was opened.
// Before, it may be that of another log.
func (h *DB) Following() bool { return h.following.Load() }

// Close closes the connections of reads. End Run before.
func (h *DB) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	var all []error
	for range maxReads {
		if c := <-h.reads; c != nil {
			all = append(all, c.close())
		}
	}
	close(h.reads)
	return errors.Join(all...)
}

// failed makes a *kuji.Error of what a database returned.
func failed(doing string, err error) error {
	if err == nil || kuji.CodeOf(err) != 0 {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &kuji.Error{Code: kuji.CodeCanceled, Message: "while " + doing + " the history", Err: err}
	}
	return &kuji.Error{Code: kuji.CodeFailed, Message: doing + " the history", Err: err}
}
