// Package verify checks the log and the snapshots of a realm: every byte, the chain of hashes, every effect,
// and with the revealed seeds every choice. It decides each command again as the writer did, applies each
// event as recovery does, and compares. It changes nothing, and uses nothing of a live realm.
package verify

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/store"
)

// Hash is a SHA-256 hash. In JSON it is hexadecimal, and "" if it is zero.
type Hash [32]byte

// MarshalText implements [encoding.TextMarshaler].
func (h Hash) MarshalText() ([]byte, error) {
	if h == (Hash{}) {
		return nil, nil
	}
	return hex.AppendEncode(nil, h[:]), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *Hash) UnmarshalText(text []byte) error {
	raw, err := hex.AppendDecode(nil, text)
	if err != nil || len(raw) != 0 && len(raw) != len(h) {
		return fmt.Errorf("hash %q: expected %d hexadecimal digits", text, hex.EncodedLen(len(h)))
	}
	*h = Hash{}
	copy(h[:], raw)
	return nil
}

// Report is what verification found in a realm's log. As JSON it is what "kuji verify --json" writes of it.
type Report struct {
	Realm     string   `json:"realm"`
	From      uint64   `json:"from,omitempty"` // position of the snapshot that verification began with; 0: it began with the first entry
	Position  uint64   `json:"position"`       // of the last entry that counts
	Batches   uint64   `json:"batches"`
	Events    uint64   `json:"events"`
	Draws     uint64   `json:"draws"` // single draws that ended OK
	Void      uint64   `json:"void"`  // entries that do not count: duplicates, deposed writers
	Players   uint64   `json:"players"`
	Catalog   uint64   `json:"catalog_version"` // in force at the end
	Level     uint8    `json:"level,omitempty"` // format level at the end
	LogBytes  uint64   `json:"log_bytes"`       // of all entries that count
	ChainHash Hash     `json:"chain_hash"`
	StateHash Hash     `json:"state_hash"`
	Snapshots uint64   `json:"snapshots"`        // that hold the same state as the log at their position
	Strays    []string `json:"strays,omitempty"` // foreign files among the snapshots: neither read nor removed
	Epochs    []Epoch  `json:"epochs"`
}

// Epoch is what verification found about one writer epoch.
type Epoch struct {
	Epoch      uint64 `json:"epoch"`
	First      uint64 `json:"first_position"` // of its epoch-begin
	Events     uint64 `json:"events"`
	Commitment Hash   `json:"commitment"`
	// Rules is the version of the rules that decided the epoch. 0: not known, because its begin was trimmed
	// and the snapshot's format does not say.
	Rules uint8 `json:"rules,omitempty"`
	// Revealed reports that the seed is in the log: every choice was computed again from it, with the same
	// result, unless Undecided says why not. After a crash, or in a copy, the next start reveals it.
	Revealed bool `json:"revealed"`
	// Undecided says why a revealed epoch was not decided again: this build lacks its rules.
	Undecided string `json:"undecided,omitempty"`
	// Lost reports that the seed is not revealed, and no key opens it: the epoch's choices cannot be proven.
	// Nothing else is known of an epoch before Report.From.
	Lost bool `json:"lost,omitempty"`
}

// Error says what is wrong with a log and where. Its position is the first wrong one.
type Error struct {
	Realm    string
	Position uint64 // 0: not at a position, or before the first one that was read
	Err      error
}

func (e *Error) Error() string {
	if e.Position == 0 {
		return fmt.Sprintf("realm %s: %v", e.Realm, e.Err)
	}
	return fmt.Sprintf("realm %s: position %d is wrong: %v", e.Realm, e.Position, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Options say more about a verification. The zero value is enough for a data directory.
type Options struct {
	// Through is a place that the chain must pass through. An *Error: the log was rewritten there or
	// earlier, or ends before it. CodeNotFound: trimmed past it. CodeInvalid: its position is 0.
	Through *Anchor
	// Seen is called with every event that counts, in order, if it is not nil.
	Seen func(kuji.Record)
	// Keys are kuji.Options.Key and OldKeys of the realm's nodes. A directory has its own.
	Keys [][32]byte
}

// Anchor is a place in a realm's chain of hashes: Position and ChainHash of an earlier [Report].
type Anchor struct {
	Position uint64
	Hash     [32]byte
}

// Dir checks a realm's log in a data directory. It takes the directory's lock, and writes nothing else. It
//
//   - checks every byte of the log, except footers that were perhaps never durable, such as the
//     last one: opening the log rewrites it;
//   - reads a log that cannot be opened up to the damage;
//   - folds the chain of hashes and replays every event, from the oldest snapshot of a trimmed log;
//   - decides every command of every revealed epoch again, with its seed and by the rules of the
//     time, and names the epochs whose rules this build lacks;
//   - checks the invariants after every epoch and at the end;
//   - compares every snapshot with the state at its position;
//   - checks that the log goes on from where it was last closed;
//   - names epochs whose seed is lost;
//   - reports the hash of the state.
//
// Damage is an *Error with the first wrong position; the report covers everything before it. Other errors
// are *kuji.Error: CodeNotFound: no such directory or realm. CodeLocked: an engine has it open.
// CodeInvalid: a bad name. CodeFormat: a newer build wrote it.
func Dir(dir, realm string, o Options) (Report, error) { return inDir(nil, dir, realm, o) }

// Driver is Dir for a realm that a driver keeps.
func Driver(d driver.Driver, realm string, o Options) (Report, error) {
	v := verifier{realm: realm, o: o, state: store.New(), report: Report{Realm: realm, Epochs: []Epoch{}}}
	err := kuji.CheckRealm(realm)
	if err == nil && o.Through != nil && o.Through.Position == 0 {
		err = &kuji.Error{Code: kuji.CodeInvalid, Field: "anchor", Message: "position 0; positions count from 1"}
	}
	if err != nil {
		return v.report, err
	}
	err = v.verify(d)
	v.lost(o.Keys...)
	if newer, ok := errors.AsType[*format.NewerError](err); ok { // no damage
		err = &kuji.Error{Code: kuji.CodeFormat, Message: "realm " + realm, Err: newer}
	}
	return v.report, err
}

type verifier struct {
	realm  string
	o      Options
	state  *store.State
	report Report

	log     driver.Realm
	end     driver.Cursor // of the log, as far as is known
	snaps   *ledger.Snapshots
	files   []ledger.Snapshot // all snapshots
	next    int               // index in files of the next one to compare
	damaged *Error            // the first damaged or wrong snapshot
	last    int64             // the last time in the log: see ledger.Footer
	epochs  []ledger.Epoch    // so far; those in the first snapshot, if verification began there

	used     uint64 // random values of the first epoch before verification began
	judge    judge
	describe func(*logged.Event, uint64) (any, error) // nil: nobody wants to see the events
}

// start returns where verification begins: nil, or the oldest snapshot that a trimmed log goes back to.
func (v *verifier) start(ctx context.Context) (*ledger.Footer, error) {
	v.snaps = ledger.SnapshotsOf(v.log, v.realm)
	var err error
	if v.files, v.report.Strays, err = v.snaps.List(ctx); err != nil {
		return nil, err
	}
	trimmed, err := logged.Trimmed(ctx, v.log)
	if trimmed == nil || err != nil {
		return nil, err
	}
	var errs []error
	for ; v.next < len(v.files); v.next++ {
		f := v.files[v.next]
		state, footer, err := v.load(ctx, f)
		if err == nil && footer.Cursor() >= trimmed.First {
			v.next++
			return v.begin(state, footer)
		}
		if err != nil {
			errs = append(errs, err)
			if _, ok := ledger.SeriesOf(v.files, f); ok { // and not the rest of a removal that a crash cut short
				v.damage(f, err)
			}
		}
	}
	return nil, errors.Join(append(errs, fmt.Errorf("%w, and no intact snapshot reaches that far", trimmed))...)
}

func (v *verifier) load(ctx context.Context, f ledger.Snapshot) (*store.State, *ledger.Footer, error) {
	l := store.NewLoader()
	footer, _, err := v.snaps.Load(ctx, v.files, f, logged.Loader{Loader: l})
	if err != nil {
		return nil, nil, err
	}
	state, _, err := l.State()
	return state, &footer, err
}

func (v *verifier) begin(state *store.State, s *ledger.Footer) (*ledger.Footer, error) {
	v.state, v.epochs, v.last, v.used = state, s.Epochs, s.Last, s.Values
	v.report.From, v.report.Position, v.report.ChainHash = s.Position(), s.Position(), s.ChainHash()
	e := s.Epochs[len(s.Epochs)-1] // the epoch in force
	v.report.Epochs = append(v.report.Epochs, Epoch{Epoch: e.Number, First: e.First, Rules: s.Rules, Commitment: e.Commitment})
	if most := mostValues(s.Position() - e.First); s.Values > most {
		return nil, fmt.Errorf("the snapshot of position %d says that epoch %d, begun at %d, had used %d random values; its draws used at most %d", s.Position(), e.Number, e.First, s.Values, most)
	}
	return s, nil
}

// mostValues returns the most random values that so many entries can have used. The state does not say: a
// draw can use values and take nothing, and boxes are filled again. No sound snapshot has more.
func mostValues(entries uint64) uint64 {
	const (
		events  = logged.MaxPending / 4 // in an entry: no event that draws is as short
		perPick = 64                    // where an entry is picked: with its ranges, and values that uniform refuses
		each    = perPick*catalog.MaxRequestPicks + 4*catalog.MaxMomentEntries*catalog.MaxRandomMoments
	)
	if entries > math.MaxUint64/(events*each) {
		return math.MaxUint64
	}
	return entries * events * each
}

// damage records the first damaged or wrong snapshot.
func (v *verifier) damage(f ledger.Snapshot, err error) {
	v.damaged = cmp.Or(v.damaged, v.wrong(f.Position, err))
}

func (v *verifier) wrong(position uint64, err error) *Error {
	return &Error{Realm: v.realm, Position: position, Err: err}
}

// resume continues the epoch in which the first snapshot was taken.
func (v *verifier) resume() error {
	e := &v.report.Epochs[0]
	seed, ok := v.judge.seeds[e.Epoch]
	if !ok {
		return nil
	}
	e.Revealed = true
	return v.judge.prepare(e, seed, v.used)
}

// compare checks that the snapshots of a position, which may have copies, hold the log's state and place.
func (v *verifier) compare(ctx context.Context, at *ledger.At) error {
	for ; v.next < len(v.files) && v.files[v.next].Position <= at.Position(); v.next++ {
		f := v.files[v.next]
		if _, ok := ledger.SeriesOf(v.files, f); !ok && v.next+1 < len(v.files) {
			continue // the rest of a removal that a crash cut short
		}
		state, footer, err := v.load(ctx, f)
		if err == nil {
			err = v.agrees(ctx, &f, footer, at)
		}
		if err == nil && state.Hash() != v.state.Hash() {
			err = fmt.Errorf("the state in snapshot %s differs from that of the log", f.Name())
		}
		if errors.Is(err, driver.ErrUnavailable) {
			return &kuji.Error{Code: kuji.CodeFailed, Message: "realm " + v.realm, Err: err}
		}
		if err != nil {
			v.damage(f, err)
			continue
		}
		v.report.Snapshots++
	}
	return nil
}

// agrees checks what a snapshot says about the log up to its position.
func (v *verifier) agrees(ctx context.Context, f *ledger.Snapshot, s *ledger.Footer, at *ledger.At) error {
	ok, err := s.Agrees(ctx, v.log, v.end, at)
	epoch := &v.report.Epochs[len(v.report.Epochs)-1]
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("snapshot %s belongs to another log", f.Name())
	case len(v.judge.deciders) == 1 && s.Values != v.judge.deciders[0].source.Values():
		return fmt.Errorf("snapshot %s says that epoch %d used %d random values; it used %d", f.Name(), epoch.Epoch, s.Values, v.judge.deciders[0].source.Values())
	case s.Rules != 0 && epoch.Rules != 0 && s.Rules != epoch.Rules:
		return fmt.Errorf("snapshot %s says that rules version %d decided epoch %d; version %d did", f.Name(), s.Rules, epoch.Epoch, epoch.Rules)
	case s.Last != v.last:
		return fmt.Errorf("snapshot %s says that the last time in the log is %d; it is %d", f.Name(), s.Last, v.last)
	}
	for _, e := range s.Epochs {
		if !slices.Contains(v.epochs, e) {
			return fmt.Errorf("snapshot %s disagrees with the log about epoch %d, which began at %d: revealed %v, commitment %x", f.Name(), e.Number, e.First, e.Revealed, e.Commitment)
		}
	}
	return nil
}

func (v *verifier) run(ctx context.Context, from *ledger.Footer) error {
	v.state.Alone(true)
	v.judge.state, v.judge.realm = v.state, v.realm
	if v.o.Seen != nil {
		v.describe = logged.Describe(v.state)
	}
	if from != nil {
		if err := v.resume(); err != nil {
			return v.wrong(v.report.Position, err)
		}
	}
	if err := v.anchored(); err != nil {
		return err
	}
	walker := ledger.Walk(v.log, v.realm, from)
	defer func() { v.report.Void = walker.Passed }()
	for e, err := range walker.Entries(ctx, v.end) {
		if err != nil {
			return v.wrong(e.Position, err)
		}
		switch e.Kind() {
		case ledger.KindEpochBegin:
			err = v.beginEpoch(&e)
		case ledger.KindEpochEnd, ledger.KindReveal:
			epoch, _ := e.Revealed()
			ledger.RevealEpoch(v.epochs, epoch)
		case ledger.KindBatch:
			err = v.batch(&e)
			v.last = v.state.Now()
		}
		if err != nil {
			return v.wrong(e.Position, err)
		}
		at := e.At()
		v.report.Position, v.report.ChainHash = e.Position, at.ChainHash()
		v.report.LogBytes += uint64(e.Size())
		if err := v.anchored(); err != nil {
			return err
		}
		if err := v.compare(ctx, &at); err != nil {
			return err
		}
	}
	_, sole := v.log.(driver.Sole)
	switch {
	case v.o.Through != nil && v.o.Through.Position > v.report.Position:
		return v.wrong(v.report.Position+1, fmt.Errorf("the log ends here, but it once had position %d, with chain hash %x", v.o.Through.Position, v.o.Through.Hash))
	case v.next < len(v.files) && !sole:
		return &kuji.Error{Code: kuji.CodeFailed, Message: fmt.Sprintf("realm %s: the log's end cannot be seen yet: there is a snapshot of position %d", v.realm, v.files[v.next].Position), Err: driver.ErrUnavailable}
	case v.next < len(v.files):
		return v.wrong(v.report.Position+1, fmt.Errorf("the log ends here, but there is a snapshot of position %d", v.files[v.next].Position))
	}
	if err := v.check(); err != nil {
		return v.wrong(v.report.Position, err)
	}
	v.report.StateHash, v.report.Players = v.state.Hash(), uint64(v.state.Players())
	v.report.Catalog, v.report.Level = v.state.Catalog().Version, uint8(v.state.Level())
	if v.damaged != nil {
		return v.damaged
	}
	return nil
}

// lost finds the epochs that cannot be proven: their seed is not revealed, and no key opens it.
func (v *verifier) lost(keys ...[32]byte) {
	r := &v.report
	older := 0 // epochs in the first snapshot that ended before it
	for i := range v.epochs {
		e := &v.epochs[i]
		if !e.Lost(v.realm, keys...) {
			continue
		}
		at := slices.IndexFunc(r.Epochs, func(o Epoch) bool { return o.Epoch == e.Number })
		if at < 0 {
			at = older
			older++
			r.Epochs = slices.Insert(r.Epochs, at, Epoch{Epoch: e.Number, First: e.First, Commitment: e.Commitment})
		}
		r.Epochs[at].Lost = true
	}
}

// anchored compares the anchor with the chain when the chain has reached its position.
func (v *verifier) anchored() error {
	at, r := v.o.Through, &v.report
	switch {
	case at == nil:
	case at.Position < r.From:
		return &kuji.Error{Code: kuji.CodeNotFound, Field: "anchor", Message: fmt.Sprintf("position %d; the log was trimmed, and verification begins after position %d", at.Position, r.From)}
	case at.Position == r.Position && at.Hash != r.ChainHash:
		return v.wrong(at.Position, fmt.Errorf("the chain hash is %x but was once %x: the log was rewritten, here or earlier", r.ChainHash, at.Hash))
	}
	return nil
}

func (v *verifier) beginEpoch(e *ledger.Entry) error {
	if err := v.check(); err != nil {
		return err
	}
	epoch, at := e.Begun()
	v.last = at
	seed, ok := v.judge.seeds[epoch.Number]
	v.report.Epochs = append(v.report.Epochs, Epoch{Epoch: epoch.Number, First: epoch.First, Rules: e.Rules(), Commitment: epoch.Commitment, Revealed: ok})
	v.epochs = append(v.epochs, epoch)
	v.judge.deciders = nil
	if !ok {
		return nil
	}
	return v.judge.prepare(&v.report.Epochs[len(v.report.Epochs)-1], seed, 0)
}

// check checks what must hold at every position.
func (v *verifier) check() error {
	err := v.state.Check()
	for i := 0; i < len(v.judge.deciders) && err == nil; i++ {
		err = v.judge.deciders[i].rules.CheckSamplers() // they have the weights of the state
	}
	return err
}

func (v *verifier) batch(e *ledger.Entry) error {
	v.report.Batches++
	epoch := &v.report.Epochs[len(v.report.Epochs)-1]
	for le, err := range logged.Events(e, v.state.WarmChange) {
		if err != nil {
			return err
		}
		if err := v.event(epoch, &le); err != nil {
			return fmt.Errorf("event %d: %w", le.At.Index, err)
		}
	}
	return nil
}

func (v *verifier) event(epoch *Epoch, le *logged.Event) error {
	version := v.state.Catalog().Version
	if err := v.judge.decideAgain(epoch, le); err != nil {
		return err
	}
	if err := v.state.Apply(le.Event, le.At, nil); err != nil {
		return err
	}
	v.judge.applied()
	epoch.Events++
	v.report.Events++
	draws, err := logged.Draws(v.state, le.Event)
	if err != nil {
		return err
	}
	v.report.Draws += draws
	if v.describe == nil {
		return nil
	}
	rec, err := v.describe(le, version)
	if err == nil {
		v.o.Seen(rec.(kuji.Record))
	}
	return err
}
