package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/step"
)

// Entry is an entry of a log that counts.
type Entry struct {
	envelope
	Cursor   driver.Cursor
	Position uint64

	at     chain // after this entry
	begin  epochBegin
	reveal revelation
}

func (e *Entry) Kind() Kind { return e.kind }

// Payload returns what is in a batch. It is never changed or reused.
func (e *Entry) Payload() []byte { return e.payload }

// Size returns the size of the entry with its payload, in bytes.
func (e *Entry) Size() int { return HeadSize(e.realm) + len(e.payload) }

// Begun returns the epoch that an epoch-begin begins, and its time stamp.
func (e *Entry) Begun() (Epoch, int64) {
	return Epoch{First: e.Position, Number: e.epoch, Commitment: e.begin.Commitment, Writer: e.writer, Sealed: e.begin.Sealed}, e.begin.Time
}

// Rules returns the version of the rules that decides the epoch that begins. Only a verifier asks.
func (e *Entry) Rules() uint8 { return e.begin.Rules }

// Revealed returns the epoch whose seed an epoch-end or a reveal has, and the seed.
func (e *Entry) Revealed() (epoch uint64, s Seed) { return e.reveal.Epoch, Seed{e.reveal.Seed} }

type Seed struct{ seed seed }

// Bytes returns the seed.
func (s Seed) Bytes() [32]byte { return s.seed }

// Source returns an epoch's random values, without the first few.
func (s Seed) Source(realm string, epoch, skip uint64) *Source {
	src := &Source{src: s.seed.source(realm, epoch)}
	for src.n < skip {
		src.Uint64()
	}
	return src
}

// At returns where the chain stands after the entry.
func (e *Entry) At() At { return At{chain: e.at, cursor: e.Cursor} }

// Corrupt returns an error that says that this entry is damaged, nil if err is.
func (e *Entry) Corrupt(err error) error {
	if err == nil {
		return nil
	}
	return &CorruptError{Where: fmt.Sprintf("position %d (cursor %d)", e.Position, e.Cursor), Err: err}
}

type Walker struct {
	Passed uint64 // entries that do not count, so far

	log         driver.Realm
	chain       chain
	from        driver.Cursor       // of the entry that a snapshot says is there; 0: none is known
	after       driver.Cursor       // of the newest entry that was read
	commitments map[uint64][32]byte // of epochs not yet revealed
}

// Walk returns a Walker that begins at a snapshot, or at the start of the log if that is nil.
func Walk(log driver.Realm, realm string, from *Footer) *Walker {
	w := &Walker{log: log, chain: chain{realm: realm}, commitments: map[uint64][32]byte{}}
	if from != nil {
		w.chain, w.from = from.chain, from.cursor
		w.know(from.Epochs)
	}
	return w
}

func (w *Walker) know(epochs []Epoch) {
	for i := range epochs {
		if !epochs[i].Revealed {
			w.commitments[epochs[i].Number] = epochs[i].Commitment
		}
	}
}

// Entries iterates over the entries that count, through a cursor, and checks revealed seeds. It ends after
// the first error, whose entry has the position that is wrong.
func (w *Walker) Entries(ctx context.Context, through driver.Cursor) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if through > w.readAfter() && !w.read(ctx, through, yield) {
			return
		}
		err := w.chain.complete()
		if w.from > 0 {
			err = fmt.Errorf("the log ends before cursor %d, where the snapshot of position %d was taken", w.from, w.chain.index)
		}
		if err != nil {
			e := Entry{Position: w.chain.index + 1, Cursor: through + 1, at: w.chain}
			yield(e, e.Corrupt(err))
		}
	}
}

// Follow is Entries without an end, until ctx ends. It yields only what survives a crash.
func (w *Walker) Follow(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { w.read(ctx, 0, yield) }
}

func (w *Walker) readAfter() driver.Cursor {
	if w.from > 0 {
		return w.from - 1
	}
	return w.after
}

// read yields the entries that count through a cursor, 0: all, and reports whether it came to the end.
func (w *Walker) read(ctx context.Context, through driver.Cursor, yield func(Entry, error) bool) bool {
	for le, err := range w.log.Read(ctx, w.readAfter(), through) {
		if err != nil {
			yield(w.failed(err))
			return false
		}
		if w.from > 0 {
			if err := w.matches(&le); err != nil {
				e := Entry{Position: w.chain.index, Cursor: le.Cursor}
				yield(e, e.Corrupt(err))
				return false
			}
			continue
		}
		e, counts, err := w.fold(ctx, &le)
		if err != nil {
			e.Position = w.chain.index + 1 // not the index in the entry: it cannot be trusted
			if _, ok := errors.AsType[*outsideError](err); !ok {
				err = e.Corrupt(err)
			}
			yield(e, err)
			return false
		}
		w.after = le.Cursor
		if !counts {
			w.Passed++
		} else if !yield(e, nil) {
			return false
		}
	}
	return true
}

// failed places an error of the log.
func (w *Walker) failed(err error) (Entry, error) {
	e := Entry{Position: w.chain.index + 1}
	if d, ok := errors.AsType[*driver.CorruptError](err); ok {
		switch {
		case d.At < w.from || d.At == 0:
			e.Position = 0
		case d.At == w.from:
			e.Position = w.chain.index
		}
	}
	return e, err
}

// matches checks that an entry is the one at which the snapshot was taken.
func (w *Walker) matches(le *driver.Entry) error {
	c := &w.chain
	if got := sha256.Sum256(le.Data); got != c.entry || le.Cursor != w.from {
		return fmt.Errorf("the entry at cursor %d has hash %x, but the snapshot says %x at cursor %d for position %d: it belongs to another log", le.Cursor, got[:8], c.entry[:8], w.from, c.index)
	}
	w.from, w.after = 0, le.Cursor
	return nil
}

// fold folds one entry and decodes its payload, except that of a batch.
func (w *Walker) fold(ctx context.Context, le *driver.Entry) (e Entry, counts bool, err error) {
	e.Cursor = le.Cursor
	c := w.chain
	e.envelope, counts, err = c.next(le.Data)
	e.realm = c.realm
	if err == nil && counts {
		e.Position, e.at = c.index, c
		err = cmp.Or(e.fetch(ctx, w.log), e.decode(w.commitments))
	}
	if err == nil {
		w.chain = c
	}
	return e, counts, err
}

func (e *Entry) decode(commitments map[uint64][32]byte) (err error) {
	switch e.kind {
	case KindEpochBegin:
		if e.begin, err = decodeEpochBegin(e.payload); err != nil {
			return err
		}
		commitments[e.epoch] = e.begin.Commitment
	case KindEpochEnd, KindReveal:
		if err = decodePayload(e.payload, "reveal", &e.reveal); err != nil {
			return err
		}
		if (e.kind == KindEpochEnd) != (e.reveal.Epoch == e.epoch) {
			return fmt.Errorf("%v of epoch %d within epoch %d", e.kind, e.reveal.Epoch, e.epoch)
		}
		want, ok := commitments[e.reveal.Epoch]
		if !ok {
			return fmt.Errorf("reveal of epoch %d, which never began or is already revealed", e.reveal.Epoch)
		}
		if got := e.reveal.Seed.commitment(e.realm, e.reveal.Epoch); got != want {
			return fmt.Errorf("the seed revealed for epoch %d does not match its commitment", e.reveal.Epoch)
		}
		delete(commitments, e.reveal.Epoch)
	}
	return nil
}

func RevealEpoch(epochs []Epoch, epoch uint64) {
	for i := range epochs {
		if epochs[i].Number == epoch {
			epochs[i].Revealed = true
		}
	}
}

// Recover folds the known log, from a snapshot or from its start if from is nil. One goroutine reads and
// checks it, this one changes the machine, and a third remembers request ids, which no change depends on.
func (l *Ledger) Recover(m Machine, from *Footer) error {
	const ahead = 4 // entries
	last, err := l.o.Log.Last(l.ctx)
	if err != nil {
		return err
	}
	if from != nil {
		if _, sole := l.o.Log.(driver.Sole); sole && last < from.cursor {
			return &CorruptError{Where: "snapshots", Err: fmt.Errorf("the newest covers position %d, at cursor %d, but the log ends at %d: acknowledged entries are missing", from.chain.index, from.cursor, last)}
		}
		l.epochs, l.At = from.Epochs, from.At
		if last < from.cursor { // an old answer: the own epoch-begin shows how far the log goes
			l.unread = from.cursor
			return nil
		}
	}
	w := Walk(l.o.Log, l.o.Realm, from)
	hand, wait := step.Behind(l.o.Steps, ahead, func(e Entry) error { return m.Remember(&e) })
	var failed error
	for e, err := range step.Ahead(l.o.Steps, ahead, w.Entries(l.ctx, last)) {
		if err == nil {
			err = m.Change(&e)
		}
		if err != nil {
			failed = err
			break
		}
		l.folded(&e)
		hand(e)
	}
	if err := cmp.Or(wait(), failed); err != nil { // the first in the order of the log
		return err
	}
	l.chain, l.cursor = w.chain, last
	return nil
}

func (l *Ledger) folded(e *Entry) {
	switch e.kind {
	case KindEpochBegin:
		began, _ := e.Begun()
		l.epochs = append(l.epochs, began)
	case KindEpochEnd, KindReveal:
		RevealEpoch(l.epochs, e.reveal.Epoch)
	}
	l.At.cursor = e.Cursor
	l.appended.add(appendedEntry{e.Position, e.Cursor}, l.o.Log.Durable())
}

// on returns a Walker that goes on where the ledger is, and what takes its place over.
func (l *Ledger) on() (w *Walker, done func()) {
	w = &Walker{log: l.o.Log, chain: l.chain, from: l.unread, after: l.cursor, commitments: map[uint64][32]byte{}}
	w.know(l.epochs)
	return w, func() { l.chain, l.cursor, l.unread = w.chain, w.after, w.from }
}

// Follow folds what others append, until ctx ends. It yields each entry that counts once noted; its caller
// must carry it out, or use the ledger no more. After an error, the next call goes on where this one ended.
func (l *Ledger) Follow(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		w, done := l.on()
		defer done()
		for e, err := range w.Follow(ctx) {
			if err == nil {
				l.folded(&e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// fold folds what others have appended, through a cursor.
func (l *Ledger) fold(m Machine, through driver.Cursor) error {
	w, done := l.on()
	for e, err := range w.Entries(l.ctx, through) {
		if err != nil {
			return err
		}
		l.folded(&e)
		if err := cmp.Or(m.Change(&e), m.Remember(&e)); err != nil {
			return err
		}
	}
	done()
	return nil
}
