package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kuji-dev/kuji/driver"
)

// nodes is what a check of boards works with: nodes that share one.
type nodes struct{ *env }

// onNodes makes a check of boards a check.
func onNodes(run func(*nodes)) func(*env) { return func(e *env) { run(&nodes{e}) } }

// sharedAt opens a driver that has a board, until the check ends.
func (e *nodes) sharedAt(node int) driver.Shared {
	e.Helper()
	s, _ := e.startShared(node)
	return s
}

// startShared is sharedAt for who wants to close the driver, which stop does.
func (e *nodes) startShared(node int) (s driver.Shared, stop func()) {
	e.Helper()
	e.needs(!e.Exclusive, "lets in one process, which needs no board")
	d := e.Open(e.TB, node)
	s, ok := d.(driver.Shared)
	if !ok {
		_ = d.Close()
		e.needs(false, "has no board")
	}
	over := false
	stop = func() {
		if over {
			return
		}
		over = true
		if err := d.Close(); err != nil {
			e.Errorf("close driver: %v", err)
		}
	}
	e.Cleanup(stop)
	return s, stop
}

// put returns a change that adds a line, unless it is there.
func put(line string) func(old []byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) {
		if slices.Contains(linesOf(old), line) {
			return old, nil
		}
		return fmt.Appendf(bytes.Clone(old), "%s\n", line), nil
	}
}

func linesOf(board []byte) []string {
	var lines []string
	for line := range bytes.Lines(board) {
		lines = append(lines, string(bytes.TrimSuffix(line, []byte("\n"))))
	}
	return lines
}

// update updates the board as a node would: again, until it knows that the change was made. So change
// must be one that can be made twice.
func (e *nodes) update(b driver.Board, change func(old []byte) ([]byte, error)) {
	e.Helper()
	for {
		err := b.Update(e.ctx, change)
		if err == nil {
			return
		}
		if e.ctx.Err() != nil || errors.Is(err, driver.ErrClosed) {
			e.Fatalf("update of the board: %v", err)
		}
	}
}

// board returns what is on the board.
func (e *nodes) board(b driver.Board) (now []byte) {
	e.Helper()
	e.update(b, func(old []byte) ([]byte, error) {
		now = bytes.Clone(old)
		return old, nil
	})
	return now
}

// shows fails the check if the board has other lines.
func (e *nodes) shows(what string, b driver.Board, want ...string) {
	e.Helper()
	if got := linesOf(e.board(b)); !slices.Equal(got, want) {
		e.Fatalf("%s: the board has the lines %.400q, want %.400q", what, got, want)
	}
}

// boardReplaced: a board is empty at first, then it has what was last written, for every node. What is
// equal is not written.
func boardReplaced(e *nodes) {
	a, b := e.sharedAt(0), e.sharedAt(1)
	for _, node := range []driver.Board{a, b} {
		if old := e.board(node); old != nil {
			e.Fatalf("a new board has %.40q, want nil", old)
		}
	}
	if names, err := a.Realms(e.ctx); err != nil || len(names) > 0 {
		e.Fatalf("with a board alone there are realms %q, %v, want none", names, err)
	}
	for i, node := range []driver.Board{a, b, b, a} {
		e.update(node, func([]byte) ([]byte, error) { return fmt.Appendf(nil, "content %d\n", i), nil })
		e.shows("read by the first node", a, fmt.Sprint("content ", i))
		e.shows("read by the second node", b, fmt.Sprint("content ", i))
	}
	// The same content again delays nobody. A driver may call change again on its own, but not each time.
	const most = 5
	for try := 1; ; try++ {
		calls := 0
		e.update(b, func([]byte) ([]byte, error) {
			if calls++; calls == 1 {
				e.update(a, func(old []byte) ([]byte, error) { return old, nil })
			}
			return fmt.Appendf(nil, "try %d\n", try), nil
		})
		if calls == 1 {
			return
		}
		if try == most {
			e.Fatalf("an update that leaves the board as it is makes others begin again, %d times of %d", try, most)
		}
	}
}

// boardChangedAgain: change gets what another node wrote meanwhile, and neither is lost. Nobody waits for
// a node that is about to change the board.
func boardChangedAgain(e *nodes) {
	a, b := e.sharedAt(0), e.sharedAt(1)
	want := []string{"first"}
	e.update(a, put("first"))
	for round := range 3 {
		calls := 0
		e.update(a, func(old []byte) ([]byte, error) {
			if calls++; calls == 1 {
				e.update(b, put(fmt.Sprint("faster ", round)))
			}
			return put(fmt.Sprint("slower ", round))(old)
		})
		if calls < 2 {
			e.Fatalf("another node was faster, and change was called %d times, want twice", calls)
		}
		want = append(want, fmt.Sprint("faster ", round), fmt.Sprint("slower ", round))
	}
	e.shows("read by the slower node", a, want...)
	e.shows("read by the faster node", b, want...)
}

// boardRefused: a change that fails, or that is too large, changes nothing. The largest is kept whole.
func boardRefused(e *nodes) {
	a, b := e.sharedAt(0), e.sharedAt(1)
	e.update(a, put("first"))
	no := errors.New("no")
	e.is("a change that fails", a.Update(e.ctx, func([]byte) ([]byte, error) { return []byte("other\n"), no }), no)
	e.shows("after a change that failed", b, "first")
	large := bytes.Repeat([]byte("0123456789abcde\n"), driver.MaxBoard/16+1)
	if err := a.Update(e.ctx, func([]byte) ([]byte, error) { return large[:driver.MaxBoard+1], nil }); err == nil {
		e.Fatalf("a board of %d bytes was taken, want at most %d", driver.MaxBoard+1, driver.MaxBoard)
	}
	e.shows("after an update that was too large", b, "first")
	e.update(a, func([]byte) ([]byte, error) { return large[:driver.MaxBoard], nil })
	if got := e.board(b); !bytes.Equal(got, large[:driver.MaxBoard]) {
		e.Fatalf("the largest board has %d bytes, or other ones, want %d", len(got), driver.MaxBoard)
	}
	e.update(b, func([]byte) ([]byte, error) { return []byte("small\n"), nil })
	e.shows("after the largest", a, "small")
}

// boardAliasing: the board keeps no buffer of change, nor change one of the board's.
func boardAliasing(e *nodes) {
	a, b := e.sharedAt(0), e.sharedAt(1)
	buffer := []byte("first\n")
	e.update(a, func([]byte) ([]byte, error) { return buffer, nil })
	clear(buffer)
	var kept []byte
	e.update(a, func(old []byte) ([]byte, error) {
		kept = old
		return bytes.Clone(old), nil
	})
	clear(kept)
	e.shows("after its buffers were used again", a, "first")
	e.shows("read by another node", b, "first")
}

// boardRace: nodes that update at the same time lose nothing, and all see one order: as each adds a line
// at the end, whatever one of them saw is the beginning of what is there at last.
func boardRace(e *nodes) {
	const writers, each = 3, 15
	var mu sync.Mutex
	var seen [][]byte
	var failed error
	var wg sync.WaitGroup
	boards := make([]driver.Shared, writers)
	for i := range boards {
		boards[i] = e.sharedAt(i % 2)
	}
	for i, b := range boards {
		wg.Go(func() {
			for n := range each {
				add := put(fmt.Sprintf("writer %d line %d", i, n))
				for err := errors.New("not yet"); err != nil; {
					err = b.Update(e.ctx, func(old []byte) ([]byte, error) {
						mu.Lock()
						defer mu.Unlock()
						seen = append(seen, bytes.Clone(old))
						return add(old)
					})
					if e.ctx.Err() != nil {
						mu.Lock()
						defer mu.Unlock()
						failed = fmt.Errorf("writer %d, line %d: %w", i, n, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	e.ok("updates at the same time", failed)
	all := e.board(boards[0])
	next := [writers]int{}
	for _, line := range linesOf(all) {
		var i, n int
		if _, err := fmt.Sscanf(line, "writer %d line %d", &i, &n); err != nil || n != next[i] {
			e.Fatalf("the board has the line %q, want line %d of writer %d", line, next[i], i)
		}
		next[i]++
	}
	for i, n := range next {
		if n != each {
			e.Fatalf("%d lines of writer %d are on the board, want %d", n, i, each)
		}
	}
	for _, old := range seen {
		if !bytes.HasPrefix(all, old) {
			e.Fatalf("a writer saw %.400q, and the board came to %.400q", old, all)
		}
	}
}

// changing updates the board in the background. What goes one way is held from when change is called.
func (e *nodes) changing(ctx context.Context, b driver.Board, way Way, line string) (hold Hold, ended <-chan error) {
	e.Helper()
	held, end := make(chan Hold, 1), make(chan error, 1)
	var once sync.Once
	go func() {
		end <- b.Update(ctx, func(old []byte) ([]byte, error) {
			once.Do(func() { held <- e.Hold(0, way) })
			return put(line)(old)
		})
	}()
	select {
	case hold = <-held:
	case err := <-end:
		e.Fatalf("update of the board: %v, before it called change", err)
	case <-e.ctx.Done():
		e.Fatalf("update of the board calls no change: %v", e.ctx.Err())
	}
	e.caught(hold)
	return hold, end
}

// result waits for the end of an update.
func (e *nodes) result(ended <-chan error) error {
	e.Helper()
	select {
	case err := <-ended:
		return err
	case <-e.ctx.Done():
		e.Fatal("an update of the board goes on after its context ended")
		return nil
	}
}

// boardAnswerLost: an update whose answer is lost may have happened. All see the same of it, and it
// undoes nothing.
func boardAnswerLost(e *nodes) {
	e.needs(e.Hold != nil, "has nothing between the driver and its board where a message could be held")
	a, b := e.sharedAt(0), e.sharedAt(1)
	e.update(a, put("first"))
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	hold, ended := e.changing(ctx, a, Answers, "second")
	hold.Drop()
	cancel()
	err := e.result(ended)
	e.update(b, put("third"))
	e.board(a) // whatever is still on its way has arrived
	e.update(b, put("fourth"))
	if err == nil && !slices.Contains(linesOf(e.board(b)), "second") {
		e.Fatal("an update without an error is not on the board")
	}
	e.unknown(b, "second", "first", "third", "fourth")
	e.unknown(a, "second", "first", "third", "fourth")
}

// unknown fails the check if the board has other lines, but for one of unknown fate, which may be there once.
func (e *nodes) unknown(b driver.Board, line string, want ...string) {
	e.Helper()
	all := linesOf(e.board(b))
	got := slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other == line })
	if !slices.Equal(got, want) || len(all)-len(got) > 1 {
		e.Fatalf("the board has the lines %.400q, want %.400q, and %q at most once", all, want, line)
	}
}

// boardRequestLate: a node that is held delays no other, and what it wrote before it saw theirs does not
// replace it.
func boardRequestLate(e *nodes) {
	e.needs(e.Hold != nil, "has nothing between the driver and its board where a message could be held")
	a, b := e.sharedAt(0), e.sharedAt(1)
	e.update(a, put("first"))
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	hold, ended := e.changing(ctx, a, Requests, "late")
	want := []string{"first", "new 0"}
	e.update(b, put("new 0"))
	cancel()
	if err := e.result(ended); err == nil {
		e.Fatal("an update that never arrived had no error")
	}
	hold.Deliver()
	for i := 1; i < 10; i++ { // whatever is on its way arrives meanwhile
		line := fmt.Sprint("new ", i)
		e.update(b, put(line))
		want = append(want, line)
	}
	e.unknown(b, "late", want...)
	e.unknown(a, "late", want...)
}

// boardReopened: the next process finds the board, however often it was replaced.
func boardReopened(e *nodes) {
	for i := range 3 {
		s, stop := e.startShared(i % 2)
		if i > 0 {
			e.shows("opened again", s, fmt.Sprintf("process %d update 39", i-1))
		}
		for n := range 40 {
			e.update(s, func([]byte) ([]byte, error) { return fmt.Appendf(nil, "process %d update %d\n", i, n), nil })
		}
		stop()
		if err := s.Update(e.ctx, put("closed")); !errors.Is(err, driver.ErrClosed) {
			e.Fatalf("update after Close: error %v, want ErrClosed", err)
		}
	}
}

// boardFailover: when another replica leads, the board is as it was.
func boardFailover(e *nodes) {
	e.needs(e.Failover != nil, "has one replica")
	a, b := e.sharedAt(0), e.sharedAt(1)
	var want []string
	for round := range 2 {
		for i := range 3 {
			line := fmt.Sprintf("round %d line %d", round, i)
			e.update([]driver.Board{a, b}[i%2], put(line))
			want = append(want, line)
		}
		e.Failover(e.TB, "")
		e.shows("after a failover", b, want...)
		e.shows("after a failover, read by the other node", a, want...)
	}
}

// nudged: a driver whose readers ask from time to time says what was appended, and readers that are told
// get it. What they are told wrongly does no harm.
func nudged(e *env) {
	e.needs(!e.Exclusive, "lets in one process, which nobody has to tell anything")
	da, db := e.Open(e.TB, 0), e.Open(e.TB, 1)
	defer da.Close()
	defer db.Close()
	teller, ok1 := da.(driver.Nudged)
	reader, ok2 := db.(driver.Nudged)
	e.needs(ok1 && ok2, "learns of new entries without being told")
	type note struct {
		realm string
		at    driver.Cursor
	}
	const n = 10
	notes := make(chan note, 10*n)
	teller.OnAppend(func(realm string, at driver.Cursor) {
		select {
		case notes <- note{realm, at}:
		default: // it must return at once
		}
	})
	a, err := da.Open(e.ctx, realmName, driver.Options{})
	e.ok("open", err)
	defer a.Close()
	b, err := db.Open(e.ctx, realmName, driver.Options{})
	e.ok("open", err)
	defer b.Close()
	reader.Nudge(realmName, 1<<40)
	reader.Nudge("another", 1)
	var want, got []driver.Entry
	at := driver.Cursor(0)
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	read := make(chan driver.Entry, n)
	ended := make(chan error, 1)
	go func() {
		for entry, err := range b.Read(ctx, 0, 0) {
			if err != nil {
				ended <- err
				return
			}
			read <- entry
		}
	}()
	for range n {
		want = append(want, e.fill(a, at, 1)...)
		at = want[len(want)-1].Cursor
		for told := (note{}); told.at < at; {
			select {
			case told = <-notes:
			case <-e.ctx.Done():
				e.Fatalf("nobody was told of the entry at %d", at)
			}
			if told.realm != realmName || told.at > at {
				e.Fatalf("realm %q was said to have an entry at %d, want %q, at most at %d", told.realm, told.at, realmName, at)
			}
			reader.Nudge(told.realm, told.at)
		}
		select {
		case entry := <-read:
			got = append(got, entry)
		case err := <-ended:
			e.Fatalf("read after a nudge: %v", err)
		case <-e.ctx.Done():
			e.Fatalf("a reader that was told of the entry at %d does not get it", at)
		}
		reader.Nudge(realmName, at+1000)
	}
	e.same("what was read", got, want)
	if last := e.last(b); last != at {
		e.Fatalf("after a nudge of more, the log ends at %d, want %d", last, at)
	}
}
