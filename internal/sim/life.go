package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// life is one life of the engine, from opening to the crash or to Close.
type life struct {
	w        *world
	number   int
	fate     fate
	rng      *rand.Rand // of its faults
	runner   *runner
	policy   kuji.SyncPolicy
	engine   *kuji.Engine
	sessions []*session // one of each realm
	opening  *session   // the one being opened, if any

	changes int      // disk operations so far that change something
	over    bool     // the process is gone
	after   *vfs.Mem // the disk that a kill left
	harm
	waiting int  // requests that the engine has not answered
	within  bool // a disk operation is being interleaved
}

// harm is what has failed in a life.
type harm struct {
	hurt    bool            // a write or an fsync outside every realm has failed
	scarred bool            // one has failed in an opening that was refused, and another opening followed
	failed  map[string]bool // files and directories whose fsync has failed
}

// fate is what ends a life. It is chosen before the life begins.
type fate struct {
	fault Faults // 0: it ends with Close
	at    int    // the number of the operation that is hit, among those that can be
	span  int    // how many are hit in a row, where more than one can be
	last  bool   // no life follows
}

// pickFate chooses one of the faults that are allowed.
func (w *world) pickFate(r *rand.Rand, last bool) fate {
	kinds := []Faults{0, Power, Power, Power, Kill, Kill, Sync, Sync, Write, Full, Short}
	f := fate{fault: kinds[r.IntN(len(kinds))], at: r.IntN(12), last: last}
	if r.IntN(3) > 0 {
		f.at = r.IntN(150)
	}
	if f.fault == Short {
		f.span = 1 + r.IntN(20)
	}
	if last || f.fault&w.cfg.Faults == 0 {
		f.fault = 0
	}
	return f
}

// live runs one life.
func (w *world) live(number int, last bool) {
	r := stream(w.cfg.Seed, 100+uint64(number))
	l := &life{w: w, number: number, rng: r, runner: &runner{w: w}, harm: harm{failed: map[string]bool{}}}
	for _, g := range w.games {
		l.sessions = append(l.sessions, &session{game: g, l: l, safe: g.settled})
	}
	w.life = l
	w.report.Lives++
	l.fate = w.pickFate(r, last)
	if w.cfg.Faults&Relaxed != 0 && !last && r.IntN(4) == 0 {
		l.policy = kuji.SyncPolicy(1 + r.IntN(2))
	}
	w.note("life %d: %v at %d, sync %v", number, l.fate.fault, l.fate.at, l.policy)
	if l.fate.fault == Full {
		w.disk.Limit(w.disk.Used() + int64(l.fate.at)*1024)
	}
	w.disk.SetHook(l.hook)
	if l.open() {
		l.work()
	}
	l.end()
}

// open opens the engine and the realms. It may fail if the disk does. A realm that cannot be
// opened does not stop the others.
func (l *life) open() bool {
	w := l.w
	var err error
	for again := true; again; again = vfs.Short(err) { // which passes, and has changed nothing
		l.engine, err = openIn(w.disk, l.runner, l.options())
	}
	if err != nil {
		w.note("open: %v", err)
		if !l.excused() {
			w.fail("opening failed without a cause: %w", err)
		}
		return false
	}
	if l.hurt {
		w.fail("the engine opened although a write or an fsync failed meanwhile")
	}
	for _, s := range l.sessions {
		l.opening, l.runner.owner = s, s
		s.open()
	}
	l.opening, l.runner.owner = nil, nil
	return l.up()
}

func (s *session) open() {
	w := s.w
	w.note("open %s with the clock at %s", s.name, stamp(w.clock))
	realm, err := s.l.engine.Realm(s.name)
	for {
		if kuji.CodeOf(err) == kuji.CodeClock {
			s.clockRefused(err)
			s.recovers(err)
		} else if vfs.Short(err) {
			w.note("open %s: %v", s.name, err)
		} else {
			break
		}
		realm, err = s.l.engine.Realm(s.name)
	}
	s.clockRead(err == nil)
	if err != nil {
		w.note("open %s: %v", s.name, err)
		if !s.excused() {
			w.fail("opening %s failed without a cause: %w", s.name, err)
		}
		return
	}
	if s.hurt {
		w.fail("%s opened although a write or an fsync failed meanwhile", s.name)
	}
	s.realm, s.opened = realm, true
	st := realm.Stats()
	w.note("open %s at %d, recovered %d with %d events", s.name, st.Position, st.Recovered, st.RecoveredEvents)
	if n := int(st.RecoveredEvents); n > len(s.known) || n < len(s.known) && w.cfg.Faults&Snapshots == 0 {
		w.fail("%d events recovered, the log has %d", n, len(s.known))
	}
	s.checkHash()
	s.settled, s.safe = st.Position, st.Position
}

// recovers notes that the realm will be opened again after an opening that was refused. If closing
// what was opened failed, the error has said so, and the next opening recovers from what is on the
// disk, as it does in another process.
func (s *session) recovers(err error) {
	if !s.hurt {
		return
	}
	if !errors.Is(err, syscall.EIO) {
		s.w.fail("%s was refused, and nothing says that a write or an fsync failed meanwhile: %w", s.name, err)
	}
	s.hurt, s.l.scarred = false, true
	for name := range s.l.failed {
		if s.l.owner(name) == s {
			delete(s.l.failed, name)
		}
	}
}

// openIn opens an engine on a disk, with its background work run as steps.
func openIn(disk *vfs.Mem, steps step.Runner, o kuji.Options) (*kuji.Engine, error) {
	engine, err := hook.Open(disk, steps, dataDir, o)
	if err != nil {
		return nil, err
	}
	return engine.(*kuji.Engine), nil
}

func (l *life) options() kuji.Options {
	o := kuji.Options{
		Now: l.runner.Now, ClockConfirmed: l.confirmed(), SegmentSize: 4096 << (l.w.cfg.Seed % 3),
		Sync: l.policy, SyncEvery: 5 * time.Millisecond, MaxPending: 1 << 20, SnapshotEvery: -1,
	}
	if l.w.cfg.Faults&Snapshots != 0 {
		o.SnapshotEvery = []int64{-1, 250, 1500}[(l.w.cfg.Seed/3+uint64(l.number))%3]
		o.TrimLog = o.SnapshotEvery > 0 && l.w.cfg.Faults&Trim != 0 && (l.w.cfg.Seed/9+uint64(l.number)/2)%4 > 0
	}
	return o
}

// excused reports whether the disk gave the engine, and so every realm, a reason to fail.
func (l *life) excused() bool { return l.over || l.hurt || l.fate.fault == Full }

// wounded reports whether a write or an fsync has failed.
func (l *life) wounded() bool {
	for _, s := range l.sessions {
		if s.hurt {
			return true
		}
	}
	return l.hurt
}

// checkHash compares the recovered state with the state that the log gives.
func (s *session) checkHash() {
	hash, position, err := s.realm.StateHash(context.Background())
	if err != nil && s.l.fate.fault == Full && errors.Is(s.realm.Err(), syscall.ENOSPC) {
		return // the end of the log could not be repaired: what is there may be lost
	}
	if err != nil {
		s.w.fail("state hash: %w", err)
	}
	if len(s.known) > 0 && (hash != s.hash || position != s.position) {
		s.w.fail("recovered state %s at %d, the log gives %s at %d", short(hash[:]), position, short(s.hash[:]), s.position)
	}
}

// work runs the schedule: one thing at a time, chosen at random.
func (l *life) work() {
	w := l.w
	budget := w.cfg.Steps
	if l.fate.last {
		budget = 200_000
	}
	for range budget {
		if l.over || !l.step() {
			return
		}
	}
	if l.fate.last {
		w.fail("no end after %d steps", budget)
	}
}

// step does one thing that can be done now. It returns false if nothing is left to do or the
// realms have stopped.
func (l *life) step() bool {
	w := l.w
	if l.stopped() && w.schedule.IntN(4) == 0 { // some keep asking, and must be refused
		return false
	}
	pending := len(w.inbox) + len(w.outbox) + len(l.runner.tasks)
	for _, c := range w.clients {
		pending += c.todo()
	}
	for _, g := range w.games {
		pending += len(g.catalogs) - g.applied
	}
	if pending == 0 {
		return false
	}
	switch n := w.schedule.IntN(16); {
	case n < 5:
		if len(l.runner.tasks) > 0 {
			w.note("task of %d", len(l.runner.tasks))
			l.runner.Step()
		}
	case n < 8:
		c := w.clients[w.schedule.IntN(len(w.clients))]
		c.act(w)
	case n < 11:
		l.deliver()
	case n < 13:
		w.answer()
	case n == 13:
		l.any().read()
	case n == 14:
		w.tick()
		l.runner.ring()
	default:
		l.any().administer()
	}
	return true
}

// stopped reports whether it is time to end because realms have stopped: all have, or one has and
// the others have gone on for a while.
func (l *life) stopped() bool {
	running, down := 0, 0
	for _, s := range l.sessions {
		if s.realm == nil {
			down++
			continue
		}
		err := s.realm.Err()
		if err == nil {
			running++
			continue
		}
		down++
		if !s.excused() {
			l.w.fail("%s stopped without a cause: %w", s.name, err)
		}
		s.poisoned = true
	}
	return down > 0 && (running == 0 || l.w.schedule.IntN(20) == 0)
}

// administer applies the next catalog, or tries one that must be refused.
func (s *session) administer() {
	w := s.w
	if s.realm == nil {
		return
	}
	if s.applied < len(s.catalogs) && (s.applied == 0 || w.schedule.IntN(10) == 0) {
		s.apply()
		return
	}
	if w.schedule.IntN(4) == 0 {
		s.bring()
		return
	}
	if w.cfg.Faults&Clock != 0 && w.schedule.IntN(6) == 0 {
		s.setClock()
		return
	}
	if w.cfg.Faults&Snapshots != 0 && w.schedule.IntN(4) == 0 {
		s.snapshot()
		return
	}
	if w.schedule.IntN(20) > 0 {
		return
	}
	if _, err := openIn(w.disk, s.l.runner, s.l.options()); kuji.CodeOf(err) != kuji.CodeLocked && !vfs.Short(err) && !s.l.over {
		w.fail("a second engine on the same directory: %v, want it refused", err)
	}
	if _, _, err := s.verified(w.disk); kuji.CodeOf(err) != kuji.CodeLocked && !vfs.Short(err) && !s.l.over {
		w.fail("verify while an engine runs: %v, want it refused", err)
	}
}

func (s *session) apply() {
	w := s.w
	c := s.catalogs[s.applied]
	var res kuji.Result
	var err error
	switch over := uint64(s.applied); {
	case w.schedule.IntN(4) > 0:
		res, err = s.realm.Apply(context.Background(), c)
	case w.schedule.IntN(2) > 0:
		res, err = s.realm.Catalogs().Apply(context.Background(), c, kuji.ApplyOptions{Over: new(over)})
	default: // from somebody who has seen another version
		res, err = s.realm.Catalogs().Apply(context.Background(), c, kuji.ApplyOptions{Over: new(over + 1 + w.schedule.Uint64N(3))})
		w.note("%s: apply catalog %d over another version: %v", s.name, s.applied, kuji.CodeOf(err))
		if kuji.CodeOf(err) == kuji.CodeConflict {
			return
		}
		if err == nil {
			w.fail("catalog %d of %s was applied over another version than it was meant for: %v", s.applied, s.name, res)
		}
	}
	w.note("%s: apply catalog %d: %v %v", s.name, s.applied, res, kuji.CodeOf(err))
	if err != nil {
		s.told(err, nil)
		return
	}
	if s.poisoned {
		w.fail("a catalog was applied after the realm had stopped")
	}
	s.applied++
	s.acks = append(s.acks, ack{kind: "catalog", res: res, life: s.l.number, lossy: s.l.policy != kuji.SyncAlways})
	if s.applied > 1 {
		w.fired(Catalogs)
	}
}

// snapshot asks for a snapshot and does not wait: it is taken in steps, while requests go on.
func (s *session) snapshot() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	info, err := s.realm.Snapshot(ctx)
	s.w.note("snapshot of %s: %+v, %v", s.name, info, kuji.CodeOf(err))
	switch code := kuji.CodeOf(err); {
	case err == nil, code == kuji.CodeCanceled:
	case code == kuji.CodeFailed && (s.excused() || vfs.Short(err)):
	default:
		s.w.fail("a snapshot failed without a cause: %w", err)
	}
}

// countSnapshots counts those that became durable.
func (s *session) countSnapshots() {
	if s.realm == nil {
		return
	}
	for n := int(s.realm.Stats().Snapshots); s.noted < n; s.noted++ {
		s.w.fired(Snapshots)
	}
}

// told judges an error from the engine.
func (s *session) told(err error, c *call) {
	w := s.w
	switch code := kuji.CodeOf(err); {
	case code == kuji.CodeInvalid && c != nil && c.malformed:
	case code == kuji.CodeOverloaded && c != nil && c.id != "" && w.cfg.Faults&Forget != 0:
		// No room for another id: nothing was logged, and the client tries again a few times.
	case code == kuji.CodeOverloaded && c != nil && w.cfg.Faults&Clock != 0: // the open batch has set the clock
	case code == kuji.CodeTooOld && c != nil && c.id != "" && s.timeOrdered():
	case code == kuji.CodeInvalid && c != nil && c.id != "" && s.timeOrdered(): // made by a clock that is ahead
	case code == kuji.CodeNotFound && c != nil && s.namesUnknown(c):
	case code == kuji.CodeFormat && c != nil && min(c.since, s.applied) == 0: // the first catalog raises the level
	case code == kuji.CodeIDReused && c != nil: // also after a batch failed: the refusal depends on a durable answer, which must survive
		s.mustRemember(c)
		s.refusals = append(s.refusals, refusal{call: c, lossy: s.l.policy != kuji.SyncAlways})
	case (code == kuji.CodeUnknownOutcome || code == kuji.CodeFailed) && s.excused():
		s.poisoned = true
		w.report.Unknown++
	default:
		w.fail("an error that nothing explains: %w", err)
	}
}

// namesUnknown reports whether a request names what a catalog does not have: the one in force when it was sent,
// one since then, or the one that is being put in force. A request may be refused some time before it is told.
func (s *session) namesUnknown(c *call) bool {
	since := min(c.since, s.applied) // a crash can undo a catalog
	if since == 0 {
		return true
	}
	near := s.catalogs[since-1 : min(s.applied+1, len(s.catalogs))]
	return slices.ContainsFunc(near, func(one *catalog.Catalog) bool { return namesUnknown(one, c.req) })
}

// hook is called before every disk operation.
func (l *life) hook(op vfs.Op) vfs.Fault {
	w := l.w
	w.note("%v", op)
	if l.over {
		return vfs.Fault{PowerCut: true}
	}
	if (op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir) && l.failed[op.Path] {
		w.fail("%v: an fsync that failed was tried again", op)
	}
	if s := l.owner(op.Path); s != nil {
		s.trimming = op.Kind == vfs.OpRemove && strings.HasSuffix(op.Path, ".wal") || s.trimming && op.Kind == vfs.OpSyncDir
		if op.Kind == vfs.OpRemove && s.opened && (s.trimming || strings.HasSuffix(op.Path, ".snapshot")) {
			s.observe(s.trimming)
		}
	}
	if fault, hit := l.strike(op); hit {
		return fault
	}
	if op.Kind.Changes() && l.up() && !l.within && w.cfg.Faults&Overlap != 0 && l.rng.IntN(3) == 0 {
		l.within = true
		w.fired(Overlap)
		w.note("meanwhile")
		for range 1 + l.rng.IntN(4) {
			switch l.rng.IntN(4) {
			case 0:
				l.any().read()
			case 1:
				w.clients[l.rng.IntN(len(w.clients))].act(w)
			default:
				l.deliver()
			}
		}
		w.note("back in %v", op)
		l.within = false
	}
	return vfs.Fault{}
}

// strike makes the life's fate happen when it is time.
func (l *life) strike(op vfs.Op) (vfs.Fault, bool) {
	w := l.w
	if l.fate.fault == Short {
		return l.starve(op)
	}
	if !op.Kind.Changes() {
		return vfs.Fault{}, false
	}
	synced := op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir
	switch l.fate.fault {
	case Power, Kill:
	case Sync:
		if !synced {
			return vfs.Fault{}, false
		}
	case Write:
		if synced || op.Kind == vfs.OpCreate && path.Base(op.Path) == "spare" {
			// The log creates a file ahead of need, and goes on without it.
			return vfs.Fault{}, false
		}
	default:
		return vfs.Fault{}, false
	}
	l.changes++
	if l.changes-1 != l.fate.at {
		return vfs.Fault{}, false
	}
	w.fired(l.fate.fault)
	w.note("%v strikes %v", l.fate.fault, op)
	switch l.fate.fault {
	case Power:
		l.over = true
		return vfs.Fault{PowerCut: true}, true
	case Kill:
		l.over = true
		l.after = w.disk.KillClone()
		return vfs.Fault{PowerCut: true}, true
	case Sync:
		if l.wound(op) {
			l.failed[op.Path] = true
		}
		return vfs.Fault{Err: syscall.EIO, Drop: op.Kind == vfs.OpSync && l.rng.IntN(2) == 0, Reached: someSectors(op.N)}, true
	}
	l.wound(op)
	f := vfs.Fault{Err: syscall.EIO}
	if op.Kind == vfs.OpWrite {
		f.Short = l.rng.Int64N(op.Length + 1)
	}
	return f, true
}

// starve lets a number of operations in a row fail that open something. No realm may stop for that.
func (l *life) starve(op vfs.Op) (vfs.Fault, bool) {
	if !op.Opens() {
		return vfs.Fault{}, false
	}
	l.changes++
	n := l.changes - 1 - l.fate.at
	if n < 0 || n >= l.fate.span {
		return vfs.Fault{}, false
	}
	if n == 0 {
		l.w.fired(Short)
	}
	l.w.note("nothing is left for %v", op)
	return vfs.Fault{Err: []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}[l.rng.IntN(3)]}, true
}

// wound records that an operation has failed. It reports whether its realm, or the engine, cannot
// go on. A realm can go on without a snapshot or a trim, and no realm depends on another one.
func (l *life) wound(op vfs.Op) bool {
	s := l.owner(op.Path)
	switch {
	case s == nil:
		l.hurt = true
	case !s.opened || !s.trimming && !strings.Contains(op.Path, "/snapshots"):
		s.hurt = true
	default:
		return false
	}
	return true
}

// end ends the life and leaves the disk for the next.
func (l *life) end() {
	w := l.w
	disk := w.disk
	if l.fate.fault == Full && l.full() {
		w.fired(Full)
	}
	if !l.over && (l.wounded() || l.scarred || l.fate.fault == Full) && l.rng.IntN(2) == 0 {
		// The process is killed rather than closed, or the machine goes down.
		l.over = true
		if l.rng.IntN(2) == 0 {
			l.after = disk.KillClone()
			w.note("killed")
		} else {
			w.note("power cut")
		}
		disk.PowerOff()
	}
	if l.fate.last {
		w.checkpoint()
		for _, s := range l.sessions {
			s.echo()
		}
	}
	opened := false
	for _, s := range l.sessions {
		s.closed = false
		s.countSnapshots()
		s.realm = nil // closing is not interleaved with requests
		opened = opened || s.opened && s.hurt
	}
	if l.engine != nil {
		err := l.engine.Close()
		w.note("close: %v", err)
		if l.waiting > 0 {
			w.fail("%d requests were never answered, not even by an error", l.waiting)
		}
		if err != nil && !l.excused() && !l.wounded() && !vfs.Short(err) { // it could not note where logs end
			w.fail("closing failed without a cause: %w", err)
		}
		if !l.over && err == nil && opened {
			w.fail("closed without an error after a failed write")
		}
		for _, s := range l.sessions {
			s.closed = !l.over && err == nil && s.opened
		}
	}
	disk.SetHook(nil)
	disk.Limit(0)
	switch {
	case !l.over:
	case l.after != nil:
		w.disk = l.after
	default:
		w.disk = disk.Crash(vfs.Crash{Choose: vfs.Seeded(l.rng.Uint64()), Unordered: l.rng.IntN(2) == 0})
		l.lose()
	}
}

// full reports whether a realm noticed that the disk is full.
func (l *life) full() bool {
	for _, s := range l.sessions {
		if s.realm == nil || s.realm.Err() != nil {
			return true
		}
	}
	return false
}

// lose forgets what the sync policy allows a power cut to remove.
func (l *life) lose() {
	if l.policy == kuji.SyncAlways {
		return
	}
	l.w.fired(Relaxed)
	for _, s := range l.sessions {
		s.acks = slices.DeleteFunc(s.acks, func(a ack) bool { return a.life == l.number && a.res.Receipt.Position > s.safe })
		s.refusals, s.reads = nil, nil
	}
}

// someSectors returns the sectors that reach the disk before an fsync fails: about half of them,
// or none.
func someSectors(op int64) func(sector int64) bool {
	if op%2 == 0 {
		return nil
	}
	return func(sector int64) bool { return rand.New(rand.NewPCG(uint64(op), uint64(sector))).IntN(2) == 0 }
}
