// Package sink delivers the feed of a realm to webhooks and Kafka, in batches of what came since the last
// delivery, one after another. No rule of the game enters here, nor how the feed is reached.
//
// The target notes its place after each delivery, never before. So every event arrives at least once,
// whenever either side crashes, and at most the last batch arrives again. Package history has every event
// exactly once.
package sink

import (
	"cmp"
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

func (p Place) String() string { return fmt.Sprintf("%d.%d", p.Position, p.Index) }

func (p Place) before(q Place) bool {
	return cmp.Or(cmp.Compare(p.Position, q.Position), cmp.Compare(p.Index, q.Index)) < 0
}

// placeOf is the place before an event.
func placeOf(rec *kuji.Record) Place { return Place{rec.Position, rec.Index} }

// Step is a message of the feed: some events, maybe none, and from where a reader who has them goes on.
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

// Batch is what is delivered at once. If it has no events, the feed has only moved on.
type Batch struct {
	Events   []kuji.Record
	From, To Place // it has all events of the feed between the two
	bytes    int
}

// Target is where events go.
type Target interface {
	// Place returns the place before which the target has all events. Zero: nothing was delivered yet.
	Place(ctx context.Context) (Place, error)
	// Deliver delivers a batch that begins where the target stands, which then stands after it. It retries
	// what it can until ctx ends; an attempt that is under way then is brought to its end.
	Deliver(ctx context.Context, b *Batch) error
}

// Delivered says what came of a Run.
type Delivered struct {
	Events uint64
	To     Place // where the target stands
}

// Run delivers from where the target stands, first for an empty one, until ctx ends or trying again is in vain.
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
	batches, from := make(chan *Batch, 1), done.To
	var broke error // of the feed; read it when batches is closed
	work.Go(func() {
		defer close(batches)
		broke = read(reading, source, from, batches)
	})
	for b := range batches {
		if err := target.Deliver(ctx, b); err != nil {
			return done, err
		}
		done.Events += uint64(len(b.Events))
		done.To = b.To
		log.Debug("delivered", "events", len(b.Events), "position", b.To.Position, "index", b.To.Index)
	}
	return done, cmp.Or(ctx.Err(), broke)
}

// read batches the feed from a place on. A batch that nobody takes grows, up to its bounds.
func read(ctx context.Context, source Source, from Place, batches chan *Batch) error {
	to := from
	for step, err := range source(ctx, from.Position) {
		if err != nil {
			return err
		}
		for len(step.Events) > 0 && placeOf(&step.Events[0]).before(from) {
			step.Events = step.Events[1:]
		}
		b := &Batch{From: to, To: to}
		select {
		case waiting := <-batches:
			if len(waiting.Events) < maxBatch && waiting.bytes < maxBatchBytes {
				b = waiting
			} else {
				batches <- waiting
			}
		default:
		}
		b.add(step)
		if to = b.To; b.To == b.From {
			continue // there is nothing to deliver
		}
		select {
		case batches <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the feed ended")
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
	a, _ := json.Marshal(found) // strings
	b, _ := json.Marshal(f)
	return &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("%s is that of the feed %s, want %s: another feed needs a target of its own", where, a, b)}
}
