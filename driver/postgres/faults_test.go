//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/postgres"
	"github.com/kuji-dev/kuji/internal/pgtest"
	"github.com/kuji-dev/kuji/internal/proxy"
)

var faults = flag.Int("faults", 3, "how often a fault comes in each test of faults")

// load is a writer that behaves as a ledger does, and a follower, each on a realm of its own. It keeps
// what was acknowledged and what was yielded: the entry at cursor c is number c-1 of either.
type load struct {
	testing.TB
	ctx  context.Context // ends only if something hangs, or the test ends
	stop chan struct{}   // closed when the writer writes no more
	wg   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	written []string
	yielded []string
	ended   bool          // the writer has ended
	errs    []error       // of appends that were refused because the disk was full
	err     error         // what ended the writer or the follower too early
	moved   chan struct{} // closed when something above changes
}

// run starts a load on an empty realm.
func run(t testing.TB, write, read driver.Realm) *load {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	l := &load{TB: t, ctx: ctx, stop: make(chan struct{}), moved: make(chan struct{})}
	t.Cleanup(func() { cancel(); l.wg.Wait() })
	l.wg.Go(func() { l.write(write) })
	l.wg.Go(func() { l.follow(read) })
	return l
}

// change changes what is known and wakes those who wait for it.
func (l *load) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.moved)
	l.moved = make(chan struct{})
}

// write sends an entry until there is an answer, and then the next one. After a refusal, nothing was
// appended, so another entry takes the place.
func (l *load) write(r driver.Realm) {
	for n, after := 0, driver.Cursor(0); ; n++ {
		text := fmt.Sprintf("entry %d after %d %s", n, after, strings.Repeat("x", 200))
		for again := false; ; again = true {
			at, err := r.Append(l.ctx, after, []byte(text))
			if err == nil && at != after+1 {
				err = fmt.Errorf("the entry after %d was appended at %d", after, at)
			}
			if err == nil {
				l.change(func() { l.written = append(l.written, text) })
				after = at
				break
			}
			if full := errors.Is(err, driver.ErrFull); full {
				l.change(func() { l.errs = append(l.errs, err) })
				if !errors.Is(err, driver.ErrUnknown) && !again {
					break
				}
			} else if !errors.Is(err, driver.ErrUnknown) || l.ctx.Err() != nil {
				l.change(func() { l.err = errors.Join(l.err, fmt.Errorf("writer: %w", err)) })
				return
			}
		}
		select {
		case <-l.stop:
			l.change(func() { l.ended = true })
			return
		default:
		}
	}
}

// follow reads on for as long as the test runs.
func (l *load) follow(r driver.Realm) {
	last := driver.Cursor(0)
	for l.ctx.Err() == nil {
		for e, err := range r.Read(l.ctx, last, 0) {
			if errors.Is(err, driver.ErrUnavailable) || l.ctx.Err() != nil {
				break
			}
			if err == nil && e.Cursor != last+1 {
				err = fmt.Errorf("the entry at %d came after the one at %d", e.Cursor, last)
			}
			if err != nil {
				l.change(func() { l.err = errors.Join(l.err, fmt.Errorf("follower: %w", err)) })
				return
			}
			last = e.Cursor
			l.change(func() { l.yielded = append(l.yielded, string(e.Data)) })
		}
	}
}

// await waits until something is so, which is asked with mu held.
func (l *load) await(what string, so func() bool) {
	l.Helper()
	for {
		l.mu.Lock()
		done, err, moved := so(), l.err, l.moved
		l.mu.Unlock()
		if err != nil {
			l.Fatal(err)
		}
		if done {
			return
		}
		select {
		case <-moved:
		case <-l.ctx.Done():
			l.Fatalf("%s: it does not happen", what)
		}
	}
}

// more waits until n more entries were acknowledged, and as many yielded.
func (l *load) more(n int) {
	l.Helper()
	l.mu.Lock()
	written, yielded := len(l.written)+n, len(l.yielded)+n
	l.mu.Unlock()
	l.await("more entries", func() bool { return len(l.written) >= written && len(l.yielded) >= yielded })
}

// end stops the writer, waits until the follower has all, and checks that nothing is lost: a process that
// knows nothing reads what was acknowledged and yielded, once, in order, and nothing else.
func (l *load) end(d *postgres.Driver) {
	l.Helper()
	close(l.stop)
	l.await("the follower has all", func() bool { return l.ended && len(l.yielded) >= len(l.written) })
	got := texts(l.TB, open(l.TB, d))
	l.mu.Lock()
	defer l.mu.Unlock()
	same(l.TB, "what was acknowledged", l.written, got)
	same(l.TB, "what was yielded", l.yielded, got)
	if again := slices.Compact(slices.Sorted(slices.Values(got))); len(again) != len(got) {
		l.Errorf("%d of %d entries are there twice", len(got)-len(again), len(got))
	}
}

// texts reads a realm to its end, whose cursors have no gaps.
func texts(t testing.TB, r driver.Realm) (all []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last, err := r.Last(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Read(ctx, 0, last) {
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, string(e.Data)); int(e.Cursor) != len(all) {
			t.Fatalf("entry %d of the log stands at %d", len(all), e.Cursor)
		}
	}
	return all
}

// same checks that a log has what it must have.
func same(t testing.TB, what string, want, got []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("%s: %d entries, and the log has %d, which are others from %d on", what, len(want), len(got), i+1)
		}
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patient returns a context that ends only if something hangs.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return ctx
}

// A database that is killed and started again has all that was acknowledged or yielded.
func TestFaultKill(t *testing.T) {
	t.Parallel()
	ctx, s, schema := patient(t), pgtest.Start(t, pgtest.Options{TCP: true}), newSchema()
	l := run(t, open(t, connect(t, s.URL(), schema)), open(t, connect(t, s.URL(), schema)))
	for range *faults {
		l.more(50)
		must(t, s.Kill())
		must(t, s.Start(ctx))
	}
	l.more(50)
	l.end(connect(t, s.URL(), schema))
}

// A connection that is cut in the middle of a commit leaves the entry there or not. The same entry, sent
// again, is there once.
func TestFaultCutCommit(t *testing.T) {
	t.Parallel()
	s, schema := server(t), newSchema()
	p, err := proxy.Listen("127.0.0.1:0", s.Address())
	must(t, err)
	t.Cleanup(func() { p.Close() })
	a, b := connect(t, s.URL(p.Addr()), schema), connect(t, s.URL(), schema)
	a.OnAppend(b.Nudge)
	l := run(t, open(t, a), open(t, b))
	for i := range 6 * *faults {
		l.more(5)
		way := []proxy.Way{proxy.ToClient, proxy.ToClient, proxy.ToServer}[i%3]
		select {
		case <-p.Hold(way): // an answer of the server: what it answers was done
		case <-l.ctx.Done():
			t.Fatal("nothing passes the proxy")
		}
		p.Cut()
		p.Release(way)
	}
	l.more(5)
	l.end(connect(t, s.URL(), schema))
}

// pair is a server and a standby that follows it.
type pair struct {
	testing.TB
	ctx           context.Context
	first, second *pgtest.Server
}

func newPair(t testing.TB) *pair {
	t.Helper()
	s := pgtest.Start(t, pgtest.Options{TCP: true})
	return &pair{t, patient(t), s, pgtest.Standby(t, s, "second", pgtest.Options{TCP: true})}
}

// url has the addresses of both.
func (p *pair) url() string { return p.first.URL(p.first.Address(), p.second.Address()) }

// failOver kills the server and promotes the standby.
func (p *pair) failOver() {
	p.Helper()
	must(p, p.first.Kill())
	must(p, p.second.Promote(p.ctx))
}

// A failover to a synchronous standby loses nothing, and needs nobody: the URL names both servers.
func TestFaultFailover(t *testing.T) {
	t.Parallel()
	p, schema := newPair(t), newSchema()
	must(t, p.first.SetSync(p.ctx, "second"))
	l := run(t, open(t, connect(t, p.url(), schema)), open(t, connect(t, p.url(), schema)))
	l.more(50)
	p.failOver()
	l.more(50)
	l.end(connect(t, p.url(), schema))
}

// A server that crashes while a commit waits for the standby shows the row after its restart. No reader
// gets it, as the standby does not have it: after a failover, another entry stands there.
func TestFaultCrashInWait(t *testing.T) {
	t.Parallel()
	p, schema := newPair(t), newSchema()
	must(t, p.first.SetSync(p.ctx, "second"))
	w, r := open(t, connect(t, p.url(), schema)), open(t, connect(t, p.url(), schema))
	fill(t, w, 0, 3)
	f := follow(p.ctx, r, 0)
	for range 3 {
		f.next(t)
	}
	must(t, p.second.CatchUp(p.ctx))
	must(t, p.second.Pause(p.ctx))
	if _, err := w.Append(p.ctx, 3, []byte("never")); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("append without the standby: error %v, want ErrUnknown", err)
	}
	until(t, p.first, "1", waiting)
	must(t, p.first.Kill())
	must(t, p.second.Kill())
	must(t, p.first.Start(p.ctx))
	until(t, p.first, "4", fmt.Sprintf("SELECT max(cursor) FROM %s.entries", schema))
	until(t, p.first, "1", waiting+" AND query LIKE '%fences%'") // the reader has seen it
	if _, err := w.Append(p.ctx, 3, []byte("never")); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("append of an entry that is there without the standby: error %v, want ErrUnknown", err)
	}
	short, cancel := context.WithCancel(p.ctx)
	other := follow(short, open(t, connect(t, p.first.URL(), schema)), 3) // one who begins there
	until(t, p.first, "2", `SELECT count(DISTINCT client_port) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%fences%'`)
	cancel()
	if err := <-other.ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("a reader that was given up: error %v, want that of its context", err)
	}
	must(t, p.first.Kill())
	must(t, p.second.Start(p.ctx))
	must(t, p.second.Promote(p.ctx))
	appendOne(t, open(t, connect(t, p.url(), schema)), 3, "instead")
	if e := f.next(t); e.Cursor != 4 || string(e.Data) != "instead" {
		t.Fatalf("the reader got %q at %d, want what was appended in its place", e.Data, e.Cursor)
	}
	if len(other.entries) > 0 {
		t.Fatalf("a reader got %q, which no standby had", (<-other.entries).Data)
	}
	if _, err := w.Append(p.ctx, 3, []byte("never")); !errors.Is(err, driver.ErrDeposed) {
		t.Fatalf("append where another entry stands: error %v, want ErrDeposed", err)
	}
}

// lost is a log that has lost entries 9 to 12 in a failover, and the process that wrote them.
type lost struct {
	*pair
	schema, marks string
	d             *postgres.Driver // has the realm open since
	r             driver.Realm
	last          driver.Cursor // what the cut says is left
}

// start connects as a process that keeps its marks in a directory; "": none.
func (l *lost) start(marks string) *postgres.Driver {
	l.Helper()
	return connect(l, l.url(), l.schema, func(o *postgres.Options) { o.Marks = marks })
}

// restart ends the process and starts it again.
func (l *lost) restart() {
	l.Helper()
	must(l, l.d.Close())
	l.d = l.start(l.marks)
}

// cut is how the log falls short, in a call's error.
func (l *lost) cut(what string, err error) *driver.CutError {
	l.Helper()
	return isCut(l, what, err, 12, l.last)
}

// stopped checks that nothing on the realm goes on.
func (l *lost) stopped() *driver.CutError {
	l.Helper()
	got, err := l.d.Cut(l.ctx, "main")
	must(l, err)
	l.cut("cut", got)
	_, err = l.d.Open(l.ctx, "main", driver.Options{})
	l.cut("open", err)
	if l.r != nil {
		_, err = l.r.Append(l.ctx, 12, []byte("x"))
		l.cut("append", err)
		for _, after := range []driver.Cursor{0, 8, 12} {
			e, err := readOne(l, l.r, after)
			if l.cut(fmt.Sprint("read after ", after), err); e.Cursor != 0 {
				l.Fatalf("a log that was cut has served %q", e.Data)
			}
		}
		must(l, l.r.Close())
	}
	return got
}

// losses are who notices that entries are lost, in a realm of its own each.
var losses = []struct {
	who    string
	notice func(t testing.TB, l *lost) // returns when the process has noticed
	others int                         // entries that somebody else has appended in place of those lost
}{
	{"an append", writes, 0},
	{"a begin", func(t testing.TB, l *lost) {
		l.cut("begin", answer(t, func(ctx context.Context) error {
			_, err := l.r.Begin(ctx, []byte("x"))
			return err
		}))
	}, 0},
	{"a reader", func(t testing.TB, l *lost) {
		e, err := readOne(t, l.r, 12)
		if l.cut("read", err); e.Cursor != 0 {
			t.Fatalf("the reader got %q", e.Data)
		}
	}, 0},
	{"a reader from the start", func(t testing.TB, l *lost) {
		n := 0
		for e, err := range l.r.Read(patient(t), 0, 0) {
			if err != nil {
				l.cut("read", err)
				break
			}
			if n++; e.Cursor > 8 {
				t.Fatalf("the reader got %q at %d, and only 8 are left", e.Data, e.Cursor)
			}
		}
	}, 0},
	{"an open", func(t testing.TB, l *lost) {
		_, err := l.d.Open(patient(t), "main", driver.Options{ReadOnly: true})
		l.cut("open", err)
	}, 0},
	{"a look", func(t testing.TB, l *lost) {
		cut, err := l.d.Cut(patient(t), "main")
		must(t, err)
		l.cut("cut", cut)
	}, 0},
	{"the process after a restart", func(t testing.TB, l *lost) {
		l.r = nil
		l.restart()
	}, 0},
	{"a process that was told", func(t testing.TB, l *lost) {
		m, ok := l.d.Mark("main")
		if !ok || m.Cursor != 12 {
			t.Fatalf("mark %v, %v, want one at 12", m, ok)
		}
		must(t, l.d.Close())
		l.d = l.start("")
		l.r = open(t, l.d) // it knows nothing yet
		l.d.Tell("main", m)
	}, 0},
	{"an append after others", writes, 6},
	{"a reader of others", behind, 6},
	{"a reader of a few others", behind, 2},
	{"the process after a restart, and others", func(t testing.TB, l *lost) {
		l.r = nil
		l.restart()
	}, 6},
}

// answer sends an append until there is an answer, and returns that.
func answer(t testing.TB, send func(context.Context) error) (err error) {
	ctx := patient(t)
	for err = driver.ErrUnknown; errors.Is(err, driver.ErrUnknown) && ctx.Err() == nil; {
		err = send(ctx)
	}
	return err
}

// writes appends after what was the last entry.
func writes(t testing.TB, l *lost) {
	l.cut("append", answer(t, func(ctx context.Context) error {
		_, err := l.r.Append(ctx, 12, []byte("x"))
		return err
	}))
}

// behind reads after what is left. What others have appended there is not served.
func behind(t testing.TB, l *lost) {
	e, err := readOne(t, l.r, 8)
	if l.cut("read", err); e.Cursor != 0 {
		t.Fatalf("the reader got %q", e.Data)
	}
}

// A failover to a standby that was behind loses entries. Whoever remembers them says so, and serves
// nothing, until the loss is accepted. Who remembers none of them goes on.
func TestFaultLoss(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	url := p.first.URL()
	all := make([]*lost, len(losses))
	old, marks := t.TempDir(), t.TempDir()
	for i := range all {
		l := &lost{pair: p, schema: newSchema(), marks: t.TempDir()}
		l.d = l.start(l.marks)
		l.r = open(t, l.d)
		fill(t, l.r, 0, 5)
		all[i] = l
	}
	away := connect(t, url, all[0].schema, func(o *postgres.Options) { o.Marks = old })
	if e, err := readOne(t, open(t, away), 4); err != nil || e.Cursor != 5 {
		t.Fatalf("entry %d, %v, want the fifth", e.Cursor, err)
	}
	must(t, away.Close())
	for _, l := range all {
		fill(t, l.r, 5, 3)
	}
	must(t, p.second.CatchUp(p.ctx))
	must(t, p.second.Pause(p.ctx))
	for _, l := range all {
		fill(t, l.r, 8, 4)
	}
	gone := connect(t, url, all[0].schema, func(o *postgres.Options) { o.Marks = marks })
	if e, err := readOne(t, open(t, gone), 11); err != nil || e.Cursor != 12 {
		t.Fatalf("entry %d, %v, want the twelfth", e.Cursor, err)
	}
	must(t, gone.Close())
	p.failOver()

	for i, c := range losses {
		t.Run(c.who, func(t *testing.T) {
			l, at := all[i], *all[i].pair
			at.TB, l.pair = t, &at
			end := driver.Cursor(8 + c.others)
			if l.last = end; end > 12 {
				l.last = 0 // nobody knows
			}
			other := open(t, l.start(""))
			for i := range c.others {
				appendOne(t, other, driver.Cursor(8+i), fmt.Sprint("other ", i))
			}
			c.notice(t, l)
			cut := l.stopped()
			must(t, l.d.AcceptCut(l.ctx, "main", cut))
			r := open(t, l.d)
			appendOne(t, r, end, "instead")
			if e, err := readOne(t, r, end); err != nil || string(e.Data) != "instead" {
				t.Fatalf("after the loss was accepted, entry %d is %q, %v", e.Cursor, e.Data, err)
			}
		})
	}

	// A process that was away remembers less than is left, or what was given up meanwhile.
	for _, dir := range []string{old, marks} {
		if got := texts(t, open(t, connect(t, p.url(), all[0].schema, func(o *postgres.Options) { o.Marks = dir }))); len(got) != 9 || got[8] != "instead" {
			t.Fatalf("a process that was away finds %d entries, want 9", len(got))
		}
	}
}
