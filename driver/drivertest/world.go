package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/driver"
)

// World is what a driver is tested in: storage, nodes, and what can happen to them. Functions that
// are nil cannot be done to this driver. What needs them is skipped.
type World struct {
	// Open opens the driver of a node, counted from 0, as a process that starts there would. All
	// drivers of a world share their storage.
	Open func(t testing.TB, node int) driver.Driver

	// Exclusive is a driver that lets in only one process at a time.
	Exclusive bool
	// Forgetful is a driver that keeps no entries and no closed realm: what needs them is skipped.
	Forgetful bool
	// Unconditional is a driver whose log appends every entry, behind whatever stands there.
	Unconditional bool

	// Hold holds what a node sends to its log or board, or is sent from there.
	Hold func(node int, way Way) Hold
	// Failover makes another replica lead a realm's log, or, if realm is empty, the board.
	Failover func(t testing.TB, realm string)
	// SetFull makes every write fail for want of space, until it is called with false.
	SetFull func(t testing.TB, full bool)
	// Damage damages an entry where it is kept. No driver is open.
	Damage func(t testing.TB, realm string, at driver.Cursor)

	// Patience is how long a test may take before it counts as hung. 0: 60 s.
	Patience time.Duration
}

// check is a test of one promise.
type check struct {
	name string
	run  func(e *env)
	kept bool // it needs entries that are kept, or a realm that is opened again
}

// Run tests a driver. It makes a world for each test.
func Run(t *testing.T, newWorld func(t testing.TB) *World) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.in(t, newWorld(t)) })
	}
}

func (c check) in(t testing.TB, w *World) {
	world := *w
	if world.Patience == 0 {
		world.Patience = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), world.Patience)
	defer cancel()
	e := &env{TB: t, World: &world, ctx: ctx}
	e.needs(!c.kept || !world.Forgetful, "keeps nothing")
	c.run(e)
}

var checks = []check{
	{"Realms", realms, true},
	{"RealmsApart", realmsApart, true},
	{"Locked", locked, true},
	{"ReadOnly", readOnly, true},
	{"Empty", empty, false},
	{"Order", order, true},
	{"Aliasing", aliasing, true},
	{"Largest", largest, true},
	{"Reopen", reopen, true},
	{"Durable", durable, false},
	{"TwoWriters", twoWriters, true},
	{"Contention", contention, true},
	{"Begin", begin, true},
	{"Cancelled", cancelled, true},
	{"AnswerLost", answerLost, true},
	{"RequestLost", requestLost, true},
	{"RequestLate", requestLate, true},
	{"DeposedWriter", deposedWriter, true},
	{"Follow", follow, true},
	{"ContextEnds", contextEnds, true},
	{"SlowReader", slowReader, true},
	{"Failover", failover, true},
	{"Trim", trim, true},
	{"TrimUnderReader", trimUnderReader, true},
	{"Damage", damage, true},
	{"FullDisk", fullDisk, true},
	{"CloseInTheMiddle", closeInTheMiddle, true},
	{"Closed", closed, false},
	{"FileOnce", fileOnce, true},
	{"FileReads", fileReads, false},
	{"FileList", fileList, false},
	{"FileAbort", fileAbort, false},
	{"FileOfTwoWriters", fileOfTwoWriters, false},
	{"FileRemoved", fileRemoved, false},
	{"BoardReplaced", onNodes(boardReplaced), true},
	{"BoardChangedAgain", onNodes(boardChangedAgain), true},
	{"BoardRefused", onNodes(boardRefused), true},
	{"BoardAliasing", onNodes(boardAliasing), true},
	{"BoardRace", onNodes(boardRace), true},
	{"BoardAnswerLost", onNodes(boardAnswerLost), true},
	{"BoardRequestLate", onNodes(boardRequestLate), true},
	{"BoardReopened", onNodes(boardReopened), true},
	{"BoardFailover", onNodes(boardFailover), true},
	{"Nudged", nudged, true},
}

// env is what a check works with.
type env struct {
	testing.TB
	*World
	ctx context.Context
}

// needs skips the check if its world cannot do what it needs.
func (e *env) needs(can bool, what string) {
	e.Helper()
	if !can {
		e.Skipf("SKIPPED, NOT SHOWN: this driver's world %s", what)
	}
}

// realmName is the realm of most checks.
const realmName = "main"

// open opens a realm at a node, by a driver of its own, until the check ends.
func (e *env) open(node int, name string) driver.Realm {
	e.Helper()
	r, _ := e.start(node, name)
	return r
}

// start is open for who wants to close the realm, which stop does.
func (e *env) start(node int, name string) (r driver.Realm, stop func()) {
	e.Helper()
	d := e.Open(e.TB, node)
	r, err := d.Open(e.ctx, name, driver.Options{})
	if err != nil {
		d.Close()
		e.Fatalf("open realm %q: %v", name, err)
	}
	over := false
	stop = func() {
		if over {
			return
		}
		over = true
		if err := r.Close(); err != nil && !errors.Is(err, driver.ErrClosed) {
			e.Errorf("close realm %q: %v", name, err)
		}
		if err := d.Close(); err != nil {
			e.Errorf("close driver: %v", err)
		}
	}
	e.Cleanup(stop)
	return r, stop
}

// append appends an entry as a ledger would: it sends an entry of unknown fate again until it knows.
func (e *env) append(r driver.Realm, after driver.Cursor, data []byte) driver.Cursor {
	e.Helper()
	return e.settle(r, after, data, false)
}

// settle is append for an entry that was perhaps sent before.
func (e *env) settle(r driver.Realm, after driver.Cursor, data []byte, unknown bool) driver.Cursor {
	e.Helper()
	for {
		at, err := r.Append(e.ctx, after, data)
		switch {
		case err == nil:
			if at <= after {
				e.Fatalf("append behind %d returned cursor %d, want a higher one", after, at)
			}
			return at
		case errors.Is(err, driver.ErrUnknown) && e.ctx.Err() == nil:
			unknown = true
		case errors.Is(err, driver.ErrDeposed) && unknown:
			for entry, err := range r.Read(e.ctx, after, 0) {
				if err != nil {
					e.Fatalf("read what stands behind %d: %v", after, err)
				}
				if !bytes.Equal(entry.Data, data) {
					e.Fatalf("behind %d stands %.40q, which only the writer of %.40q can have put there", after, entry.Data, data)
				}
				return entry.Cursor
			}
			e.Fatalf("the reader behind %d ended without an entry or an error", after)
		default:
			e.Fatalf("append behind %d: %v", after, err)
		}
	}
}

// once returns entries without the earlier copies of each, which a log that cannot refuse may have.
func (e *env) once(entries []driver.Entry) []driver.Entry {
	if !e.Unconditional {
		return entries
	}
	var kept []driver.Entry
	for i, entry := range entries {
		if i+1 == len(entries) || !bytes.Equal(entry.Data, entries[i+1].Data) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// begin appends an entry without a condition, perhaps more than once.
func (e *env) begin(r driver.Realm, data []byte) driver.Cursor {
	e.Helper()
	for {
		at, err := r.Begin(e.ctx, data)
		if err == nil {
			return at
		}
		if !errors.Is(err, driver.ErrUnknown) || e.ctx.Err() != nil {
			e.Fatalf("begin: %v", err)
		}
	}
}

// fill appends n entries behind a cursor, each with a text of its own.
func (e *env) fill(r driver.Realm, after driver.Cursor, n int) []driver.Entry {
	e.Helper()
	entries := make([]driver.Entry, n)
	for i := range entries {
		data := fmt.Appendf(nil, "entry %d behind %d %s", i, after, bytes.Repeat([]byte{'.'}, i*i%1000))
		after = e.append(r, after, data)
		entries[i] = driver.Entry{Cursor: after, Data: data}
	}
	return entries
}

// read returns the entries behind a cursor up to another one.
func (e *env) read(r driver.Realm, after, through driver.Cursor) []driver.Entry {
	e.Helper()
	return e.collect(r.Read(e.ctx, after, through))
}

func (e *env) collect(seq iter.Seq2[driver.Entry, error]) []driver.Entry {
	e.Helper()
	var entries []driver.Entry
	for entry, err := range seq {
		if err != nil {
			e.Fatalf("read, after %d entries: %v", len(entries), err)
		}
		entries = append(entries, entry)
	}
	return entries
}

// same fails the check if got is not want.
func (e *env) same(what string, got, want []driver.Entry) {
	e.Helper()
	for i := range min(len(got), len(want)) {
		if got[i].Cursor != want[i].Cursor || !bytes.Equal(got[i].Data, want[i].Data) {
			e.Fatalf("%s: entry %d is %.60q at %d, want %.60q at %d", what, i, got[i].Data, got[i].Cursor, want[i].Data, want[i].Cursor)
		}
	}
	if len(got) != len(want) {
		e.Fatalf("%s: %d entries, want %d", what, len(got), len(want))
	}
}

// is fails the check if err is not of a kind.
func (e *env) is(what string, err, kind error) {
	e.Helper()
	if !errors.Is(err, kind) {
		e.Fatalf("%s: error %q, want one with %q", what, fmt.Sprint(err), kind)
	}
}

// ok fails the check if there is an error.
func (e *env) ok(what string, err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("%s: %v", what, err)
	}
}
