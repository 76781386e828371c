// Package ledger makes a realm last: entries and their envelope, the fold by which every reader
// finds which entries count, epochs and seeds, the writer's way into the log, snapshots, recovery
// and the verifier's walk. It builds on package driver. Package kuji brings a Machine, which knows
// what is in a batch: no rule, reward or state enters here.
package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/step"
)

// A new writer takes a realm over in this order:
//
//	fold what is there, as far as is known
//	append the epoch-begin, without a condition: from now on no entry of an older epoch counts
//	fold on, through its own epoch-begin; if that does not count, a writer with a higher epoch
//	    was there: begin again with a higher one
//	only then append entries, each after the one before it
//
// An entry is in the log when the driver says so, or when it is found there. Until then the same bytes are
// sent again. Copies are void.

type Options struct {
	Realm   string
	Log     driver.Realm
	Steps   step.Runner
	Entropy func(p []byte) // for seeds and writer ids
	Key     [32]byte       // seals seeds
	OldKeys [][32]byte     // open seeds that were sealed before
	KeyErr  error          // what is wrong with the key, to be told of if a seed is lost
	Rules   uint8          // the version of the rules by which this writer decides
}

// Machine is what the entries of a log make. Package kuji joins store and rules to it.
type Machine interface {
	// Change carries out what an entry says, except for request ids.
	Change(e *Entry) error
	// Remember remembers an entry's request ids, perhaps during the Change of later entries.
	Remember(e *Entry) error
}

// Ledger is a realm's log as its writer sees it. Only methods that say so may be called concurrently.
type Ledger struct {
	*Snapshots

	At       // where the chain stands; its cursor is that of the last entry that counts
	o        Options
	cursor   driver.Cursor // of the newest entry that was read or appended
	unread   driver.Cursor // of a snapshot's entry, if the log has not been read so far; 0: it was
	epochs   []Epoch       // ascending by first position, the current one last
	appended appended      // not durable yet, as far as is known

	epoch   uint64 // this writer's; 0: none yet
	writer  [16]byte
	batch   uint64 // entries of this writer so far
	seed    seed
	unknown error // why seeds are lost

	ctx  context.Context // of what would wait without an end
	stop context.CancelFunc
}

// New returns the ledger of a realm, which is to be recovered.
func New(o Options) *Ledger {
	l := &Ledger{o: o, At: At{chain: chain{realm: o.Realm}}}
	l.Snapshots = SnapshotsOf(o.Log, o.Realm)
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

func (l *Ledger) Epoch() uint64 { return l.epoch }

// Epochs returns the known epochs, ascending. They no longer change once the writer's own has begun.
func (l *Ledger) Epochs() []Epoch { return l.epochs }

// SeedsErr returns which epochs cannot be proven, and why.
func (l *Ledger) SeedsErr() error { return l.unknown }

func (l *Ledger) Source() Source { return Source{src: l.seed.source(l.o.Realm, l.epoch)} }

// At is a place in a log: right after an entry that counts.
type At struct {
	chain  chain
	cursor driver.Cursor // of that entry
}

func (a *At) Position() uint64 { return a.chain.index }

func (a *At) Cursor() driver.Cursor { return a.cursor }

func (a *At) ChainHash() [32]byte { return a.chain.hash }

type CorruptError struct {
	Where string
	Err   error
}

func (e *CorruptError) Error() string { return e.Where + ": " + e.Err.Error() }
func (e *CorruptError) Unwrap() error { return e.Err }

// DeposedError says that another writer has taken the realm over.
type DeposedError struct{ Epoch uint64 }

func (e *DeposedError) Error() string {
	return fmt.Sprintf("another writer has taken the realm over, in epoch %d", e.Epoch)
}

// TakeOver begins an epoch, at the time that now returns. What others have appended goes to the machine.
func (l *Ledger) TakeOver(m Machine, now func() int64) error {
	for first := true; first || l.chain.writer != l.writer; first = false {
		if l.chain.epoch == math.MaxUint64 { // no writer counts that far: the entry is forged
			return &CorruptError{Where: "epoch", Err: fmt.Errorf("%d cannot be followed by another", l.chain.epoch)}
		}
		begin, err := l.begin(now())
		if err != nil {
			return err
		}
		at, err := l.insist(func() (driver.Cursor, error) { return l.o.Log.Begin(l.ctx, begin) })
		if err != nil {
			return err
		}
		if err := l.fold(m, at); err != nil {
			return err
		}
	}
	for i := range l.epochs {
		e := &l.epochs[i]
		if e.Revealed || e.Number == l.epoch {
			continue
		}
		seed, ok := e.open(l.o.Realm, append([][32]byte{l.o.Key}, l.o.OldKeys...)...)
		if !ok {
			l.unknown = errors.Join(l.unknown, fmt.Errorf("epoch %d cannot be proven: its seed is lost, the key does not open it", e.Number))
			continue
		}
		if err := l.control(KindReveal, encode(nil, revelation{e.Number, seed})); err != nil {
			return err
		}
		e.Revealed = true
	}
	if l.unknown != nil && l.o.KeyErr != nil {
		l.unknown = errors.Join(l.unknown, l.o.KeyErr)
	}
	return l.o.Log.Sync(l.ctx)
}

// begin returns an epoch-begin with an epoch above all that were seen.
func (l *Ledger) begin(now int64) ([]byte, error) {
	var nonce [nonceLen]byte
	l.epoch, l.batch = l.chain.epoch+1, 0
	l.o.Entropy(l.seed[:])
	l.o.Entropy(l.writer[:])
	l.o.Entropy(nonce[:])
	e := Epoch{Number: l.epoch, Commitment: l.seed.commitment(l.o.Realm, l.epoch), Writer: l.writer}
	if err := e.seal(l.o.Realm, &l.o.Key, nonce, &l.seed); err != nil {
		return nil, err
	}
	entry := encode(make([]byte, HeadSize(l.o.Realm)), epochBegin{l.o.Rules, now, e.Commitment, e.Sealed})
	l.putEntry(entry, KindEpochBegin, false)
	return entry, nil
}

// putEntry writes the envelope of the chain's next entry in front of the payload.
func (l *Ledger) putEntry(entry []byte, kind Kind, outside bool) {
	l.batch++
	putEnvelope(entry, &envelope{
		kind: kind, realm: l.o.Realm, epoch: l.epoch, writer: l.writer, outside: outside,
		index: l.chain.index + 1, batch: l.batch, prev: l.chain.hash,
	})
}

func (l *Ledger) control(kind Kind, payload []byte) error {
	entry := append(make([]byte, HeadSize(l.o.Realm)), payload...)
	l.putEntry(entry, kind, false)
	return l.append(entry)
}

// Commit appends a batch, whose payload begins at HeadSize, and returns when it is as durable as the
// driver's policy says. Errors: *DeposedError, *CorruptError, and the driver's. After one, nobody knows
// whether the batch is in the log, and the writer must give up.
func (l *Ledger) Commit(entry []byte) error {
	outside := len(entry) > l.o.Log.MaxEntry()
	if outside {
		small, err := l.putOutside(entry)
		if err != nil {
			return err
		}
		entry = small
	}
	l.putEntry(entry, KindBatch, outside)
	return l.append(entry)
}

func (l *Ledger) append(entry []byte) error {
	for {
		at, err := l.insist(func() (driver.Cursor, error) {
			return l.o.Log.Append(context.Background(), l.cursor, entry)
		})
		switch {
		case err == nil:
			return l.advance(entry, at)
		case !errors.Is(err, driver.ErrDeposed):
			return err
		}
		found, err := l.meet(entry)
		if found || err != nil {
			return err
		}
	}
}

// advance moves the chain past an entry that this writer has appended.
func (l *Ledger) advance(entry []byte, at driver.Cursor) error {
	e, err := openEnvelope(entry)
	if err != nil {
		return err
	}
	l.chain.advance(&e, sha256.Sum256(entry))
	l.cursor, l.At.cursor = at, at
	l.appended.add(appendedEntry{l.chain.index, at}, l.o.Log.Durable())
	return nil
}

// insist sends something again for as long as nobody knows what became of it.
func (l *Ledger) insist(send func() (driver.Cursor, error)) (driver.Cursor, error) {
	const last = 10 // attempts, if nobody waits any longer
	for pause, attempt := time.Millisecond, 1; ; pause, attempt = min(2*pause, 200*time.Millisecond), attempt+1 {
		at, err := send()
		if !errors.Is(err, driver.ErrUnknown) {
			return at, err
		}
		if l.ctx.Err() != nil && attempt >= last {
			return 0, err
		}
		step.Sleep(l.o.Steps, pause)
	}
}

// meet reads the entry that stands where one of this writer was to go. found: it is this one, sent before.
// A void one is passed over. One of a higher epoch deposes this writer.
func (l *Ledger) meet(entry []byte) (found bool, err error) {
	for got, err := range l.o.Log.Read(l.ctx, l.cursor, 0) {
		if errors.Is(err, driver.ErrUnavailable) { // the next attempt leads here again
			step.Sleep(l.o.Steps, 10*time.Millisecond)
			return false, nil
		}
		if err != nil {
			return false, err
		}
		c := l.chain
		e, counts, err := c.next(got.Data)
		switch {
		case err != nil:
			return false, (&Entry{Position: l.chain.index + 1, Cursor: got.Cursor}).Corrupt(err)
		case counts && bytes.Equal(got.Data, entry):
			return true, l.advance(entry, got.Cursor)
		case counts:
			return false, &DeposedError{Epoch: e.epoch}
		}
		l.chain, l.cursor = c, got.Cursor
		return false, nil
	}
	return false, errors.New("the log ended without an error")
}

// EndEpoch reveals the epoch's seed. Nothing may be drawn from it afterwards.
func (l *Ledger) EndEpoch() error {
	if err := l.Sync(context.Background()); err != nil { // under every policy: all draws must be durable before the seed is known
		return fmt.Errorf("closing: %w", err)
	}
	if err := l.control(KindEpochEnd, encode(nil, revelation{l.epoch, l.seed})); err != nil {
		return fmt.Errorf("ending the epoch: %w", err)
	}
	return l.Sync(context.Background())
}

// Sync makes every appended entry durable, whatever the policy is. It may be called concurrently.
func (l *Ledger) Sync(ctx context.Context) error { return l.o.Log.Sync(ctx) }

// GiveUp ends the attempts to learn what became of an append. It may be called concurrently.
func (l *Ledger) GiveUp() { l.stop() }

func (l *Ledger) Close() error {
	l.stop()
	return l.o.Log.Close()
}

// Durable returns the position up to which entries are known to survive a crash, or a lower one.
func (l *Ledger) Durable() uint64 { return l.appended.durable(l.o.Log.Durable(), l.chain.index) }

// appended is the entries that were appended and may not be durable yet, ascending.
type appended []appendedEntry

type appendedEntry struct {
	position uint64
	cursor   driver.Cursor
}

// add adds an entry and drops durable ones; if they are too many, every other one: durable is lower then.
func (a *appended) add(e appendedEntry, durable driver.Cursor) {
	const most = 4096
	n := 0
	for n < len(*a) && (*a)[n].cursor <= durable {
		n++
	}
	*a = slices.Delete(*a, 0, n)
	if len(*a) == most {
		i := 0
		*a = slices.DeleteFunc(*a, func(appendedEntry) bool { i++; return i%2 == 0 })
	}
	*a = append(*a, e)
}

// durable returns the last position that is durable, if all before the first of these entries are.
func (a appended) durable(cursor driver.Cursor, last uint64) uint64 {
	for i := range a {
		if a[i].cursor > cursor {
			return a[i].position - 1
		}
	}
	return last
}
