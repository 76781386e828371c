package kuji

import (
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// untold proposes an event that the state could apply, and whose result cannot be read.
type untold struct{}

func (untold) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	w.stamp(b)
	event.Begin(uint8(rules.KindAtomic), "untold")
	event.BeginAsked()
	event.EndAsked()
	event.End()
	return nil, nil
}

func (untold) entered(*writer, *ledger.Batch) {}

// TestUntold: an event whose result cannot be told does not count. DoAll says of such a request that it
// was refused and that nothing was logged. The rules have used random values for it, so the realm stops:
// nothing of the open batch is logged or answered.
func TestUntold(t *testing.T) {
	dir := t.TempDir()
	open := func() (*Engine, *Realm) {
		e, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Realm("test")
		if err != nil {
			t.Fatal(err)
		}
		return e, r
	}
	e, r := open()
	c, err := catalog.Parse([]byte("kuji: 1\nitems: {gold: {}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}

	grant := rules.Command{Kind: rules.KindGrant, ID: "told", Player: "ann", Items: []Stack{{Item: "gold", Quantity: 1}}}
	results := make([]Result, 2)
	w := r.w
	w.mu.Lock()
	events := w.counts.stats.Events
	b, err := w.enter(w.draft.asked(&grant), &results[0])
	if err != nil || results[0].Status != OK {
		t.Fatalf("%v, %v", results[0], err)
	}
	told := Commit{batch: b, done: b.Done()}
	none, err := w.enter(untold{}, &results[1])
	if b.Events != 1 || w.counts.stats.Events != events+1 {
		t.Errorf("an event without a result counts: %d events in the batch, want 1", b.Events)
	}
	w.unlock()
	if none != nil || CodeOf(err) != CodeFailed {
		t.Errorf("batch %v, %v; want none, and that the realm has stopped", none, err)
	}
	if err := told.Wait(t.Context()); CodeOf(err) != CodeUnknownOutcome {
		t.Errorf("the request before it in the batch: %v; want an unknown outcome", err)
	}
	if err := e.Close(); err == nil {
		t.Error("a realm with a defect closes cleanly")
	}

	e, r = open()
	for _, id := range []string{"told", "untold"} {
		if l, err := r.Result(t.Context(), id); err != nil || l.Seen != NotSeen {
			t.Errorf("%s: %v, %v; want nothing of it in the log", id, l.Seen, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
