package kuji

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
)

// home is what a realm is opened with.
type home struct {
	name  string
	o     Options
	world world
}

// keepsLog reports whether what is written can be read again.
func (h *home) keepsLog() bool {
	_, volatile := h.world.driver.(driver.Volatile)
	return !volatile
}

// newestLevel returns the highest level that all builds know which may read the realm.
func (h *home) newestLevel() format.Level {
	known := format.Newest
	if h.o.FormatLevel != nil {
		known = min(known, format.Level(h.o.FormatLevel()))
	}
	return max(known, format.First)
}

// failed says what was being done when an error of the ledger came. A nil err stays nil.
func (h *home) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: codeOfLedger(err), Message: "realm " + h.name + ": " + doing, Err: err}
}

// writer writes a realm: one at a time, under its lock.
type writer struct {
	home

	// Owned by openRealm, then the replica, the flusher and close: never by two at once.
	ledger *ledger.Ledger

	// prepare is held while a catalog is prepared, put in force or planned, mostly without mu. Lock it first.
	prepare sync.Mutex

	mu       sync.Mutex
	gate     gate
	state    *store.State
	rules    *rules.Rules
	tables   atomic.Pointer[rules.Tables] // the catalog in force, for readers without mu
	clock    clock
	source   ledger.Source
	draft    draft
	group    *ledger.Batches // makes events durable
	outcomes outcomes
	counts   counts
	proofs   proofs
}

type draft struct {
	queue   *work // requests that wait for the next batch: see Submit
	event   store.Writer
	request request     // that asks for it
	decoded store.Event // it, or the one that answers the request already
	found   earlier     // what answers the request already
	sweep   sweep       // what enters when it is due
}

// asked returns the proposal of a command. There is one at a time, so that it takes no memory.
func (d *draft) asked(cmd *rules.Command) *request {
	d.request.cmd = cmd
	return &d.request
}

// counts are what a realm counts. The lock guards all but answered.
type counts struct {
	stats    Stats
	drawn    []uint64      // by pool number: single draws that ended OK, since opening
	answered atomic.Uint64 // events acknowledged since opening
}

// proofs are what receipts prove draws with.
type proofs struct {
	epochs   []ledger.Epoch // the ledger's, once its own has begun
	epoch    uint64         // of this writer; 0: none yet
	seedsErr error          // which seeds are lost
}

func proofsOf(l *ledger.Ledger) proofs { return proofs{l.Epochs(), l.Epoch(), l.SeedsErr()} }

// at returns which epoch a position is in; -1: none.
func (p *proofs) at(position uint64) int {
	i := len(p.epochs) - 1
	for i >= 0 && p.epochs[i].First > position { // it is nearly always the last
		i--
	}
	return i
}

// receipt fills in the proof of a result, except for the name of its realm.
func (p *proofs) receipt(rc *Receipt, at store.At, version uint64) {
	rc.Position, rc.Index, rc.Time, rc.CatalogVersion = at.Position, int(at.Index), at.Time, version
	if i := p.at(at.Position); i >= 0 {
		rc.Epoch, rc.Commitment = p.epochs[i].Number, p.epochs[i].Commitment
	}
}

// receipts fills in the receipts of a result and of its members.
func (p *proofs) receipts(res *Result, realm string, at store.At, version uint64) {
	res.Receipt.Realm = realm
	p.receipt(&res.Receipt, at, version)
	for i := range res.Members {
		res.Members[i].Receipt = res.Receipt
	}
}

// needed returns the epochs that later receipts or reveals may need, given the oldest answer's position.
func (p *proofs) needed(oldest, catalog uint64) (out []ledger.Epoch) {
	first, applied := max(p.at(oldest), 0), max(p.at(catalog), 0)
	for i, e := range p.epochs {
		if i >= first || i == applied || !e.Revealed {
			out = append(out, e)
		}
	}
	return out
}

// proposal is something that may enter the log: a request, a catalog, codes, a clock, a format level.
type proposal interface {
	// propose writes an event to w, after the open batch's; otherwise it returns what its answer depends on.
	propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error)
	// entered follows once the event counts. It cannot fail.
	entered(w *writer, b *ledger.Batch)
}

// earlier is an event that a proposal found, or only its place. nil, or position 0: nothing.
type earlier struct {
	event   *store.Event // nil: there is no more to say than where it is
	at      store.At
	version uint64 // of the catalog in force then
}

// until returns what depends on everything up to a position.
func until(position uint64) *earlier { return &earlier{at: store.At{Position: position}} }

func (e *earlier) position() uint64 {
	if e == nil {
		return 0
	}
	return e.at.Position
}

// enter is the one way into the log. It fills in res, from the proposal's event or an earlier one, and
// returns the batch that makes res durable, nil if it is. With an error, that is the batch that the
// refusal depends on. The caller holds mu.
func (w *writer) enter(p proposal, res *Result) (b *ledger.Batch, err error) {
	if w.gate.err != nil { // an earlier request of the same call stopped the realm
		return nil, w.gate.err
	}
	finished := false
	defer w.ended(&finished, &b, &err)
	b = w.group.Open()
	w.draft.event.Buf = b.Buf
	found, err := p.propose(w, b, &w.draft.event)
	switch {
	case err != nil:
		b = w.batchAt(found.position())
	case len(w.draft.event.Buf) == len(b.Buf):
		b = w.batchAt(found.position())
		err = w.again(found, res)
	default:
		if err = w.commit(b, w.draft.event.Buf, res); err != nil {
			b = nil
		} else {
			p.entered(w, b)
		}
	}
	w.state.End()
	finished = true
	return b, err
}

func (w *writer) again(found *earlier, res *Result) error {
	if found == nil || found.event == nil {
		if found.position() > 0 {
			res.Receipt.Realm = w.name
			w.proofs.receipt(&res.Receipt, found.at, found.version)
		}
		return nil
	}
	w.counts.stats.Replays++
	res.Replayed = true
	if err := w.answer(found.event, res, found.at, found.version); err != nil {
		return rememberedWrong(err)
	}
	return nil
}

// commit adds the event at the end of buf to b, and fills in res. An error is a defect: the rules may have
// used random values that no log mentions, so the open batch is lost. The caller holds mu.
func (w *writer) commit(b *ledger.Batch, buf []byte, res *Result) error {
	ev := &w.draft.decoded
	if _, err := store.Decode(buf[len(b.Buf):], ev); err != nil {
		return w.defect(err)
	}
	at := store.At{Position: b.Position, Index: uint32(b.Events), Time: b.Time}
	version := w.rules.Tables().Version
	look, err := w.outcomes.begin(w.state, ev, res, w.rules.Tells())
	if err != nil {
		return w.defect(err)
	}
	if err := w.state.Apply(ev, at, look); err != nil {
		return w.defect(err) // the rules and the store disagree
	}
	w.outcomes.finish()
	w.proofs.receipts(res, w.name, at, version)
	b.Buf = buf
	b.Events++
	w.clock.last = w.state.Now()
	w.counts.stats.Events++
	return nil
}

// answer fills in res from an event that was applied. The caller holds mu.
func (w *writer) answer(ev *store.Event, res *Result, at store.At, version uint64) error {
	if err := describe(w.state, &w.outcomes, ev, res); err != nil {
		return err
	}
	w.proofs.receipts(res, w.name, at, version)
	return nil
}

// stamp sets the time of b if b has no events yet. The caller holds mu.
func (w *writer) stamp(b *ledger.Batch) {
	if b.Events == 0 {
		b.Time = w.now()
	}
}

// defect stops the realm because of a bug: the open batch is lost, the state spoilt. The caller holds mu.
func (w *writer) defect(err error) error {
	w.state.Abandon()
	w.gate.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q stopped at position %d by a defect of this build", w.name, w.group.Open().Position), Err: err})
	w.gate.gone.Store(w.gate.err)
	w.group.GiveUp(w.gate.err)
	return w.gate.err
}

// ended, deferred, makes a defect of a panic of the rules, the store or the clock, or of a goroutine's end.
func (w *writer) ended(finished *bool, b **ledger.Batch, err *error) {
	if !*finished {
		*b, *err = nil, w.defect(fmt.Errorf("panic: %v\n%s", recover(), debug.Stack()))
	}
}

// carry lets a proposal enter, and waits until it, or what its refusal depends on, is durable. prepare, if
// not nil, comes first and may take long: no catalog enters meanwhile.
func (w *writer) carry(ctx context.Context, p proposal, prepare func() error) (Receipt, error) {
	var res Result
	c, err := w.start(ctx, p, prepare, &res)
	switch {
	case err == nil:
		err = c.Wait(ctx)
	case c.batch != nil:
		err = cmp.Or(w.settled(ctx, c.batch, c.done), err)
	}
	return res.Receipt, err
}

func (w *writer) start(ctx context.Context, p proposal, prepare func() error, res *Result) (c Commit, err error) {
	if prepare != nil {
		w.prepare.Lock()
		defer w.prepare.Unlock()
		if err := prepare(); err != nil {
			return c, err
		}
	}
	if err := w.lockForRoom(ctx); err != nil {
		return c, err
	}
	defer w.unlock()
	c.steps = w.world.steps
	if c.batch, err = w.enter(p, res); c.batch != nil {
		c.done = c.batch.Done()
	}
	return c, err
}

// checkWho refuses what cannot stand in the log as who asks and why. wrong is what the rules say of it.
func checkWho(by, reason string, wrong *rules.CommandError) error {
	if wrong == nil && !(utf8.ValidString(by) && utf8.ValidString(reason)) {
		return errf(CodeInvalid, "reason", "%q by %q; want UTF-8", reason, by)
	}
	return invalid(wrong)
}

// request is a checked command.
type request struct{ cmd *rules.Command }

func (q *request) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	if q.cmd.ID != "" {
		if a, known := w.state.Begin(q.cmd.ID); known {
			w.draft.found = earlier{&w.draft.decoded, store.At{Position: a.Position, Index: a.Index, Time: a.Time}, a.Version}
			return &w.draft.found, q.same(w, &a)
		}
	}
	w.stamp(b)
	newer := q.cmd.Allow(w.state.Level())
	if newer == nil || w.state.Catalog().Version == 0 { // the first catalog says at which level the realm begins
		if err := q.refused(w, b.Time); err != nil { // by a catalog that may not be durable yet
			return until(w.state.Catalog().Position), err
		}
	}
	if newer != nil {
		return nil, &Error{Code: CodeFormat, Err: newer}
	}
	if err := q.admit(w, b.Time); err != nil {
		return nil, err
	}
	if err := w.draft.sweep.before(q.cmd, b, event); err != nil {
		return nil, err
	}
	if status := w.rules.Decide(q.cmd, b.Time, &w.source, event); status != rules.OK {
		w.counts.stats.Failures++
	} else {
		w.counts.stats.Draws += w.rules.Drawn(w.counts.drawn)
	}
	return nil, nil
}

func (q *request) entered(w *writer, b *ledger.Batch) {
	if q.cmd.Kind == rules.KindForget {
		w.draft.sweep.erase(b)
	}
}

// same decodes a remembered answer, and refuses it to a command that asks for something else.
func (q *request) same(w *writer, a *store.Answer) error {
	if _, err := store.Decode(a.Event, &w.draft.decoded); err != nil {
		return rememberedWrong(err)
	}
	if w.draft.decoded.Kind == store.KindErased {
		w.draft.decoded.Status = uint8(Forgotten)
		return nil
	}
	switch same, err := rules.Same(w.state, q.cmd, &w.draft.decoded); {
	case err == nil && !same && rules.Forgets(w.state, &w.draft.decoded):
		w.draft.decoded = store.Event{Kind: store.KindErased, Status: uint8(Forgotten)}
	case err != nil:
		return rememberedWrong(err)
	case !same:
		return errf(CodeIDReused, "id", "%q was used for another request, at position %d; use a request id again only with the same arguments", q.cmd.ID, a.Position)
	}
	return nil
}

// refused returns why the catalog in force refuses a command whose id is not remembered, or nil.
func (q *request) refused(w *writer, now int64) error {
	if err := w.rules.Resolve(q.cmd); err != nil {
		if err.Unfit {
			return invalid(err)
		}
		return &Error{Code: CodeNotFound, Field: err.Field, Message: err.Message}
	}
	if err := w.rules.CheckNew(q.cmd); err != nil {
		return invalid(err)
	}
	if q.cmd.ID == "" {
		return nil
	}
	fault := w.rules.CheckID(q.cmd, now)
	if fault == rules.IDAccepted {
		return nil
	}
	made, _ := store.IDTime(q.cmd.ID)
	switch fault {
	case rules.IDTooOld:
		return errf(CodeTooOld, "id", "%q: %v: it was made at %s, and ids from before %s may have been", q.cmd.ID, fault, stampText(made), stampText(w.state.IDFloor()))
	case rules.IDTooFarAhead:
		return errf(CodeInvalid, "id", "%q: %v: it was made at %s, and here it is %s", q.cmd.ID, fault, stampText(made), stampText(now))
	}
	if fault == rules.IDUsed {
		return errf(CodeTooOld, "id", "%q: %v", q.cmd.ID, fault)
	}
	return errf(CodeInvalid, "id", "%q: %v", q.cmd.ID, fault)
}

func stampText(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// admit refuses a command if the state has no room for what it may add: a request id or players.
func (q *request) admit(w *writer, now int64) error {
	s := w.state
	if q.cmd.ID != "" && s.WindowFull(now) {
		w.counts.stats.RefusedIDs++
		ids := s.WindowSize()
		return errf(CodeOverloaded, "id", "%d request ids are remembered and the catalog allows %d within its window; none is forgotten early: "+
			"send it again later, or raise idempotency.count in the catalog", ids.Remembered, ids.Limit)
	}
	if most := 2 * max(1, len(q.cmd.Members)); !s.RoomForPlayers(most) && !s.RoomForPlayers(q.cmd.NewPlayers(s)) {
		return errf(CodeConflict, "player", "the realm has %d players, the most it can have; there is no room for a new one", s.Players())
	}
	if s.MemoryFull() {
		return errf(CodeConflict, "player", "the realm's %d players take all the memory that they may", s.Players())
	}
	return nil
}

// rememberedWrong says that the answer to a request id, which a snapshot may hold, cannot be read.
func rememberedWrong(err error) error {
	return &Error{Code: CodeCorrupt, Message: "a remembered answer", Err: err}
}

const maxCatalogEvent = 40 << 20 // bytes: after MaxPending of others, a log record, 64 MiB, holds it

// lockForRoom locks mu once the open batch has room. Without an error, the caller holds mu.
func (w *writer) lockForRoom(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return &Error{Code: CodeCanceled, Message: "the context ended before the request was accepted; nothing was logged", Err: ctx.Err()}
		}
		w.mu.Lock()
		if err := w.gate.usable(); err != nil {
			w.mu.Unlock()
			return err
		}
		w.carryOut(false)
		if !w.group.Full() {
			return nil
		}
		taken := w.group.Taken()
		w.mu.Unlock()
		// If the context has ended, the check above returns.
		_ = step.Wait(ctx, w.world.steps, taken)
	}
}

// unlock unlocks mu for somebody who adds no more.
func (w *writer) unlock() {
	defer w.mu.Unlock()
	w.group.Ask()
	w.group.Help()
}

// batchAt returns the batch at a position, nil if that is acknowledged. The caller holds mu.
func (w *writer) batchAt(pos uint64) *ledger.Batch {
	if pos <= w.gate.acked.Load() {
		return nil
	}
	return w.group.At(pos)
}

// batches are what becomes of a realm's batches: the ledger calls its methods under the realm's lock.
type batches struct {
	w       *writer
	snaps   *snapshots
	places  *places
	version uint64    // of the catalog in force after the batch being written
	hash    *[32]byte // of the state after the open batch, for stateHash; nil: nobody asked
}

// Taken begins the writing of a batch. The state is what the batch has made it.
func (b *batches) Taken(batch *ledger.Batch) {
	b.version = b.w.state.Catalog().Version
	if b.hash != nil {
		*b.hash = b.w.state.Hash()
		b.hash = nil
	}
	b.snaps.begin(batch.Position)
}

// Ready adds what has waited while a batch was written.
func (b *batches) Ready() {
	d := &b.w.draft
	switch {
	case d.queue == nil:
	case d.queue.used > 0:
		b.w.carryOut(false)
		b.w.group.Ask()
	case b.w.group.Open().Events == 0: // nobody submits any more
		d.queue.end()
		d.queue = nil
	}
	d.sweep.goOn()
}

func (b *batches) Durable(batch *ledger.Batch) {
	w, at := b.w, b.w.ledger.At
	w.counts.answered.Add(uint64(batch.Events))
	w.counts.stats.Batches++
	w.counts.stats.LogBytes += uint64(len(batch.Buf))
	b.snaps.bytes += int64(len(batch.Buf))
	b.snaps.place(at)
	b.places.passed(len(batch.Buf), at, b.version, w.clock.last)
	w.gate.advance(at)
}

func (b *batches) Lost(batch *ledger.Batch, cause error) error {
	w := b.w
	if w.gate.err == nil && codeOfLedger(cause) == CodeNotLeader {
		w.gate.fail(&Error{Code: CodeNotLeader, Message: fmt.Sprintf("realm %q stopped at position %d", w.name, batch.Position), Err: cause})
	} else if w.gate.err == nil {
		w.gate.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q stopped at position %d: writing the log failed; restart the server (in Go: close the engine and open it again) to recover", w.name, batch.Position), Err: cause})
	}
	w.gate.lower(w.ledger.Durable())
	b.snaps.lose()
	w.gate.wake()
	w.carryOut(false) // that is, refuse
	return &Error{Code: CodeUnknownOutcome, Message: fmt.Sprintf("realm %q stopped before the request was durable; after a restart, send the same request id again to learn what became of it", w.name), Err: cause}
}

func (b *batches) stateHash(ctx context.Context) (hash [32]byte, position uint64, err error) {
	w := b.w
	w.mu.Lock()
	if err := w.gate.answers(ctx); err != nil {
		w.mu.Unlock()
		return hash, 0, err
	}
	w.carryOut(false)
	open := w.group.Open()
	if open.Events == 0 { // the state is that of the batch before it
		position, hash = w.state.Position(), w.state.Hash()
		w.mu.Unlock()
		return hash, position, w.settle(ctx, position)
	}
	if b.hash == nil {
		b.hash = new([32]byte)
	}
	sum, done := b.hash, open.Done()
	w.unlock()
	if err := w.settled(ctx, open, done); err != nil {
		return hash, 0, err
	}
	return *sum, open.Position, nil
}
