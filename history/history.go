// Package history keeps what happened in a realm where it can be asked for: in a database. It reads
// the realm's feed and writes rows, by player, pool and item, with every balance after every change.
// docs/reference/history.md shows the schema.
//
// The database follows the log. The realm never reads it. It can be deleted, and is then built again
// from the log. No rule of the game enters here, and nothing that the feed does not say.
//
//	Run:   read the feed; after each transaction, write all events that came meanwhile
//	       in one transaction, with the place of the last one
//	reads: answer from one snapshot of the database, with that place
//
// Place and rows change together. So every event is there once, whenever either side crashes.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/ncruces/go-sqlite3"

	"github.com/kuji-dev/kuji"
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

func (p Place) String() string { return fmt.Sprintf("position %d, event %d", p.Position, p.Index) }

// seq is the place as one number that sorts the same.
func (p Place) seq() int64 { return int64(p.Position)<<indexBits | int64(p.Index) }

// placeAt is the inverse of seq.
func placeAt(seq int64) Place {
	return Place{uint64(seq) >> indexBits, int(seq & (1<<indexBits - 1))}
}

func placeOf(rec *kuji.Record) Place { return Place{rec.Position, rec.Index} }

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
	// ProvenFrom is the position from which on every event is known to be as the log has it; 0: all. Those
	// before were damaged or had no checksums, and the log no longer had them. Balances rest on them too.
	ProvenFrom uint64
}

// Options are how a history is kept. The zero value is good.
type Options struct {
	// Age is for how long events are kept, counted back from the newest, as new ones come. 0: all are kept.
	Age time.Duration
	// MustExist opens a history only if it exists.
	MustExist bool
}

// progress is the row that changes with all others. Its State has no position, and ProvenFrom as stored.
type progress struct {
	State
	at      Place // of the last event
	last    bool  // it was the last of its batch
	rebuild bool  // the next Run builds the history again
}

// nothing is the progress of a new history.
var nothing = progress{State: State{CompleteFrom: 1}, last: true}

// unproven returns the position before which nothing is proven; 0: all is.
func (p *progress) unproven() uint64 {
	if p.rebuild {
		return p.at.Position + 1
	}
	return p.ProvenFrom
}

func (p *progress) state() State {
	s := p.State
	s.Position, s.ProvenFrom = p.at.Position, p.unproven()
	if !p.last && s.Position > 0 {
		s.Position--
	}
	return s
}

// row returns the values of progressColumns.
func (p *progress) row(realm string) []any {
	return new(summing).summed("progress", 9, []any{realm, int64(p.at.Position), int64(p.at.Index), flag(p.last),
		int64(p.CompleteFrom), int64(p.KeptFrom), p.KeptFromTime, int64(p.ProvenFrom), flag(p.rebuild)})
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// DB is the history of one realm. Any number of goroutines may read it while one follows the feed.
type DB struct {
	condition
	o     Options
	db    database
	pool  *pool
	asked chan struct{} // holds one when somebody waits for what is not written yet

	most      int                    // events in a transaction; fewer in tests
	rest      time.Duration          // for which events gather
	remember  int                    // names of a kind, and balances, that a writer keeps in memory
	failpoint func(sql string) error // of tests: before each statement that writes
}

// Open opens the history of a realm, and creates it if it does not exist. target is an SQLite file or the URL
// of a PostgreSQL database, postgres://…, in which the realm gets a schema, kuji_REALM. A *kuji.Error says
// CodeInvalid for a bad URL, CodeNotFound if there must be one, CodeConflict for another realm's history or a
// version that this package cannot upgrade. A damaged history is opened, and the next Run builds it again.
func Open(ctx context.Context, target, realm string, o Options) (*DB, error) {
	if o.Age < 0 {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "age", Message: fmt.Sprintf("is %v, want 0 or more", o.Age)}
	}
	h := &DB{condition: condition{realm: realm}, o: o, asked: make(chan struct{}, 1), most: maxWaiting, rest: restTime, remember: maxKnown}
	h.move(nothing)
	var err error
	if IsURL(target) {
		h.db, err = newPostgres(target, realm)
	} else {
		h.db = sqlite{target}
	}
	if err != nil {
		return nil, err
	}
	h.pool = newPool(h.db)
	if o.MustExist {
		if there, err := h.db.exists(ctx); err != nil || !there {
			return nil, cmp.Or(failed("opening", err), error(&kuji.Error{Code: kuji.CodeNotFound, Field: "realm", Message: fmt.Sprintf("realm %q has no history there", realm)}))
		}
	}
	err = h.writing(ctx, func(t tables) error {
		if err := t.create(ctx); err != nil {
			return err
		}
		p, err := t.progress(ctx)
		if err == nil {
			h.move(p)
		}
		return err
	})
	if damageOf(err) != nil {
		h.hurt(err) // Run builds it again
	} else if err != nil {
		return nil, err
	}
	return h, nil
}

// IsURL reports whether a target names a database on a server.
func IsURL(target string) bool {
	return strings.HasPrefix(target, "postgres://") || strings.HasPrefix(target, "postgresql://")
}

// Wait waits until the history has every event up to a position. It fails if Run has failed or fails meanwhile.
func (h *DB) Wait(ctx context.Context, position uint64) error {
	for {
		now := h.now()
		if err := now.unfit(); err != nil {
			return err
		}
		if now.known.Position >= position {
			return nil
		}
		if now.down != nil {
			return now.down
		}
		select {
		case h.asked <- struct{}{}:
		default: // somebody else has asked
		}
		select {
		case <-now.moved:
		case <-ctx.Done():
			return failed("waiting for", ctx.Err())
		}
	}
}

// State returns what the history knows.
func (h *DB) State() State { return h.now().known }

// Following reports whether the history has been compared with the realm's log since it was opened.
// Before, it may be that of another log.
func (h *DB) Following() bool { return h.now().compared }

// Down returns why the history is not kept up to date: it is damaged or of another log, or the last Run
// has failed and no other one has found where to go on. nil: it is, or Run was not called yet.
func (h *DB) Down() error {
	now := h.now()
	return cmp.Or(now.unfit(), now.down)
}

// Close closes the connections of reads. End Run before.
func (h *DB) Close() error { return h.pool.close() }

// failed makes a *kuji.Error of what a database returned.
func failed(doing string, err error) error {
	if err == nil || kuji.CodeOf(err) != 0 {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &kuji.Error{Code: kuji.CodeCanceled, Message: "while " + doing + " the history", Err: err}
	}
	if causeOf(err) == corrupt {
		return &kuji.Error{Code: kuji.CodeCorrupt, Message: damagedText, Err: &DamagedError{What: doing + " its database", Err: err, database: true}}
	}
	return &kuji.Error{Code: kuji.CodeFailed, Message: doing + " the history", Err: err}
}

// What a database says, in the words of both.
const (
	corrupt = 1 + iota // it is damaged
	taken              // a row with that key is there
)

// causeOf returns what a database says by an error; 0: something else.
func causeOf(err error) int {
	code := "" // PostgreSQL's
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		code = pg.Code
	}
	switch {
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.NOTADB), code == "XX001", code == "XX002":
		return corrupt
	case errors.Is(err, sqlite3.CONSTRAINT), code == "23505":
		return taken
	}
	return 0
}
