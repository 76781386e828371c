package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kuji-dev/kuji/driver"
)

// realms: names are checked; what was opened exists, and nothing else does.
func realms(e *env) {
	d := e.Open(e.TB, 0)
	defer d.Close()
	for _, bad := range []string{"", "-a", "_a", "A", "a b", "a/b", "..", "a.b", "é", strings.Repeat("a", driver.MaxRealmName+1)} {
		if r, err := d.Open(e.ctx, bad, driver.Options{}); err == nil {
			r.Close()
			e.Errorf("opened a realm with the name %q", bad)
		}
	}
	for _, o := range []driver.Options{{MustExist: true}, {ReadOnly: true}} {
		_, err := d.Open(e.ctx, "missing", o)
		e.is(fmt.Sprintf("open a realm that is not there, %+v", o), err, driver.ErrNotExist)
	}
	want := []string{"0-9_z", strings.Repeat("z", driver.MaxRealmName), "b", "a"}
	for _, name := range want {
		r, err := d.Open(e.ctx, name, driver.Options{})
		e.ok("open "+name, err)
		e.ok("close "+name, r.Close())
	}
	slices.Sort(want)
	got, err := d.Realms(e.ctx)
	e.ok("realms", err)
	if !slices.Equal(got, want) {
		e.Fatalf("realms %q, want %q", got, want)
	}
	r, err := d.Open(e.ctx, "a", driver.Options{MustExist: true})
	e.ok("open a realm that is there", err)
	e.ok("close", r.Close())
}

// realmsApart: one realm's log and files are not another's.
func realmsApart(e *env) {
	d := e.Open(e.TB, 0)
	defer d.Close()
	var two [2]driver.Realm
	for i, name := range []string{"a", "a-b"} {
		r, err := d.Open(e.ctx, name, driver.Options{})
		e.ok("open "+name, err)
		defer r.Close()
		two[i] = r
	}
	want := e.fill(two[0], 0, 3)
	e.write(two[0], "file", []byte("a"))

	last, err := two[1].Last(e.ctx)
	e.ok("last", err)
	files, err := two[1].List(e.ctx)
	e.ok("list", err)
	if last != 0 || len(files) != 0 {
		e.Fatalf("a new realm has last entry %d and files %v, all of another realm", last, files)
	}
	e.fill(two[1], 0, 1)
	e.same("the first realm", e.read(two[0], 0, want[2].Cursor), want)
}

// locked: of a driver that lets in one process, the second one gets ErrLocked.
func locked(e *env) {
	e.needs(e.Exclusive, "lets in several processes")
	_, stop := e.start(0, realmName)
	d := e.Open(e.TB, 1)
	defer d.Close()
	_, err := d.Open(e.ctx, realmName, driver.Options{})
	e.is("open a realm that is open", err, driver.ErrLocked)
	stop()
	r, err := d.Open(e.ctx, realmName, driver.Options{})
	e.ok("open it after it was closed", err)
	e.ok("close", r.Close())
}

// readOnly: who opens a realm to read it can change nothing.
func readOnly(e *env) {
	writer, stop := e.start(0, realmName)
	want := e.fill(writer, 0, 3)
	e.write(writer, "file", []byte("content"))
	stop()

	d := e.Open(e.TB, 0)
	defer d.Close()
	r, err := d.Open(e.ctx, realmName, driver.Options{ReadOnly: true})
	e.ok("open", err)
	defer r.Close()
	at := want[2].Cursor
	_, appendErr := r.Append(e.ctx, at, []byte("x"))
	_, beginErr := r.Begin(e.ctx, []byte("x"))
	_, createErr := r.Create(e.ctx)
	for what, err := range map[string]error{
		"append": appendErr, "begin": beginErr, "create": createErr,
		"trim": r.Trim(e.ctx, at), "remove": r.Remove(e.ctx, "file"),
	} {
		if err == nil || errors.Is(err, driver.ErrUnknown) || errors.Is(err, driver.ErrDeposed) {
			e.Errorf("%s: error %v, want a refusal", what, err)
		}
	}
	e.same("the log", e.read(r, 0, at), want)
	last, err := r.Last(e.ctx)
	e.ok("last", err)
	if last != at {
		e.Errorf("last entry %d, want %d", last, at)
	}
	if got := e.content(r, "file"); string(got) != "content" {
		e.Errorf("the file has %q", got)
	}
}

// empty: a new log has nothing, and a reader of it waits.
func empty(e *env) {
	r := e.open(0, realmName)
	last, err := r.Last(e.ctx)
	e.ok("last", err)
	first, err := r.First(e.ctx)
	e.ok("first", err)
	if last != 0 || first == 0 || r.Durable() != 0 {
		e.Fatalf("an empty log has last %d, first %d, durable %d, want 0, at least 1, 0", last, first, r.Durable())
	}
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	yielded := 0
	for _, err := range r.Read(ctx, 0, 0) {
		e.is("read until the context ends", err, context.Canceled)
		yielded++
	}
	if yielded != 1 {
		e.Fatalf("read yielded %d times, want one error", yielded)
	}
}

// order: cursors ascend, and every read gives the same entries in the same order.
func order(e *env) {
	r := e.open(0, realmName)
	want := e.fill(r, 0, 40)
	end := want[len(want)-1].Cursor
	e.same("the whole log", e.read(r, 0, end), want)
	e.same("the whole log again", e.read(r, 0, end), want)
	for _, i := range []int{0, 1, 17, 38} {
		e.same(fmt.Sprintf("behind entry %d", i), e.read(r, want[i].Cursor, end), want[i+1:])
		e.same(fmt.Sprintf("up to entry %d", i), e.read(r, 0, want[i].Cursor), want[:i+1])
		e.same("nothing", e.read(r, want[i].Cursor, want[i].Cursor), nil)
	}
	n := 0
	for range r.Read(e.ctx, 0, end) {
		if n++; n == 3 {
			break
		}
	}
	last, err := r.Last(e.ctx)
	e.ok("last", err)
	first, err := r.First(e.ctx)
	e.ok("first", err)
	if last != end || first == 0 || first > want[0].Cursor {
		e.Errorf("the log goes from %d to %d, want from at most %d to %d", first, last, want[0].Cursor, end)
	}
	e.same("an entry without bytes", e.read(r, end, e.append(r, end, nil)), []driver.Entry{{Cursor: e.last(r), Data: nil}})
}

func (e *env) last(r driver.Realm) driver.Cursor {
	e.Helper()
	last, err := r.Last(e.ctx)
	e.ok("last", err)
	return last
}

// aliasing: the caller may use its buffer again, and may keep what it was given.
func aliasing(e *env) {
	r := e.open(0, realmName)
	buffer := make([]byte, 100)
	var want []driver.Entry
	at := driver.Cursor(0)
	for i := range byte(20) {
		for j := range buffer {
			buffer[j] = i
		}
		at = e.append(r, at, buffer)
		want = append(want, driver.Entry{Cursor: at, Data: bytes.Clone(buffer)})
	}
	clear(buffer)
	kept := e.read(r, 0, at) // all of them are looked at after the last one was yielded
	e.same("entries that were kept", kept, want)
}

// largest: an entry of MaxEntry bytes can be appended, and a larger one is refused.
func largest(e *env) {
	r := e.open(0, realmName)
	size := r.MaxEntry()
	if size < minEntry {
		e.Fatalf("the largest entry has %d bytes, want at least %d", size, minEntry)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)
	at := e.append(r, 0, data[:size])
	_, err := r.Append(e.ctx, at, data[:size+1])
	if err == nil || errors.Is(err, driver.ErrUnknown) || errors.Is(err, driver.ErrDeposed) {
		e.Errorf("append of MaxEntry+1 bytes: error %v, want a refusal", err)
	}
	end := e.append(r, at, []byte("small"))
	e.same("the log", e.read(r, 0, end), []driver.Entry{{Cursor: at, Data: data[:size]}, {Cursor: end, Data: []byte("small")}})
}

// reopen: what was acknowledged is there for the next process.
func reopen(e *env) {
	var want []driver.Entry
	at := driver.Cursor(0)
	for range 3 {
		r, stop := e.start(0, realmName)
		if last := e.last(r); last != at {
			e.Fatalf("opened again, the log ends at %d, want %d", last, at)
		}
		want = append(want, e.fill(r, at, 5)...)
		at = want[len(want)-1].Cursor
		e.same("the log", e.read(r, 0, at), want)
		stop()
	}
}

// durable: Durable follows what was synced, and never runs ahead of the log.
func durable(e *env) {
	r := e.open(0, realmName)
	at := driver.Cursor(0)
	for range 5 {
		at = e.append(r, at, []byte("entry"))
		if d := r.Durable(); d > at {
			e.Fatalf("durable up to %d, and the log ends at %d", d, at)
		}
		e.ok("sync", r.Sync(e.ctx))
		if d := r.Durable(); d != at {
			e.Fatalf("synced, and durable up to %d, want %d", d, at)
		}
	}
}

// second opens the realm a second time where the driver allows it: at another node.
func (e *env) second(first driver.Realm) driver.Realm {
	if e.Exclusive {
		return first
	}
	return e.open(1, realmName)
}

// twoWriters: of two entries for one place, the second one's writer is told that it came too late,
// and the log refuses it if it can.
func twoWriters(e *env) {
	a := e.open(0, realmName)
	b := e.second(a)
	at := e.append(a, 0, []byte("first"))
	want := []driver.Entry{{Cursor: at, Data: []byte("first")}}
	for range 2 {
		_, err := b.Append(e.ctx, 0, []byte("second"))
		e.is("append where an entry stands", err, driver.ErrDeposed)
	}
	if e.Unconditional {
		want = append(want, e.read(b, at, e.last(b))...)
		if len(want) != 3 || string(want[1].Data) != "second" || string(want[2].Data) != "second" {
			e.Fatalf("a log that cannot refuse entries has %v", want)
		}
	}
	at = e.append(b, want[len(want)-1].Cursor, []byte("third"))
	want = append(want, driver.Entry{Cursor: at, Data: []byte("third")})
	e.same("read by the first writer", e.read(a, 0, at), want)
	e.same("read by the second writer", e.read(b, 0, at), want)
}

// contention: writers that race at every place never both get it, and all see one order.
func contention(e *env) {
	e.needs(!e.Unconditional, "cannot refuse entries")
	a := e.open(0, realmName)
	writers := []driver.Realm{a, e.second(a)}
	const rounds = 15
	at := driver.Cursor(0)
	var want []driver.Entry
	for round := range rounds {
		type result struct {
			at   driver.Cursor
			err  error
			data []byte
		}
		results := make([]result, len(writers))
		var wg sync.WaitGroup
		for i, r := range writers {
			wg.Go(func() {
				data := fmt.Appendf(nil, "round %d writer %d", round, i)
				got, err := r.Append(e.ctx, at, data)
				results[i] = result{got, err, data}
			})
		}
		wg.Wait()
		before := at
		for _, r := range results {
			switch {
			case r.err == nil && at != before:
				e.Fatalf("round %d: both writers appended behind %d", round, before)
			case r.err == nil:
				at = r.at
				want = append(want, driver.Entry{Cursor: at, Data: r.data})
			case !errors.Is(r.err, driver.ErrDeposed) && !errors.Is(r.err, driver.ErrUnknown):
				e.Fatalf("round %d: %v", round, r.err)
			}
		}
		if at == before { // both unknown: what stands there tells
			for entry, err := range a.Read(e.ctx, before, 0) {
				e.ok("read", err)
				at, want = entry.Cursor, append(want, entry)
				break
			}
		}
	}
	for i, r := range writers {
		e.same(fmt.Sprintf("read by writer %d", i), e.read(r, 0, at), want)
	}
}

// begin: an entry without a condition always finds a place, and deposes who did not see it.
func begin(e *env) {
	a := e.open(0, realmName)
	b := e.second(a)
	one := e.begin(a, []byte("one"))
	two := e.append(a, one, []byte("two"))
	three := e.begin(b, []byte("three"))
	if !(one < two && two < three) {
		e.Fatalf("cursors %d, %d, %d do not ascend", one, two, three)
	}
	_, err := a.Append(e.ctx, two, []byte("lost"))
	e.is("append by the writer that was deposed", err, driver.ErrDeposed)
	if e.Unconditional {
		three = e.last(b) // behind what could not be refused
	}
	four := e.append(b, three, []byte("four"))
	got := e.read(a, 0, four)
	var texts []string
	for _, entry := range got {
		if string(entry.Data) != "lost" || !e.Unconditional {
			texts = append(texts, string(entry.Data))
		}
	}
	if s := strings.Join(texts, " "); s != "one two three four" {
		e.Fatalf("the log has %q", s)
	}
}

// cancelled: an append whose context has ended is done or unknown. No other error, which would say
// that the log is broken.
func cancelled(e *env) {
	r := e.open(0, realmName)
	at := e.append(r, 0, []byte("first"))
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	if _, err := r.Append(ctx, at, []byte("second")); err != nil {
		e.is("append", err, driver.ErrUnknown)
	}
	second := e.settle(r, at, []byte("second"), true)
	e.same("the log", e.once(e.read(r, at, second)), []driver.Entry{{Cursor: second, Data: []byte("second")}})
}

// damage: a damaged entry is reported, and nothing is read over it.
func damage(e *env) {
	e.needs(e.World.Damage != nil, "cannot damage entries")
	r, stop := e.start(0, realmName)
	want := e.fill(r, 0, 10)
	e.ok("sync", r.Sync(e.ctx))
	stop()
	e.World.Damage(e.TB, realmName, want[4].Cursor)

	d := e.Open(e.TB, 0)
	defer d.Close()
	r, err := d.Open(e.ctx, realmName, driver.Options{})
	var corrupt *driver.CorruptError
	if errors.As(err, &corrupt) {
		return
	}
	e.ok("open", err)
	defer r.Close()
	var got []driver.Entry
	for entry, err := range r.Read(e.ctx, 0, want[9].Cursor) {
		if err != nil {
			if !errors.As(err, &corrupt) || corrupt.Place == "" {
				e.Fatalf("read of a damaged entry: error %v, want a CorruptError with its place", err)
			}
			e.same("what stands before the damage", got, want[:min(len(got), 4)])
			return
		}
		got = append(got, entry)
	}
	e.Fatalf("read %d entries over a damaged one", len(got))
}

// fullDisk: an append that finds no space has not happened, and says so; later the log goes on.
func fullDisk(e *env) {
	e.needs(e.SetFull != nil, "cannot fill the disk")
	r, stop := e.start(0, realmName)
	want := e.fill(r, 0, 3)
	e.SetFull(e.TB, true)
	at := want[2].Cursor
	_, err := r.Append(e.ctx, at, []byte("no room"))
	known := errors.Is(err, driver.ErrFull)
	if !known && !errors.Is(err, driver.ErrUnknown) {
		e.Fatalf("append on a full disk: error %v, want one with ErrFull or ErrUnknown", err)
	}
	if err := e.tryWrite(r, "file", bytes.Repeat([]byte("x"), 200_000)); err == nil {
		e.Error("a file was written on a full disk")
	}
	e.SetFull(e.TB, false)
	stop() // a log that failed may want to be opened again
	r = e.open(0, realmName)
	end := e.begin(r, []byte("begin"))
	got := e.read(r, 0, end)
	if !known && len(got) > 4 && string(got[3].Data) == "no room" {
		got = slices.Delete(got, 3, 4)
	}
	e.same("the log", got, append(want, driver.Entry{Cursor: end, Data: []byte("begin")}))
}
