package drivertest

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/kuji-dev/kuji/driver"
)

// follow: a reader that follows gets every entry as it comes, until its context ends.
func follow(e *env) {
	a := e.open(0, realmName)
	b := e.second(a)
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	next, stop := iter.Pull2(b.Read(ctx, 0, 0))
	defer stop()
	at := driver.Cursor(0)
	for i := range 30 {
		data := fmt.Appendf(nil, "entry %d", i)
		at = e.append(a, at, data)
		entry, err, ok := next()
		e.ok("follow", err)
		if !ok {
			e.Fatal("a reader that follows ended without an error")
		}
		e.same("what is followed", []driver.Entry{entry}, []driver.Entry{{Cursor: at, Data: data}})
	}
	cancel()
	_, err, _ := next()
	e.is("follow until the context ends", err, context.Canceled)
	if _, _, ok := next(); ok {
		e.Fatal("a reader goes on after its error")
	}
}

// contextEnds: a reader whose context has ended gets no entry more, however many there are.
func contextEnds(e *env) {
	a := e.open(0, realmName)
	b := e.second(a)
	all := e.fill(a, 0, 40)
	for _, through := range []driver.Cursor{0, all[39].Cursor} {
		ctx, cancel := context.WithCancel(e.ctx)
		n := 0
		for _, err := range b.Read(ctx, 0, through) {
			if err != nil {
				e.is("read in a context that has ended", err, context.Canceled)
				break
			}
			n++
			cancel()
		}
		cancel()
		if n != 1 {
			e.Fatalf("through %d: a reader whose context ended after one entry got %d", through, n)
		}
	}
}

// slowReader: a reader that stands still delays no writer, and misses nothing.
func slowReader(e *env) {
	a := e.open(0, realmName)
	b := e.second(a)
	want := e.fill(a, 0, 1)
	next, stop := iter.Pull2(b.Read(e.ctx, 0, 0))
	defer stop()
	entry, err, _ := next()
	e.ok("follow", err)
	got := []driver.Entry{entry}
	want = append(want, e.fill(a, entry.Cursor, 300)...)
	for len(got) < len(want) {
		entry, err, _ := next()
		e.ok("follow", err)
		got = append(got, entry)
	}
	e.same("what is followed", got, want)
}

// failover: when another replica leads the log, readers miss nothing and nothing acknowledged is
// lost or doubled.
func failover(e *env) {
	e.needs(e.Failover != nil, "has one replica")
	a := e.open(0, realmName)
	b := e.second(a)
	follower, stop := iter.Pull2(b.Read(e.ctx, 0, 0))
	defer stop()
	at := driver.Cursor(0)
	var want, got []driver.Entry
	for range 2 {
		for range 10 {
			filled := e.fill(a, at, 1)
			at = filled[0].Cursor
			want = append(want, filled...)
			entry, err, _ := follower()
			e.ok("follow", err)
			got = append(got, entry)
		}
		e.Failover(e.TB, realmName)
		want = append(want, e.fill(a, at, 5)...)
		at = want[len(want)-1].Cursor
		for range 5 {
			entry, err, _ := follower()
			e.ok("follow through a failover", err)
			got = append(got, entry)
		}
	}
	e.same("what was followed", got, want)
	e.same("the log", e.read(a, 0, at), want)
}

// trim: entries before a cursor go, all others stay, and who asks for what is gone is told.
func trim(e *env) {
	r, stop := e.start(0, realmName)
	want := e.fill(r, 0, 40)
	end := want[39].Cursor
	for range 2 {
		e.ok("trim", r.Trim(e.ctx, want[20].Cursor))
		e.trimmed(r, want, 20)
	}
	e.ok("trim to where it is trimmed already", r.Trim(e.ctx, want[3].Cursor))
	e.trimmed(r, want, 20)
	stop()

	r = e.open(0, realmName)
	e.trimmed(r, want, 20)
	e.ok("trim the whole log", r.Trim(e.ctx, end+1))
	if last := e.last(r); last != end {
		e.Fatalf("the log ended at %d, and was trimmed: now it ends at %d", end, last)
	}
	first, err := r.First(e.ctx)
	e.ok("first", err)
	if first > end+1 {
		e.Fatalf("first entry %d, want at most %d", first, end+1)
	}
	more := e.fill(r, end, 3)
	e.same("what comes behind", e.read(r, end, more[2].Cursor), more)
}

// trimmed checks a log that was trimmed to want[n].
func (e *env) trimmed(r driver.Realm, want []driver.Entry, n int) {
	e.Helper()
	end := want[len(want)-1].Cursor
	e.same("what was not trimmed", e.read(r, want[n-1].Cursor, end), want[n:])
	first, err := r.First(e.ctx)
	e.ok("first", err)
	if first > want[n].Cursor {
		e.Fatalf("first entry %d, and %d was to be kept", first, want[n].Cursor)
	}
	got, err := collectTrimmed(r.Read(e.ctx, 0, end))
	var gone *driver.TrimmedError
	if errors.As(err, &gone) {
		if len(got) > 0 || gone.First == 0 || gone.First > want[n].Cursor {
			e.Fatalf("read from the start: %d entries, then %v; entry %d was to be kept", len(got), err, want[n].Cursor)
		}
		return
	}
	e.ok("read from the start", err)
	e.same("a log that kept what could go", got, want)
}

func collectTrimmed(seq iter.Seq2[driver.Entry, error]) (entries []driver.Entry, err error) {
	for entry, err := range seq {
		if err != nil {
			return entries, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// trimUnderReader: a reader whose next entries are trimmed goes on without a hole, or is told.
func trimUnderReader(e *env) {
	r := e.open(0, realmName)
	want := e.fill(r, 0, 200)
	end := want[199].Cursor
	n := 0
	for entry, err := range r.Read(e.ctx, 0, end) {
		var gone *driver.TrimmedError
		if errors.As(err, &gone) {
			if gone.First > want[150].Cursor {
				e.Fatalf("%v; entry %d was to be kept", gone, want[150].Cursor)
			}
			e.same("from there on", e.read(r, want[149].Cursor, end), want[150:])
			return
		}
		e.ok("read", err)
		e.same("read while the log is trimmed", []driver.Entry{entry}, want[n:n+1])
		if n++; n == 10 {
			e.ok("trim", r.Trim(e.ctx, want[150].Cursor))
		}
	}
	if n != len(want) {
		e.Fatalf("the reader ended after %d entries without an error, want %d or a TrimmedError", n, len(want))
	}
}

// closeInTheMiddle: Close ends what is under way.
func closeInTheMiddle(e *env) {
	r, stop := e.start(0, realmName)
	at := e.append(r, 0, []byte("first"))
	reading, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		first := true
		for _, err := range r.Read(e.ctx, 0, 0) {
			if err != nil {
				ended <- err
				return
			}
			if first {
				close(reading)
			}
			first = false
		}
		ended <- nil
	}()
	select {
	case <-reading:
	case err := <-ended:
		e.Fatalf("the reader ended: %v", err)
	case <-e.ctx.Done():
		e.Fatal("the reader got nothing")
	}
	var appended <-chan outcome
	if e.Hold != nil {
		hold := e.Hold(0, Requests)
		defer hold.Drop()
		appended = background(e.ctx, r, at, "second")
		e.caught(hold)
	}
	stop()
	select {
	case err := <-ended:
		e.is("read under way", err, driver.ErrClosed)
	case <-e.ctx.Done():
		e.Fatal("Close left a reader waiting")
	}
	if appended != nil {
		if o := e.ended(appended); !errors.Is(o.err, driver.ErrClosed) && !errors.Is(o.err, driver.ErrUnknown) {
			e.Fatalf("append under way: %v, %d, want ErrClosed or ErrUnknown", o.err, o.at)
		}
	}
}

// closed: after Close every call says ErrClosed.
func closed(e *env) {
	d := e.Open(e.TB, 0)
	r, err := d.Open(e.ctx, realmName, driver.Options{})
	e.ok("open", err)
	w, err := r.Create(e.ctx)
	e.ok("create", err)
	defer w.Abort()
	e.ok("close", r.Close())

	_, appendErr := r.Append(e.ctx, 0, []byte("x"))
	_, beginErr := r.Begin(e.ctx, []byte("x"))
	_, lastErr := r.Last(e.ctx)
	_, firstErr := r.First(e.ctx)
	_, createErr := r.Create(e.ctx)
	_, openErr := r.OpenFile(e.ctx, "file")
	_, listErr := r.List(e.ctx)
	_, readErr := collectTrimmed(r.Read(e.ctx, 0, 0))
	errs := map[string]error{
		"append": appendErr, "begin": beginErr, "last": lastErr, "first": firstErr, "create": createErr,
		"open": openErr, "list": listErr, "read": readErr,
		"sync": r.Sync(e.ctx), "trim": r.Trim(e.ctx, 1), "remove": r.Remove(e.ctx, "file"),
		"commit": w.Commit(e.ctx, "file"),
	}
	e.ok("close driver", d.Close())
	_, errs["driver's open"] = d.Open(e.ctx, realmName, driver.Options{})
	_, errs["driver's realms"] = d.Realms(e.ctx)
	for what, err := range errs {
		if !errors.Is(err, driver.ErrClosed) {
			e.Errorf("%s after Close: error %v, want ErrClosed", what, err)
		}
	}
}
