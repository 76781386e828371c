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

// Get returns an epoch by its number. It reads the log from where the epoch began to where its seed was
// revealed. CodeNotFound: no epoch has this number, or the log no longer has it. An engine in memory keeps
// no log, so it returns no seeds.
func (v Epochs) Get(ctx context.Context, number uint64) (EpochView, error) {
	w := v.r.w
	if err := w.gate.answers(ctx); err != nil {
		return EpochView{}, err
	}
	known := epochsOf(w)
	out, told := EpochView{Number: number}, false // told: the seed was revealed
	if i := slices.IndexFunc(known, func(e ledger.Epoch) bool { return e.Number == number }); i >= 0 {
		out.Position, out.Commitment = known[i].First, known[i].Commitment
		out.Current, told = i == len(known)-1 && !known[i].Revealed, known[i].Revealed
	} else if len(known) == 0 || number > known[len(known)-1].Number || number == 0 {
		return EpochView{}, errf(CodeNotFound, "epoch", "realm %q has no epoch %d", w.name, number)
	}
	if w.keepsLog() {
		if err := v.read(ctx, &out); err != nil {
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

// read reads the log until the epoch has begun and, unless it is the current one, was revealed.
func (v Epochs) read(ctx context.Context, out *EpochView) error {
	c := v.r.catalogs
	from, trimmed, err := c.places.before(ctx, func(p *place) bool { return out.Position > 0 && p.at.Position() < out.Position })
	if err != nil {
		return err
	}
	if trimmed && out.Position > 0 && out.Position <= from.at.Position() && out.Current {
		return nil // the entry that began it is gone, and nothing else is to be read
	}
	return c.walk(ctx, from, func(e *ledger.Entry) (on bool, err error) {
		switch e.Kind() {
		case ledger.KindEpochBegin:
			if began, at := e.Begun(); began.Number == out.Number {
				out.Position, out.Time, out.Commitment = began.First, at, began.Commitment
				return !out.Current, nil
			}
		case ledger.KindEpochEnd, ledger.KindReveal:
			if number, seed := e.Revealed(); number == out.Number {
				out.Revealed, out.Seed = e.Position, seed.Bytes()
				return false, nil
			}
		}
		return true, nil
	})
}

// epochsOf returns the epochs that a writer knows, ascending.
func epochsOf(w *writer) []ledger.Epoch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.proofs.epochs)
}
