//go:build unix

package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/postgres"
	"github.com/kuji-dev/kuji/internal/pgtest"
)

// past is a database that can lose the end of a log, as a failover to a copy that lags behind does.
type past struct {
	testing.TB
	*pgtest.Server
	schema, marks string
}

func newPast(t testing.TB) *past {
	return &past{t, server(t), newSchema(), t.TempDir()}
}

// start connects as the process with the marks does.
func (p *past) start() *postgres.Driver {
	p.Helper()
	return connect(p, p.URL(), p.schema, func(o *postgres.Options) { o.Marks = p.marks })
}

// other connects as a process that knows nothing.
func (p *past) other() *postgres.Driver {
	p.Helper()
	return connect(p, p.URL(), p.schema)
}

// lose drops the entries after a cursor.
func (p *past) lose(after driver.Cursor) {
	p.Helper()
	exec(p, p.Server, fmt.Sprintf("DELETE FROM %s.entries WHERE cursor > %d", p.schema, after))
}

// isCut checks an error that says a log has lost entries.
func isCut(t testing.TB, what string, err error, known, last driver.Cursor) *driver.CutError {
	t.Helper()
	cut, ok := errors.AsType[*driver.CutError](err)
	if !ok || cut.Known.Cursor != known || cut.Last != last || cut.Realm != "main" {
		t.Fatalf("%s: error %v, want a CutError with known %d and last %d", what, err, known, last)
	}
	return cut
}

// readOne reads the entry after a cursor.
func readOne(t testing.TB, r driver.Realm, after driver.Cursor) (driver.Entry, error) {
	t.Helper()
	for e, err := range r.Read(t.Context(), after, 0) {
		return e, err
	}
	t.Fatal("the reader ended without an entry or an error")
	return driver.Entry{}, nil
}

// A log that lost its end while nobody had it open is not opened, until the loss is accepted.
func TestCutWhileClosed(t *testing.T) {
	p := newPast(t)
	d := p.start()
	fill(t, open(t, d), 0, 10)
	if m, ok := d.Mark("main"); !ok || m.Cursor != 10 || m.Line != 0 {
		t.Fatalf("mark %v, %v after ten entries", m, ok)
	}
	d.Close()
	p.lose(6)
	other := p.other()
	_, stop := open(t, other), other.Close // who knows nothing notices nothing
	stop()

	d = p.start()
	_, err := d.Open(t.Context(), "main", driver.Options{})
	cut := isCut(t, "open", err, 10, 6)
	got, err := d.Cut(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	isCut(t, "cut", got, 10, 6)
	wrong := *cut
	wrong.Last = 5
	if d.AcceptCut(t.Context(), "main", &wrong) == nil {
		t.Fatal("accepted another cut than there is")
	}
	for range 2 { // the second time, it is accepted already
		if err := d.AcceptCut(t.Context(), "main", cut); err != nil {
			t.Fatal(err)
		}
	}
	until(t, p.Server, "1", fmt.Sprintf("SELECT count(*) FROM %s.cuts", p.schema))
	if cut, err := d.Cut(t.Context(), "main"); cut != nil || err != nil {
		t.Fatalf("after the cut was accepted: %v, %v", cut, err)
	}
	r := open(t, d)
	fill(t, r, 6, 2)
	if m, _ := d.Mark("main"); m.Line != 1 || m.Cursor != 8 {
		t.Fatalf("mark %v, want one of line 1 at 8", m)
	}
	d.Close()
	d = p.start()
	open(t, d)
	if m, _ := d.Mark("main"); m.Line != 1 || m.Cursor != 8 {
		t.Fatalf("after a restart, mark %v, want one of line 1 at 8", m)
	}

	// Another process that remembers the old end learns that it was accepted.
	d.Tell("main", driver.Mark{Cursor: 10, Hash: [32]byte{1}})
	if cut, err := d.Cut(t.Context(), "main"); cut != nil || err != nil {
		t.Fatalf("a mark from before the accepted cut: %v, %v", cut, err)
	}
}

// A log that loses its end under a writer and a reader stops both.
func TestCutWhileOpen(t *testing.T) {
	p := newPast(t)
	d := p.start()
	r := open(t, d)
	at := fill(t, r, 0, 10)
	f := follow(t.Context(), r, 9)
	f.next(t)
	p.lose(4)
	if err := <-f.ended; true {
		isCut(t, "read", err, 10, 4)
	}
	_, err := r.Append(t.Context(), at, []byte("x"))
	isCut(t, "append", err, 10, 4)
	_, err = r.Begin(t.Context(), []byte("x"))
	isCut(t, "begin", err, 10, 4)
	_, err = d.Open(t.Context(), "main", driver.Options{ReadOnly: true})
	isCut(t, "open", err, 10, 4)
	if _, err := d.Open(t.Context(), "main", driver.Options{Check: true}); err != nil {
		t.Fatalf("open for verification: %v", err)
	}
}

// An append or a begin notices by itself that the log was cut, though nobody reads.
func TestCutUnderWriter(t *testing.T) {
	for _, begin := range []bool{false, true} {
		p := newPast(t)
		r := open(t, p.start())
		at := fill(t, r, 0, 10)
		p.lose(4)
		var err error
		if begin {
			_, err = r.Begin(t.Context(), []byte("x"))
		} else {
			_, err = r.Append(t.Context(), at, []byte("x"))
		}
		isCut(t, fmt.Sprintf("begin %v", begin), err, 10, 4)
		until(t, p.Server, "4", fmt.Sprintf("SELECT max(cursor) FROM %s.entries", p.schema))
	}
}

// Other entries in place of those that were lost are noticed, by a reader, a writer and at the start.
func TestFork(t *testing.T) {
	p := newPast(t)
	d := p.start()
	r := open(t, d)
	at := fill(t, r, 0, 10)
	p.lose(4)
	o := open(t, p.other())
	for i := range 9 {
		appendOne(t, o, 4+driver.Cursor(i), fmt.Sprintf("other %d", i))
	}
	_, err := readOne(t, r, at)
	isCut(t, "read", err, 10, 0)
	_, err = r.Append(t.Context(), at, []byte("x"))
	cut := isCut(t, "append", err, 10, 0)
	d.Close()
	d = p.start()
	_, err = d.Open(t.Context(), "main", driver.Options{})
	isCut(t, "open", err, 10, 0)
	if err := d.AcceptCut(t.Context(), "main", cut); err != nil {
		t.Fatal(err)
	}
	r = open(t, d)
	if e, err := readOne(t, r, 4); err != nil || string(e.Data) != "other 0" {
		t.Fatalf("after the cut was accepted, the entry at 5 is %q, %v", e.Data, err)
	}
}

// A fork is noticed by the append, without a read before.
func TestForkUnderWriter(t *testing.T) {
	p := newPast(t)
	r := open(t, p.start())
	at := fill(t, r, 0, 10)
	p.lose(9)
	appendOne(t, open(t, p.other()), 9, "other")
	_, err := r.Append(t.Context(), at, []byte("x"))
	cut, ok := errors.AsType[*driver.CutError](err)
	if !ok || cut.Known.Cursor != 10 {
		t.Fatalf("append after an entry that was replaced: error %v, want a CutError", err)
	}
	until(t, p.Server, "10", fmt.Sprintf("SELECT max(cursor) FROM %s.entries", p.schema))
}

// What another process knows is compared before the next append and the next read.
func TestTell(t *testing.T) {
	p := newPast(t)
	knows := p.start()
	fill(t, open(t, knows), 0, 10)
	m, _ := knows.Mark("main")
	knows.Close()

	d := p.other()
	r := open(t, d)
	d.Tell("main", m)
	if got, ok := d.Mark("main"); !ok || got != m {
		t.Fatalf("mark %v, want what was told: %v", got, m)
	}
	appendOne(t, r, 10, "right")
	d.Close()

	p.lose(7)
	d = p.other()
	r = open(t, d)
	f := follow(t.Context(), r, 7)
	d.Tell("main", m)
	if err := <-f.ended; true {
		isCut(t, "read", err, 10, 7)
	}
	_, err := r.Append(t.Context(), 7, []byte("x"))
	isCut(t, "append", err, 10, 7)
}

// A mark below what was trimmed says nothing, and no cut.
func TestMarkTrimmed(t *testing.T) {
	p := newPast(t)
	d := p.start()
	fill(t, open(t, d), 0, 10)
	d.Close()
	o := open(t, p.other())
	if err := o.Trim(t.Context(), fill(t, o, 10, 10)); err != nil {
		t.Fatal(err)
	}
	d = p.start()
	r := open(t, d)
	fill(t, r, 20, 1)
}

// A realm that is gone altogether was lost, and is not created again.
func TestRealmLost(t *testing.T) {
	p := newPast(t)
	d := p.start()
	fill(t, open(t, d), 0, 3)
	d.Close()
	exec(t, p.Server, fmt.Sprintf("DELETE FROM %s.entries", p.schema))
	exec(t, p.Server, fmt.Sprintf("DELETE FROM %s.realms", p.schema))
	d = p.start()
	_, err := d.Open(t.Context(), "main", driver.Options{})
	cut := isCut(t, "open", err, 3, 0)
	if err := d.AcceptCut(t.Context(), "main", cut); err != nil {
		t.Fatal(err)
	}
	fill(t, open(t, d), 0, 1)
}

// A crash in the middle of writing a mark leaves the one before. A file that says nothing stops nobody.
func TestTornMark(t *testing.T) {
	p := newPast(t)
	d := p.start()
	fill(t, open(t, d), 0, 10)
	d.Close()
	path := filepath.Join(p.marks, "main.mark")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mark := func(damage ...int) driver.Cursor {
		t.Helper()
		torn := bytes.Clone(whole)
		for _, at := range damage {
			torn[at] ^= 1
		}
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		d := p.start()
		defer d.Close()
		m, _ := d.Mark("main")
		return m.Cursor
	}
	one, two, none := mark(20), mark(4096+20), mark(20, 4096+20)
	if min(one, two) != 9 || max(one, two) != 10 || none != 0 {
		t.Fatalf("with a torn slot the mark is at %d or %d, with two at %d; want 9, 10 and 0", one, two, none)
	}
}

// Rows that are missing in the middle are damage, however many they are.
func TestHole(t *testing.T) {
	p := newPast(t)
	r := open(t, p.other())
	fill(t, r, 0, 3)
	exec(t, p.Server, fmt.Sprintf("INSERT INTO %s.entries SELECT realm, 100000, sum, data FROM %s.entries WHERE cursor = 3", p.schema, p.schema))
	_, err := readOne(t, r, 3)
	if e, ok := errors.AsType[*driver.CorruptError](err); !ok || e.At != 4 {
		t.Fatalf("read over a hole: error %v, want a CorruptError at 4", err)
	}
}
