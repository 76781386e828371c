package feeds

import (
	"context"
	"runtime"
	"sync"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
)

// Readers of feeds, in short:
//
//	places  the number of readers of a realm's feed is limited; callers share the places
//	turns   old events are read piece by piece, by a few readers at a time. So a reader of a whole
//	        log takes little from those who draw. New events need no turn
//
// A reader that waits for its client, or for news, has no turn.

const (
	// keptReaders is how many readers of a realm are left to the history and the embedding program.
	keptReaders = 8
	// EventReads is how many readers read old events at a time.
	EventReads = 2
	// readPiece is how many bytes of the log are read in a turn, readStep after how many others go.
	readPiece = 256 << 10
	readStep  = 16 << 10
)

// readerPlaces is the places of realms' readers, by realm.
type readerPlaces struct {
	mu     sync.Mutex
	places map[string]*admission.Budget
}

// Readers returns the places of the readers of a realm.
func (f *Feeds) Readers(realm string) *admission.Budget {
	p := &f.readers
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.places[realm]
	if b == nil {
		b = admission.NewPlaces(kuji.MaxReaders-keptReaders, f.Keys != nil, "readers of the realm's feed are connected")
		if p.places == nil {
			p.places = make(map[string]*admission.Budget)
		}
		p.places[realm] = b
	}
	return b
}

// readTurn is a reader's turn, if it has one. One goroutine at a time may use it.
type readTurn struct {
	turns *admission.Budget
	who   access.Caller
	has   bool
	read  int // bytes, in this turn
	step  int // and since others went first
}

// pace waits until a reader may read on.
func (t *readTurn) pace(ctx context.Context, at kuji.FeedPlace) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.read += at.Bytes
	t.step += at.Bytes
	if t.step >= readStep {
		t.step = 0
		runtime.Gosched()
	}
	if !at.Behind || t.read >= readPiece {
		t.end()
	}
	if !at.Behind || t.has {
		return nil
	}
	if err := t.turns.Wait(ctx, t.who, 1); err != nil {
		return err
	}
	t.has, t.read = true, 0
	return nil
}

// end ends the turn, if there is one.
func (t *readTurn) end() {
	if t.has {
		t.turns.Give(t.who, 1)
		t.has = false
	}
}
