//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/driver/postgres"
	"github.com/kuji-dev/kuji/internal/pgtest"
)

// open opens a realm until the test ends.
func open(t testing.TB, d *postgres.Driver) driver.Realm {
	t.Helper()
	r, err := d.Open(t.Context(), "main", driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// fill appends entries after a cursor, and returns the last one's cursor.
func fill(t testing.TB, r driver.Realm, after driver.Cursor, n int) driver.Cursor {
	t.Helper()
	for i := range n {
		after = appendOne(t, r, after, fmt.Sprintf("entry %d after %d", i, after))
	}
	return after
}

// appendOne appends an entry as a ledger does.
func appendOne(t testing.TB, r driver.Realm, after driver.Cursor, text string) driver.Cursor {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		at, err := r.Append(ctx, after, []byte(text))
		if err == nil {
			return at
		}
		if !errors.Is(err, driver.ErrUnknown) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// until waits until a query's value is what is wanted.
func until(t testing.TB, s *pgtest.Server, want, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Until(ctx, want, sql); err != nil {
		t.Fatal(err)
	}
}

// backends selects the sessions of this package that wait for a standby.
const waiting = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'kuji' AND wait_event = 'SyncRep'`

// reader reads on in the background.
type reader struct {
	entries chan driver.Entry
	ended   chan error
}

func follow(ctx context.Context, r driver.Realm, after driver.Cursor) *reader {
	f := &reader{make(chan driver.Entry, 100), make(chan error, 1)}
	go func() {
		for e, err := range r.Read(ctx, after, 0) {
			if err != nil {
				f.ended <- err
				return
			}
			f.entries <- e
		}
	}()
	return f
}

func (f *reader) next(t testing.TB) driver.Entry {
	t.Helper()
	select {
	case e := <-f.entries:
		return e
	case err := <-f.ended:
		t.Fatalf("the reader ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the reader gets nothing")
	}
	return driver.Entry{}
}

// A commit whose wait for the standby was cancelled is there and is no success: the append is unknown, no
// reader gets the entry, and the same append again waits. When the standby has it, both succeed.
func TestWaitCancelled(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{TCP: true})
	schema := newSchema()
	a := open(t, connect(t, s.URL(), schema))
	b := open(t, connect(t, s.URL(), schema))
	first := fill(t, a, 0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := follow(ctx, b, 0)
	f.next(t)

	if err := s.SetSync(t.Context(), "nobody"); err != nil {
		t.Fatal(err)
	}
	_, err := a.Append(t.Context(), first, []byte("second"))
	if !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("append without the standby: error %v, want ErrUnknown", err)
	}
	until(t, s, "1", waiting)
	exec(t, s, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
	until(t, s, "2", fmt.Sprintf("SELECT max(cursor) FROM %s.entries", schema))

	// The reader has seen the row when its fence waits. So does the same append again.
	until(t, s, "1", waiting+" AND query LIKE '%fences%'")
	if _, err := a.Append(t.Context(), first, []byte("second")); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("append of an entry that is there without the standby: error %v, want ErrUnknown", err)
	}
	select {
	case e := <-f.entries:
		t.Fatalf("the reader got %q, which the standby does not have", e.Data)
	default:
	}
	if err := s.SetSync(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if at := appendOne(t, a, first, "second"); at != 2 {
		t.Fatalf("the entry was appended at %d, and stands at 2", at)
	}
	if e := f.next(t); string(e.Data) != "second" || e.Cursor != 2 {
		t.Fatalf("the reader got %q at %d, want the second entry at 2", e.Data, e.Cursor)
	}
	fill(t, a, 2, 3)
}

// However long the standby is away, few sessions wait for it: whoever asks again waits with the first.
func TestFewWait(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{TCP: true})
	schema := newSchema()
	d := connect(t, s.URL(), schema, func(o *postgres.Options) { o.Timeout = 20 * time.Millisecond })
	r := open(t, d)
	if err := s.SetSync(t.Context(), "nobody"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 20 {
		if _, err := r.Append(ctx, 0, []byte("first")); !errors.Is(err, driver.ErrUnknown) {
			t.Fatalf("append without the standby: error %v, want ErrUnknown", err)
		}
		if _, err := r.Begin(ctx, []byte("begin")); !errors.Is(err, driver.ErrUnknown) {
			t.Fatalf("begin without the standby: error %v, want ErrUnknown", err)
		}
		once, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		if err := d.Update(once, func([]byte) ([]byte, error) { return []byte("board"), nil }); err == nil {
			t.Fatal("the board was updated without the standby")
		}
		cancel()
	}
	until(t, s, "true", `SELECT count(*) < 8 FROM pg_stat_activity WHERE application_name = 'kuji'`)
	if err := s.SetSync(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if at := appendOne(t, r, 0, "first"); at != 1 {
		t.Fatalf("the first entry stands at %d", at)
	}
}

// counted passes connections on to a server, and counts them.
func counted(t testing.TB, s *pgtest.Server) (address string, n *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	n = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			go func() {
				defer c.Close()
				server, err := net.Dial("tcp", s.Address())
				if err != nil {
					return
				}
				defer server.Close()
				go func() { io.Copy(server, c); server.Close() }()
				io.Copy(c, server)
			}()
		}
	}()
	return l.Addr().String(), n
}

// Nothing asks the server to cancel a statement: not a context that ends, nor a connection that breaks.
func TestNoCancelRequest(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{TCP: true})
	address, n := counted(t, s)
	schema := newSchema()
	d := connect(t, s.URL(address), schema)
	r := open(t, d)
	fill(t, r, 0, 3)

	// A read is given up in the middle, since a lock is in its way.
	exec(t, s, "CREATE TABLE done (n int)")
	go s.Exec(t.Context(), fmt.Sprintf("BEGIN; LOCK TABLE %s.entries; INSERT INTO done SELECT 1; SELECT pg_sleep(3600); COMMIT", schema))
	until(t, s, "1", "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = '"+schema+".entries'::regclass")
	before := n.Load()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.Last(ctx)
		ended <- err
	}()
	until(t, s, "1", "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'kuji' AND wait_event_type = 'Lock'")
	cancel()
	if err := <-ended; err == nil {
		t.Fatal("a read that was given up has succeeded")
	}
	// The append is under way when its connection breaks.
	if _, err := r.Append(t.Context(), 3, []byte("x")); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("error %v, want ErrUnknown", err)
	}
	exec(t, s, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; LOCK%'")
	appendOne(t, r, 3, "x")
	d.Close()
	log, err := s.Log()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(log, []byte("canceling statement due to user request")) {
		t.Fatal("a statement was cancelled")
	}
	// One for the read and one for the append, beside those that are there for other reasons.
	if got := n.Load() - before; got > 4 {
		t.Fatalf("%d connections more, some of them to cancel", got)
	}
}

// Promise follows the settings.
func TestPromise(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{TCP: true, Fsync: true})
	schema := newSchema()
	for _, c := range []struct {
		settings map[string]string
		want     driver.Survives
	}{
		{map[string]string{}, driver.SurvivesCrash},
		{map[string]string{"synchronous_commit": "off"}, driver.SurvivesServer},
		{map[string]string{"synchronous_commit": "local"}, driver.SurvivesCrash},
		{map[string]string{"synchronous_commit": "on", "fsync": "off"}, driver.SurvivesServer},
		{map[string]string{"synchronous_commit": "local", "fsync": "on", "synchronous_standby_names": "nobody"}, driver.SurvivesCrash},
		{map[string]string{"synchronous_commit": "remote_write"}, driver.SurvivesMachine},
		{map[string]string{"synchronous_commit": "on"}, driver.SurvivesMachine},
	} {
		if err := s.Set(t.Context(), c.settings); err != nil {
			t.Fatal(err)
		}
		if schema != "" { // made while nothing waits
			connect(t, s.URL(), schema).Close()
		}
		d := connect(t, s.URL(), schema)
		if got := d.Promise(); got.Survives != c.want || got.Why == "" {
			t.Errorf("with %v: survives %v (%s), want %v", c.settings, got.Survives, got.Why, c.want)
		}
		d.Close()
	}
}

// The suite passes as well while a standby is waited for.
func TestStandby(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{TCP: true})
	pgtest.Standby(t, s, "one", pgtest.Options{})
	if err := s.SetSync(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	drivertest.Run(t, func(t testing.TB) *drivertest.World { return newWorld(t, s) })
}
