package kuji

import (
	"context"
	"slices"

	"github.com/kuji-dev/kuji/internal/ledger"
)

// Epochs is the view of a realm's epochs: see EpochsOf.
type Epochs struct{ r *Realm }

// EpochsOf returns the view of a realm's epochs.
func EpochsOf(r *Realm) Epochs { return Epochs{r} }

// EpochView is the time of one writer of a realm, with the seed of all its draws.
type EpochView struct {
	Number     uint64
	Position   uint64   // of the log entry that began it
	Time       int64    // when it began, Unix milliseconds; 0: the log no longer has it
	Commitment [32]byte // to the seed, by SHA-256: docs/internals/formats has the bytes
	Current    bool     // it is the epoch of the current writer, so its seed is secret
	Revealed   uint64   // position of the log entry that revealed the seed; 0: none yet
	Seed       [32]byte // zero until it is revealed
}

// Get returns an epoch by its number. It reads the log near where the epoch and the next one began. After a
// restart, it must read from the log's beginning to find an epoch before the snapshot. CodeNotFound: no epoch has this number, or the log no longer has it. An engine in memory keeps
// no log, so it returns no seeds.
func (v Epochs) Get(ctx context.Context, number uint64) (EpochView, error) {
	w := v.r.w
	if err := w.gate.answers(ctx); err != nil {
		return EpochView{}, err
	}
	known := epochsOf(w)
	out := EpochView{Number: number}
	var next uint64 // where the next epoch began; 0: nobody knows
	var told bool   // the seed was revealed
	if i := slices.IndexFunc(known, func(e ledger.Epoch) bool { return e.Number == number }); i >= 0 {
		out.Position, out.Commitment = known[i].First, known[i].Commitment
		out.Current, told = i == len(known)-1 && !known[i].Revealed, known[i].Revealed
		if i < len(known)-1 && known[i+1].Number == number+1 { // a writer need not know all of them
			next = known[i+1].First
		}
	} else if len(known) == 0 || number > known[len(known)-1].Number || number == 0 {
		return EpochView{}, errf(CodeNotFound, "epoch", "realm %q has no epoch %d", w.name, number)
	}
	if w.keepsLog() {
		if err := v.read(ctx, &out, next, told); err != nil {
			if ctx.Err() != nil {
				return EpochView{}, &Error{Code: CodeCanceled, Message: "while reading the log", Err: ctx.Err()}
			}
			return EpochView{}, w.failed("reading an epoch", err)
		}
	}
	if out.Position == 0 || told && out.Revealed == 0 && w.keepsLog() {
		return EpochView{}, errf(CodeNotFound, "epoch", "the log of realm %q no longer has epoch %d", w.name, number)
	}
	return out, w.settle(ctx, max(out.Position, out.Revealed))
}

// read fills in what the log has of an epoch. Of one that the writer knows, it reads near where the epoch
// began, and on from where the next one did: there, nearly always, its seed was revealed. next is where the
// next one began; 0: nobody knows, and it reads on from the epoch's begin.
func (v Epochs) read(ctx context.Context, out *EpochView, next uint64, told bool) error {
	if out.Position > 0 {
		start, trimmed, err := v.from(ctx, out.Position)
		if err != nil {
			return err
		}
		if !trimmed || start.at.Position() < out.Position { // otherwise the entry that began it is gone
			if err := v.r.catalogs.walk(ctx, start, func(e *ledger.Entry) (on bool, err error) {
				out.take(e)
				return e.Position < out.Position, nil
			}); err != nil {
				return err
			}
		}
		if !told {
			return nil
		}
	}
	// An epoch's end is the entry before the next one's begin. After a crash, a later writer reveals the seed
	// after its own begin.
	start, _, err := v.from(ctx, max(out.Position, next-min(next, 1)))
	if err != nil {
		return err
	}
	return v.r.catalogs.walk(ctx, start, func(e *ledger.Entry) (on bool, err error) {
		out.take(e)
		return out.Revealed == 0, nil
	})
}

// from returns a place to read on from to an entry of the log. trimmed: it is the oldest one, and the log was trimmed.
func (v Epochs) from(ctx context.Context, position uint64) (at place, trimmed bool, err error) {
	return v.r.catalogs.places.before(ctx, func(p *place) bool { return p.at.Position() < position })
}

// take takes what an entry of the log says of the epoch.
func (e *EpochView) take(entry *ledger.Entry) {
	switch entry.Kind() {
	case ledger.KindEpochBegin:
		if began, at := entry.Begun(); began.Number == e.Number {
			e.Position, e.Time, e.Commitment = began.First, at, began.Commitment
		}
	case ledger.KindEpochEnd, ledger.KindReveal:
		if number, seed := entry.Revealed(); number == e.Number {
			e.Revealed, e.Seed = entry.Position, seed.Bytes()
		}
	}
}

// epochsOf returns the epochs that a writer knows, ascending.
func epochsOf(w *writer) []ledger.Epoch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.proofs.epochs)
}
