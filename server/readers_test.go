package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server"
)

// reader is a client that reads a realm's events, and takes all that comes.
type reader struct {
	*httptest.ResponseRecorder
	connected chan struct{} // closed when the first message came
	once      sync.Once
	ended     chan struct{}
	leave     context.CancelFunc
}

func (r *reader) Flush()                           { r.once.Do(func() { close(r.connected) }) }
func (r *reader) Write(p []byte) (int, error)      { return len(p), nil }
func (r *reader) FlushError() error                { r.Flush(); return nil }
func (r *reader) SetReadDeadline(time.Time) error  { return nil }
func (r *reader) SetWriteDeadline(time.Time) error { return nil }

// readEventsOf connects a reader, or reports that it was refused.
func readEventsOf(t *testing.T, f *fixture, secret, query string) (*reader, bool) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{ResponseRecorder: httptest.NewRecorder(), connected: make(chan struct{}), ended: make(chan struct{}), leave: cancel}
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/events?"+query, nil)
	req.Header.Set("Authorization", "Bearer "+secret)
	go func() {
		defer close(r.ended)
		f.server.ServeHTTP(r, req)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	select {
	case <-r.connected:
	case <-r.ended:
	}
	return r, r.Code == http.StatusOK
}

// TestReadersShare: one token does not take every reader of a feed. Another one finds a place, many
// leave some to operators, and all of them some to the program.
func TestReadersShare(t *testing.T) {
	f, k, _ := accessServer(t)
	fill := func(player string) (n int) {
		secret := k.of(player)
		for {
			if _, ok := readEventsOf(t, f, secret, "player="+player); !ok {
				return n
			}
			n++
		}
	}
	ann := fill("ann")
	if bob := fill("bob"); ann < 2 || ann > kuji.MaxReaders*3/4 || bob < 1 {
		t.Errorf("one player has %d readers, the next one %d", ann, bob)
	}
	all := ann
	for i := 0; ; i++ {
		n := fill(fmt.Sprint("p", i))
		if n == 0 {
			break
		}
		all += n
	}
	if _, ok := readEventsOf(t, f, "only-read", ""); ok {
		t.Error("a key finds a place although players have taken all that there are for them")
	}
	operators := 0
	for {
		if _, ok := readEventsOf(t, f, "admin", ""); !ok {
			break
		}
		operators++
	}
	r, err := f.engine.Realm("default")
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Stats().Readers; operators < 2 || n >= kuji.MaxReaders {
		t.Errorf("operators found %d places; the realm has %d readers of %d", operators, n, kuji.MaxReaders)
	}
}

// TestOperatorsHavePlaces: of each limit that refuses, operators have some when all others have taken
// what they can.
func TestOperatorsHavePlaces(t *testing.T) {
	f, _, _ := accessServer(t)
	for what, b := range f.server.Refusing("default") {
		release := b.FillUp()
		if b.Take(200, b.Part()) || !b.TakeAsOperator(b.Part()) {
			t.Errorf("%s: everything but places for operators is taken, and they find none, or others do", what)
		}
		release()
	}
	f = newServer(t, server.Options{}) // everybody is one caller
	for what, b := range f.server.Refusing("default") {
		if !b.Take(0, b.Total()) {
			t.Errorf("%s: who is alone does not get everything", what)
		}
	}
}

// TestReadersTakeTurns: old events wait for turns, news do not, and who waits for its client or for
// news has no turn.
func TestReadersTakeTurns(t *testing.T) {
	keys, k := playerKeys(t)
	f := startWith(t, kuji.Options{}, server.Options{Keys: keys})
	ann := "player=ann&access_token=" + k.of("ann")
	draw := func() {
		t.Helper()
		if w := ask(f, methodOf(t, "Draw"), "everything", `{"player": "ann", "pool": "free"}`); w.Code != 200 {
			t.Fatalf("HTTP %d %s", w.Code, w.Body)
		}
	}
	live := listen(t, f, ann, "")
	for range 40 {
		draw()
		live.event()
	}
	release := f.server.HoldReads()
	old := listen(t, f, "from=1&"+ann, "")
	until(t, "the reader of old events waits", func() bool { return f.server.WaitingReads() == 1 })
	draw()
	live.event()
	release()
	for range 41 {
		old.event()
	}
	draw()
	old.event()
	live.event()
	if n := f.server.InReads(); n != 0 {
		t.Errorf("%d turns are taken by readers that wait for news", n)
	}
}
