package server

import (
	"context"
	"runtime"
	"sync"

	"github.com/kuji-dev/kuji"
)

// Readers of feeds, in short:
//
//	places  a realm's feed has so many readers; callers share them
//	turns   what is in the log already is read piece by piece, by a few readers at a time: who asks
//	        for all of a long log takes little from those who draw. News need no turn
//
// A reader that waits for its client, or for news, has no turn.

const (
	// keptReaders is how many readers of a realm the server leaves to the history and to the program
	// that embeds the engine.
	keptReaders = 8
	// eventReads is how many readers read old events at a time.
	eventReads = 2
	// readPiece is how many bytes of the log a reader reads in one turn, and readStep after how many
	// it lets others go first.
	readPiece = 256 << 10
	readStep  = 16 << 10
)

// readerPlaces is the places of realms' readers, by realm.
type readerPlaces struct {
	mu     sync.Mutex
	places map[string]*budget
}

// of returns the places of a realm.
func (p *readerPlaces) of(realm string, shared bool) *budget {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.places[realm]
	if b == nil {
		b = newPlaces(kuji.MaxReaders-keptReaders, shared)
		if p.places == nil {
			p.places = make(map[string]*budget)
		}
		p.places[realm] = b
	}
	return b
}

// readTurn is a reader's turn, if it has one. One goroutine at a time may use it.
type readTurn struct {
	turns *budget
	who   caller
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
	if err := t.turns.wait(ctx, t.who, 1); err != nil {
		return err
	}
	t.has, t.read = true, 0
	return nil
}

// end ends the turn, if there is one.
func (t *readTurn) end() {
	if t.has {
		t.turns.give(t.who, 1)
		t.has = false
	}
}
