package kuji

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/store"
)

// place is a place in the log.
type place struct {
	at      ledger.At
	version uint64 // of the catalog in force there
	time    int64  // no entry up to here has a later stamp, unless the clock was set back
	epochs  []ledger.Epoch
	inForce store.InForce // the catalog itself, if the place is that of the oldest snapshot
}

// seal returns what a walk through the log needs to begin at a place; nil for the first entry.
func (p *place) seal(w *writer) *ledger.Seal {
	if p.at.Position() == 0 {
		return nil
	}
	epochs := p.epochs
	if epochs == nil { // which of them were not revealed yet, nobody knows: all may be
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, e := range w.proofs.epochs {
			if e.First <= p.at.Position() {
				e.Revealed = false
				epochs = append(epochs, e)
			}
		}
	}
	return &ledger.Seal{At: p.at, Epochs: epochs}
}

// places are places in a realm's log where readers can begin.
type places struct {
	w   *writer
	log driver.Realm

	mu     sync.Mutex
	known  []place       // ascending
	since  int           // bytes of the log after the last one
	oldest *place        // of the oldest snapshot that the log goes back to; nil: nobody has asked
	first  driver.Cursor // where the log began when somebody asked
}

const (
	placeEvery = 1 << 20 // bytes of the log between places, at least
	maxPlaces  = 256
)

// passed counts bytes of the log. It reports whether the next place is due.
func (p *places) passed(bytes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since += bytes
	return p.since >= placeEvery
}

// add adds the place to which the log has come. If there are too many, every other one of the older
// half goes: the closer to the end, the closer together they are, and readers mostly begin there.
func (p *places) add(at ledger.At, version uint64, time int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxPlaces {
		kept := p.known[:0]
		for i, old := range p.known {
			if i >= maxPlaces/2 || i%2 == 0 {
				kept = append(kept, old)
			}
		}
		p.known = kept
	}
	p.known = append(p.known, place{at: at, version: version, time: time})
	p.since = 0
}

// before returns the last place that lies before what a reader wants. It is the oldest place if no known
// one does: before the first entry, if the log has that. trimmed reports that the log begins later.
func (p *places) before(ctx context.Context, lies func(*place) bool) (at place, trimmed bool, err error) {
	first, err := p.log.First(ctx)
	if err != nil {
		return at, false, err
	}
	if at, ok := p.last(lies); ok && at.at.Cursor() >= first {
		return at, false, nil
	}
	return p.begin(ctx)
}

// last returns the last known place that lies before what a reader wants.
func (p *places) last(lies func(*place) bool) (at place, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.known) - 1; i >= 0; i-- {
		if lies(&p.known[i]) {
			return p.known[i], true
		}
	}
	return at, false
}

// begin returns the oldest place from which the log can be read: its beginning, or, if it was
// trimmed, that of the oldest snapshot that it goes back to.
func (p *places) begin(ctx context.Context) (at place, short bool, err error) {
	t, err := logged.Trimmed(ctx, p.log)
	if t == nil || err != nil {
		return at, false, err
	}
	p.mu.Lock()
	known, first := p.oldest, p.first
	p.mu.Unlock()
	if known != nil && first == t.First { // no snapshot is read again
		return *known, true, nil
	}
	snaps := ledger.SnapshotsOf(p.log, p.w.name)
	files, _, err := snaps.List(ctx)
	if err != nil {
		return at, true, err
	}
	errs := []error{fmt.Errorf("%w, and no intact snapshot reaches that far", t)}
	for _, f := range files {
		var v catalogLoader
		seal, _, err := snaps.Load(ctx, files, f, &v)
		if err != nil {
			errs = append(errs, err)
		} else if seal.Cursor() >= t.First {
			at := place{at: seal.At, version: v.inForce.Version, epochs: seal.Epochs, inForce: v.inForce}
			p.mu.Lock()
			p.oldest, p.first = &at, t.First
			p.mu.Unlock()
			return at, true, nil
		}
	}
	return at, true, errors.Join(errs...)
}

// catalogLoader reads a snapshot and keeps only the catalog in force.
type catalogLoader struct{ inForce store.InForce }

func (v *catalogLoader) Block(kind byte, data []byte) error {
	c, err := store.CatalogIn(store.BlockKind(kind), data)
	if c.Version > v.inForce.Version {
		v.inForce, v.inForce.Bytes = c, bytes.Clone(c.Bytes)
	}
	return err
}

func (v *catalogLoader) Loaded() error { return nil }
