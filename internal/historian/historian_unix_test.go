//go:build unix

package historian

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/history"
	"github.com/kuji-dev/kuji/internal/pgtest"
	"github.com/kuji-dev/kuji/internal/step"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// lines is a log that goroutines write to.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// historyOf is a realm with its historian and its log, in this process.
func historyOf(t *testing.T, where string) (*Historian, *kuji.Realm, *lines) {
	t.Helper()
	dir, log := t.TempDir(), &lines{}
	e, err := kuji.Open(dir, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	h := New(slog.New(slog.NewTextHandler(log, nil)), func(string) string { return where }, history.Options{})
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	h.Follow(r)
	return h, r, log
}

// applied puts a catalog in force, which is an event, and returns its position.
func applied(t *testing.T, r *kuji.Realm) uint64 {
	t.Helper()
	c, err := catalog.Parse([]byte("kuji: 1\nitems: {gem: {}}\npools: {p: {entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "p"}); err != nil {
		t.Fatal(err)
	}
	return r.Stats().LastEvent
}

// waits waits until the historian has a position, however often it fails before.
func waits(t *testing.T, h *Historian, position uint64) {
	t.Helper()
	for {
		err := h.Wait(t.Context(), "test", position)
		if err == nil {
			return
		}
		if code := kuji.CodeOf(err); code != kuji.CodeFailed && code != kuji.CodeOverloaded && code != kuji.CodeCorrupt {
			t.Fatal(err)
		}
		step.Pause(t.Context(), 10*time.Millisecond)
	}
}

// TestHistoryOutage: while PostgreSQL is away, only the history is down. It comes back by itself.
func TestHistoryOutage(t *testing.T) {
	url := pgtest.Database(t)
	h, r, log := historyOf(t, url)
	ask := func() error {
		_, _, err := h.Events(t.Context(), "test", &kujiv1.GetHistoryRequest{Player: "ann"})
		return err
	}
	waits(t, h, applied(t, r))
	back := pgtest.Away(t, url)
	for range 2 {
		if err := ask(); kuji.CodeOf(err) != kuji.CodeFailed {
			t.Errorf("away: %v", err)
		}
	}
	last := applied(t, r)
	for h.Down("test") == nil { // until it writes
		step.Pause(t.Context(), time.Millisecond)
	}
	if err := r.Err(); err != nil {
		t.Errorf("the realm: %v", err)
	}
	back()
	waits(t, h, last)
	if err := ask(); err != nil || h.Down("test") != nil {
		t.Errorf("back: %v, down %v", err, h.Down("test"))
	}
	for text, n := range map[string]int{"the history cannot be read; the realm goes on": 1, "the history can be read again": 1, "a realm has stopped": 0} {
		if got := strings.Count(log.String(), text); got != n {
			t.Errorf("the log says %q %d times, want %d:\n%s", text, got, n, log)
		}
	}
}

func TestMain(m *testing.M) {
	defer pgtest.Stop()
	m.Run()
}
