// Package sink delivers the feed of a realm to what lies outside of Kuji: webhooks and Kafka. It takes
// events in order, puts those that came since the last delivery into a batch, and delivers each batch
// before it begins the next one. No rule of the game enters here, nor how the feed is reached.
//
//	Run:      ask the target where it stands, and read the feed from there
//	          take what came, deliver it, and let the target note where it stands
//
// The target notes its place after the delivery, never before. So every event arrives at least once,
// whenever either side crashes, and at most the last batch arrives again. PostgreSQL has every event exactly once:
// that is package history.
package sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"

	"github.com/kuji-dev/kuji"
)

// Most of a batch. What waits is as much again, and one message of the feed.
const (
	maxBatch      = 256     // events
	maxBatchBytes = 1 << 20 // of the log; an event as JSON takes some ten times that
)

// Place is a place between events: before the one at an index of a position of the log.
type Place struct {
	Position uint64 `json:"position"` // from 1; 0: unknown
	Index    int    `json:"index"`    // from 0
}

func (p Place) before(q Place) bool {
	return p.Position < q.Position || p.Position == q.Position && p.Index < q.Index
}

// placeOf is the place before an event.
func placeOf(rec *kuji.Record) Place { return Place{rec.Position, rec.Index} }

// Step is what a message of the feed brings: some events, maybe none, and the position from which a
// reader goes on who has them.
type Step struct {
	Events []kuji.Record
	Next   uint64
}

// Source returns the feed of a realm from a position on.
type Source func(ctx context.Context, from uint64) iter.Seq2[Step, error]

// Feed says which events a target gets. A target that stands somewhere in another feed is refused.
type Feed struct {
	Realm  string `json:"realm"`
	Player string `json:"player,omitempty"`
	Pool   string `json:"pool,omitempty"`
}

// Batch is what is delivered at once. It can be without events: then the feed has only moved on.
type Batch struct {
	Events   []kuji.Record
	From, To Place // it has all events of the feed between the two
	bytes    int
}

// Target is where events go.
type Target interface {
	// Place returns where the target stands: it has all events before. The zero place: nothing was
	// delivered yet.
	Place(ctx context.Context) (Place, error)
	// Deliver delivers a batch that begins where the target stands. When it returns nil, the target has
	// all events of the batch and stands after them. It retries by itself what can be retried,
	// until ctx ends; an attempt that is under way then is brought to its end.
	Deliver(ctx context.Context, b *Batch) error
}

// Delivered says what came of a Run.
type Delivered struct {
	Events uint64
	To     Place // where the target stands
}

// Run delivers a feed until ctx ends, or until something fails that another attempt does not mend. It
// begins where the target stands, and at position first if the target has nothing yet.
func Run(ctx context.Context, source Source, target Target, first uint64, log *slog.Logger) (done Delivered, err error) {
	if done.To, err = target.Place(ctx); err != nil {
		return done, err
	}
	if done.To == (Place{}) {
		done.To = Place{Position: max(first, 1)}
	}
	log.Info("the feed goes on", "position", done.To.Position, "index", done.To.Index)
	reading, end := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	steps, batches := make(chan Step), make(chan *Batch)
	var broke error // of the feed; read it when batches is closed
	work.Go(func() {
		defer close(steps)
		broke = read(reading, source, done.To, steps)
	})
	from := done.To
	work.Go(func() {
		defer close(batches)
		gather(reading, from, steps, batches)
	})
	for b := range batches {
		if err := target.Deliver(ctx, b); err != nil {
			return done, err
		}
		done.Events += uint64(len(b.Events))
		done.To = b.To
		log.Debug("delivered", "events", len(b.Events), "position", b.To.Position, "index", b.To.Index)
	}
	if ctx.Err() != nil {
		return done, ctx.Err()
	}
	return done, broke
}

// read sends what the feed brings from a place on.
func read(ctx context.Context, source Source, from Place, steps chan<- Step) error {
	for step, err := range source(ctx, from.Position) {
		if err != nil {
			return err
		}
		for len(step.Events) > 0 && placeOf(&step.Events[0]).before(from) {
			step.Events = step.Events[1:]
		}
		select {
		case steps <- step:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the feed ended")
}

// gather makes batches of what comes. While nobody takes one, it grows, up to its bounds.
func gather(ctx context.Context, from Place, steps <-chan Step, batches chan<- *Batch) {
	b := &Batch{From: from, To: from}
	for {
		in, out := steps, batches
		if b.To == b.From {
			out = nil // there is nothing to deliver
		}
		if len(b.Events) >= maxBatch || b.bytes >= maxBatchBytes || in == nil {
			in = nil
		}
		if in == nil && out == nil {
			return
		}
		select {
		case step, ok := <-in:
			if !ok {
				steps = nil
				continue
			}
			b.add(step)
		case out <- b:
			b = &Batch{From: b.To, To: b.To}
		case <-ctx.Done():
			return
		}
	}
}

func (b *Batch) add(step Step) {
	b.Events = append(b.Events, step.Events...)
	for i := range step.Events {
		e := &step.Events[i]
		b.bytes += e.Bytes
		b.To = Place{e.Position, e.Index + 1}
		if e.Last {
			b.To = Place{Position: e.Position + 1}
		}
	}
	if next := (Place{Position: step.Next}); b.To.before(next) {
		b.To = next
	}
}

// check reports a target that stands in another feed.
func (f Feed) check(found Feed, where string) error {
	if f == found {
		return nil
	}
	a, errA := json.Marshal(found)
	b, errB := json.Marshal(f)
	return errors.Join(errA, errB, &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("%s is that of the feed %s, want %s: another feed needs a target of its own", where, a, b)})
}
