//go:build unix

package history

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/pgtest"
)

// targets are the databases to test with: a function for each that returns an empty one.
func targets(t *testing.T) map[string]func(t *testing.T) string {
	return map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "history", "h.db") },
		"postgres": func(t *testing.T) string { return pgtest.Database(t) },
	}
}

func TestMain(m *testing.M) {
	if file := os.Getenv("KUJI_HISTORY_CHILD"); file != "" {
		runChild(file)
		return
	}
	m.Run()
	pgtest.Stop()
}

// TestAway: a database that is away is an error of its own, and a history that waits for it does not
// wait for long. Once the database is back, reads go on by themselves.
func TestAway(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 30)
	url := pgtest.Database(t)
	h := openTest(t, url)
	done := make(chan error, 1)
	run := func() { done <- h.Run(t.Context(), r.Feed().Events) }
	go run()
	if err := h.Wait(t.Context(), r.Stats().LastEvent); err != nil {
		t.Fatal(err)
	}
	same(t, h, all(t, r)) // with connections that are kept
	if err := h.Down(); err != nil {
		t.Errorf("it is there: %v", err)
	}
	back := pgtest.Away(t, url)
	if _, err := h.Events(t.Context(), Query{Player: "ann"}); kuji.CodeOf(err) != kuji.CodeFailed {
		t.Errorf("away: %v", err)
	}
	load(t, r, 2, 30)
	if err := h.Wait(t.Context(), r.Stats().LastEvent); kuji.CodeOf(err) != kuji.CodeFailed {
		t.Errorf("waiting for what is away: %v", err)
	}
	if err := <-done; kuji.CodeOf(err) != kuji.CodeFailed {
		t.Errorf("Run: %v", err)
	}
	if err := h.Down(); kuji.CodeOf(err) != kuji.CodeFailed {
		t.Errorf("it is away: %v", err)
	}
	back()
	if _, err := h.Events(t.Context(), Query{Player: "ann"}); err != nil {
		t.Errorf("back: %v", err)
	}
	go run()
	for h.Wait(t.Context(), r.Stats().LastEvent) != nil { // until the Run has found where to go on
		goesOn(t, done)
	}
	if err := h.Down(); err != nil {
		t.Errorf("it is back: %v", err)
	}
	same(t, h, all(t, r))
	// Connections that were lost meanwhile are no error.
	pgtest.Away(t, url)()
	for range 2 * maxReads {
		if _, err := h.Events(t.Context(), Query{Player: "ann"}); err != nil {
			t.Errorf("its connections were lost: %v", err)
		}
	}
}
