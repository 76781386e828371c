package drivertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/kuji-dev/kuji/driver"
)

// outcome is how an append ended.
type outcome struct {
	at  driver.Cursor
	err error
}

// background appends an entry, and sends how that ended.
func background(ctx context.Context, r driver.Realm, after driver.Cursor, data string) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		at, err := r.Append(ctx, after, []byte(data))
		ended <- outcome{at, err}
	}()
	return ended
}

// caught waits until something is held.
func (e *env) caught(h Hold) {
	e.Helper()
	select {
	case <-h.Caught():
	case <-e.ctx.Done():
		e.Fatalf("nothing was sent: %v", e.ctx.Err())
	}
}

// ended waits for the end of an append that nobody answers.
func (e *env) ended(ch <-chan outcome) outcome {
	e.Helper()
	select {
	case o := <-ch:
		return o
	case <-e.ctx.Done():
		e.Fatalf("an append goes on after its context ended")
		return outcome{}
	}
}

// two opens a realm at two nodes, the first of which can be cut off.
func (e *env) two() (a, b driver.Realm, first driver.Cursor) {
	e.Helper()
	e.needs(e.Hold != nil, "has nothing between the driver and its log where a message could be held")
	a, b = e.open(0, realmName), e.open(1, realmName)
	return a, b, e.append(a, 0, []byte("first"))
}

// answerLost: the entry is in the log, the answer is not coming. The append is unknown, and the same
// bytes again find their place.
func answerLost(e *env) {
	a, b, first := e.two()
	hold := e.Hold(0, Answers)
	ctx, cancel := context.WithCancel(e.ctx)
	append1 := background(ctx, a, first, "second")
	var second driver.Entry
	for entry, err := range b.Read(e.ctx, first, 0) { // it is in the log now
		e.ok("read", err)
		second = entry
		break
	}
	if string(second.Data) != "second" {
		e.Fatalf("behind %d stands %q", first, second.Data)
	}
	hold.Drop()
	cancel()
	if got := e.ended(append1); got.err == nil && got.at != second.Cursor {
		e.Fatalf("the append returned %d, and the entry stands at %d", got.at, second.Cursor)
	} else if got.err != nil {
		e.is("append whose answer was lost", got.err, driver.ErrUnknown)
	}
	again := e.settle(a, first, []byte("second"), true)
	if again != second.Cursor && !e.Unconditional {
		e.Fatalf("the same entry again was appended at %d, and stands at %d", again, second.Cursor)
	}
	end := e.append(b, again, []byte("third"))
	second.Cursor = again
	e.same("the log", e.once(e.read(b, first, end)), []driver.Entry{second, {Cursor: end, Data: []byte("third")}})
}

// requestLost: the entry never got there. The append is unknown, and the same bytes again get there.
func requestLost(e *env) {
	a, b, first := e.two()
	hold := e.Hold(0, Requests)
	ctx, cancel := context.WithCancel(e.ctx)
	ended := background(ctx, a, first, "second")
	e.caught(hold)
	hold.Drop()
	cancel()
	if got := e.ended(ended); got.err != nil {
		e.is("append whose request was lost", got.err, driver.ErrUnknown)
	} else {
		e.same("the log after an append that says it is done", e.read(b, first, got.at), []driver.Entry{{Cursor: got.at, Data: []byte("second")}})
	}
	second := e.settle(a, first, []byte("second"), true)
	e.same("the log", e.once(e.read(b, first, second)), []driver.Entry{{Cursor: second, Data: []byte("second")}})
}

// requestLate: a request that comes after another writer took over is unknown to its sender, and
// changes nothing where the log can refuse it.
func requestLate(e *env) {
	a, b, first := e.two()
	hold := e.Hold(0, Requests)
	ctx, cancel := context.WithCancel(e.ctx)
	ended := background(ctx, a, first, "late")
	e.caught(hold)
	cancel()
	got := e.ended(ended)
	e.is("append that got no answer", got.err, driver.ErrUnknown)
	begun := e.begin(b, []byte("begin"))
	hold.Deliver()
	e.afterwards(a, b, first, begun, "late")
}

// deposedWriter: a writer with bytes still queued, which does not know that it was deposed, learns
// it from its next append. Its bytes change nothing where the log can refuse them.
func deposedWriter(e *env) {
	a, b, first := e.two()
	hold := e.Hold(0, Requests)
	for range 3 { // the same bytes, as the contract has it
		ctx, cancel := context.WithCancel(e.ctx)
		ended := background(ctx, a, first, "queued")
		e.caught(hold)
		cancel()
		e.is("append that got no answer", e.ended(ended).err, driver.ErrUnknown)
	}
	begun := e.begin(b, []byte("begin"))
	hold.Deliver()
	for {
		_, err := a.Append(e.ctx, first, []byte("queued"))
		if !errors.Is(err, driver.ErrUnknown) || e.ctx.Err() != nil {
			e.is("append by a writer that was deposed", err, driver.ErrDeposed)
			break
		}
	}
	e.afterwards(a, b, first, begun, "queued")
}

// afterwards checks the log behind a takeover: both nodes read the same, the new writer's entries
// are in it, and the old one's are not if the log can refuse them.
func (e *env) afterwards(a, b driver.Realm, first, begun driver.Cursor, late string) {
	e.Helper()
	at := begun
	for i := range 20 { // whatever is on its way arrives meanwhile
		if e.Unconditional {
			at = e.begin(b, fmt.Appendf(nil, "new %d", i))
		} else {
			at = e.append(b, at, fmt.Appendf(nil, "new %d", i))
		}
	}
	log := e.read(b, first, at)
	e.same("read by the old writer", e.read(a, first, at), log)
	news := 0
	for i, entry := range log {
		switch {
		case string(entry.Data) == late && !e.Unconditional:
			e.Fatalf("the old writer's entry stands at %d, though another one stands behind %d", entry.Cursor, first)
		case i > 0 && entry.Cursor <= log[i-1].Cursor:
			e.Fatalf("cursor %d behind %d", entry.Cursor, log[i-1].Cursor)
		case string(entry.Data) == fmt.Sprintf("new %d", news):
			news++
		}
	}
	if news != 20 {
		e.Fatalf("the log has %d entries of the new writer, want 20", news)
	}
}
