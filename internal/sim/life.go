package sim

import (
	"context"
	"math/rand/v2"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// life is one life of the engine: from opening to the crash, or to closing.
type life struct {
	w      *world
	number int
	last   bool
	fate   fate
	rng    *rand.Rand // of its faults
	runner *runner
	policy kuji.SyncPolicy
	engine *kuji.Engine
	realm  *kuji.Realm // nil until it is open, and once it is being closed
	opened bool        // the realm was

	changes  int             // operations so far that change the disk
	over     bool            // the process is gone
	after    *vfs.Mem        // the disk that a kill left
	hurt     bool            // a write or an fsync has failed
	poisoned bool            // the realm said so
	failed   map[string]bool // files and directories whose fsync has failed
	noted    int             // snapshots that were counted
	trimming bool            // the operation before removed a segment
	waiting  int             // requests that the engine has not answered
	within   bool            // an operation of the disk is being interleaved
	safe     uint64          // position below which a relaxed policy loses nothing
}

// fate is what ends a life, decided before it begins.
type fate struct {
	fault Faults // 0: it is closed
	at    int    // the operation that is hit, counted among those that can be
}

// pickFate chooses one of the faults that are allowed.
func (w *world) pickFate(r *rand.Rand, last bool) fate {
	kinds := []Faults{0, Power, Power, Power, Kill, Kill, Sync, Sync, Write, Full}
	f := fate{fault: kinds[r.IntN(len(kinds))], at: r.IntN(12)}
	if r.IntN(3) > 0 {
		f.at = r.IntN(150)
	}
	if last || f.fault&w.cfg.Faults == 0 {
		f.fault = 0
	}
	return f
}

// live runs one life.
func (w *world) live(number int, last bool) {
	r := stream(w.cfg.Seed, 100+uint64(number))
	l := &life{w: w, number: number, last: last, rng: r, runner: &runner{w: w}, failed: map[string]bool{}, safe: w.settled}
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

// open opens the engine and the realm. It may fail when the disk does.
func (l *life) open() bool {
	w := l.w
	var err error
	l.engine, err = kuji.Open(dataDir, l.options(w.disk))
	var realm *kuji.Realm
	if err == nil {
		realm, err = l.engine.Realm(realmName)
	}
	if err != nil {
		w.note("open: %v", err)
		if !l.excused() {
			w.fail("opening failed without a cause: %w", err)
		}
		return false
	}
	if l.hurt {
		w.fail("the realm opened although a write or an fsync failed meanwhile")
	}
	l.realm, l.opened = realm, true
	st := realm.Stats()
	w.note("open at %d, recovered %d with %d events", st.Position, st.Recovered, st.RecoveredEvents)
	if n := int(st.RecoveredEvents); n > len(w.known) || n < len(w.known) && w.cfg.Faults&Snapshots == 0 {
		w.fail("%d events recovered, the log has %d", n, len(w.known))
	}
	l.checkHash()
	w.settled, l.safe = st.Position, st.Position
	return true
}

func (l *life) options(disk *vfs.Mem) kuji.Options {
	o := kuji.Options{
		FS: disk, Steps: l.runner, Now: l.runner.Now, SegmentSize: 4096 << (l.w.cfg.Seed % 3),
		Sync: l.policy, SyncEvery: 40 * time.Millisecond, MaxPending: 1 << 20, SnapshotEvery: -1,
	}
	if l.w.cfg.Faults&Snapshots != 0 {
		o.SnapshotEvery = []int64{-1, 500, 2500}[(l.w.cfg.Seed/3+uint64(l.number))%3]
		o.TrimLog = o.SnapshotEvery > 0 && l.w.cfg.Faults&Trim != 0 && (l.w.cfg.Seed/9+uint64(l.number)/2)%2 == 0
	}
	return o
}

// excused reports whether the disk gave cause for a failure.
func (l *life) excused() bool { return l.over || l.hurt || l.fate.fault == Full }

// checkHash compares the recovered state with what the log gave.
func (l *life) checkHash() {
	hash, position, err := l.realm.StateHash(context.Background())
	if err != nil {
		l.w.fail("state hash: %w", err)
	}
	if len(l.w.known) > 0 && (hash != l.w.hash || position != l.w.position) {
		l.w.fail("recovered state %s at %d, the log gives %s at %d", short(hash[:]), position, short(l.w.hash[:]), l.w.position)
	}
}

// work is the schedule: one thing at a time, chosen by chance.
func (l *life) work() {
	w := l.w
	budget := w.cfg.Steps
	if l.last {
		budget = 200_000
	}
	for range budget {
		if l.over || !l.step() {
			return
		}
	}
	if l.last {
		w.fail("no end after %d steps", budget)
	}
}

// step does one thing that can be done now. It reports false when there is
// nothing left to do, or the realm has stopped.
func (l *life) step() bool {
	w := l.w
	if err := l.realm.Err(); err != nil {
		if !l.excused() {
			w.fail("the realm stopped without a cause: %w", err)
		}
		l.poisoned = true
		if w.schedule.IntN(4) == 0 { // some ask on, and must be refused
			return false
		}
	}
	pending := 0
	for _, c := range w.clients {
		pending += c.todo()
	}
	if pending == 0 && len(w.inbox) == 0 && len(w.outbox) == 0 && len(l.runner.tasks) == 0 && w.applied == len(w.catalogs) {
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
		l.read()
	case n == 14:
		w.tick()
		l.runner.ring()
	default:
		l.administer()
	}
	return true
}

// tick moves the clock: a little, a lot, and back.
func (w *world) tick() {
	ms := w.schedule.Int64N(20)
	if w.schedule.IntN(8) == 0 {
		ms = w.schedule.Int64N(3_600_000)
	}
	if w.schedule.IntN(6) == 0 && w.cfg.Faults&Clock != 0 {
		ms = w.schedule.Int64N(40*3_600_000) - 20*3_600_000
		w.fired(Clock)
	}
	w.clock += ms
	w.latest = max(w.latest, w.clock)
	w.note("clock %+d ms", ms)
}

// administer applies the next catalog, or tries what must be refused.
func (l *life) administer() {
	w := l.w
	if w.applied < len(w.catalogs) && (w.applied == 0 || w.schedule.IntN(10) == 0) {
		res, err := l.realm.Apply(context.Background(), w.catalogs[w.applied])
		w.note("apply catalog %d: %v %v", w.applied, res, kuji.CodeOf(err))
		if err != nil {
			l.told(err, nil)
			return
		}
		if l.poisoned {
			w.fail("a catalog was applied after the realm had stopped")
		}
		w.applied++
		w.acks = append(w.acks, ack{res: res, life: l.number, lossy: l.policy != kuji.SyncAlways, catalog: true})
		if w.applied > 1 {
			w.fired(Catalogs)
		}
		return
	}
	if w.cfg.Faults&Snapshots != 0 && w.schedule.IntN(4) == 0 {
		l.snapshot()
		return
	}
	if w.schedule.IntN(20) > 0 {
		return
	}
	if _, err := kuji.Open(dataDir, l.options(w.disk)); kuji.CodeOf(err) != kuji.CodeLocked && !l.over {
		w.fail("a second engine on the same directory: %v, want it refused", err)
	}
	if _, err := kuji.VerifyFS(w.disk, dataDir, realmName, nil); kuji.CodeOf(err) != kuji.CodeLocked && !l.over {
		w.fail("verify beside a running engine: %v, want it refused", err)
	}
}

// snapshot asks for one and does not wait: it is taken by steps, beside the
// requests.
func (l *life) snapshot() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	info, err := l.realm.Snapshot(ctx)
	l.w.note("snapshot: %+v, %v", info, kuji.CodeOf(err))
	switch code := kuji.CodeOf(err); {
	case err == nil, code == kuji.CodeCanceled:
	case code == kuji.CodeFailed && l.excused():
	default:
		l.w.fail("a snapshot failed without a cause: %w", err)
	}
}

// countSnapshots notes those that became durable.
func (l *life) countSnapshots() {
	if l.realm == nil {
		return
	}
	for n := int(l.realm.Stats().Snapshots); l.noted < n; l.noted++ {
		l.w.fired(Snapshots)
	}
}

// told judges an error that the engine gave.
func (l *life) told(err error, c *call) {
	w := l.w
	switch code := kuji.CodeOf(err); {
	case code == kuji.CodeInvalid && c != nil && c.malformed:
	case code == kuji.CodeOverloaded && c != nil && c.id != "" && w.cfg.Faults&Forget != 0:
		// No room for another id: nothing was logged, and the client tries again a few times.
	case code == kuji.CodeIDReused && c != nil && !l.poisoned:
		l.mustRemember(c)
		w.refusals = append(w.refusals, refusal{call: c, lossy: l.policy != kuji.SyncAlways})
	case (code == kuji.CodeUnknownOutcome || code == kuji.CodeFailed) && l.excused():
		l.poisoned = true
		w.report.Unknown++
	default:
		w.fail("an error that nothing explains: %w", err)
	}
}

// hook is called before every operation of the disk.
func (l *life) hook(op vfs.Op) vfs.Fault {
	w := l.w
	w.note("%v", op)
	if l.over {
		return vfs.Fault{PowerCut: true}
	}
	if (op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir) && l.failed[op.Path] {
		w.fail("%v: an fsync that failed was tried again", op)
	}
	l.trimming = op.Kind == vfs.OpRemove && strings.HasSuffix(op.Path, ".wal") || l.trimming && op.Kind == vfs.OpSyncDir
	if op.Kind == vfs.OpRemove && l.opened && (l.trimming || strings.HasSuffix(op.Path, ".snapshot")) {
		w.observe(l.trimming)
	}
	if fault, hit := l.strike(op); hit {
		return fault
	}
	if op.Kind.Changes() && l.realm != nil && !l.within && w.cfg.Faults&Overlap != 0 && l.rng.IntN(3) == 0 {
		l.within = true
		w.fired(Overlap)
		w.note("meanwhile")
		for range 1 + l.rng.IntN(4) {
			switch l.rng.IntN(4) {
			case 0:
				l.read()
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

// strike lets the life's fate come when it is time.
func (l *life) strike(op vfs.Op) (vfs.Fault, bool) {
	w := l.w
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
		if synced || op.Kind == vfs.OpLock || op.Kind == vfs.OpCreate && path.Base(op.Path) == "spare" {
			// The log makes a file ahead of need, and goes on without it.
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
		if l.vital(op) {
			l.hurt = true
			l.failed[op.Path] = true
		}
		return vfs.Fault{Err: syscall.EIO, Drop: op.Kind == vfs.OpSync && l.rng.IntN(2) == 0}, true
	}
	l.hurt = l.hurt || l.vital(op)
	f := vfs.Fault{Err: syscall.EIO}
	if op.Kind == vfs.OpWrite {
		f.Short = l.rng.Int64N(op.Length + 1)
	}
	return f, true
}

// vital reports whether the realm cannot go on when an operation fails. It can
// without a snapshot, and without having trimmed the log.
func (l *life) vital(op vfs.Op) bool {
	return !l.opened || !l.trimming && !strings.Contains(op.Path, "/snapshots")
}

// end brings the life to its end and leaves the disk for the next.
func (l *life) end() {
	w := l.w
	disk := w.disk
	if l.fate.fault == Full && (l.realm == nil || l.realm.Err() != nil) {
		w.fired(Full)
	}
	if !l.over && (l.hurt || l.fate.fault == Full) && l.rng.IntN(2) == 0 {
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
	if l.last {
		l.echo()
	}
	l.countSnapshots()
	l.realm = nil // closing is not interleaved with requests
	if l.engine != nil {
		err := l.engine.Close()
		w.note("close: %v", err)
		if l.waiting > 0 {
			w.fail("%d requests were never answered, not even by an error", l.waiting)
		}
		if err != nil && !l.excused() {
			w.fail("closing failed without a cause: %w", err)
		}
		if !l.over && err == nil && l.hurt && l.opened {
			w.fail("closed without an error after a failed write")
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
		w.lost(l)
	}
}

// lost forgets what the sync policy lets a power cut take.
func (w *world) lost(l *life) {
	if l.policy == kuji.SyncAlways {
		return
	}
	w.fired(Relaxed)
	keep := w.acks[:0]
	for _, a := range w.acks {
		if a.life != l.number || a.res.Receipt.Position <= l.safe {
			keep = append(keep, a)
		}
	}
	w.acks = keep
	w.refusals, w.reads = nil, nil
}
