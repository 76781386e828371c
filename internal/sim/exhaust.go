package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Explored counts what [Exhaust] tried.
type Explored struct {
	Paths   int // schedules: every order of requests, steps of the flusher and a crash
	Crashes int // disks that those crashes can leave
	Checked int // different ones among them, counting what was acknowledged
}

// Exhaust tries every schedule of three clients with four requests to one box with this stock. One
// client asks twice, one asks for two draws at once. A request, or the crash, may come between any
// two steps and in the middle of every write and fsync. Exhaust returns the first broken promise.
func Exhaust(stock int) (Explored, error) {
	x := &exhaust{seen: map[[32]byte]bool{}}
	if err := x.prepare(stock); err != nil {
		return x.Explored, err
	}
	for {
		x.Paths++
		if err := x.run(); err != nil {
			return x.Explored, fmt.Errorf("stock %d, schedule %v: %w", stock, x.digits, err)
		}
		if !x.next() {
			return x.Explored, nil
		}
	}
}

// smallRequests are each client's requests, in order.
var smallRequests = [][]kuji.Draw{
	{{ID: "a1", Player: "ann", Pool: "box"}, {ID: "a2", Player: "ann", Pool: "box"}},
	{{ID: "b1", Player: "bob", Pool: "box", Count: 2}},
	{{ID: "c1", Player: "cyd", Pool: "box"}},
}

type exhaust struct {
	Explored
	catalog *catalog.Catalog
	base    *vfs.Mem          // a closed realm with the catalog
	seen    map[[32]byte]bool // crashed disks, with what was acknowledged

	// The schedule: which of how many choices was made at each point.
	digits, sizes []int
	at            int
}

func (x *exhaust) choose(n int) int {
	if x.at == len(x.digits) {
		x.digits, x.sizes = append(x.digits, 0), append(x.sizes, n)
	}
	if x.sizes[x.at] != n {
		panic(fmt.Sprintf("sim: point %d of schedule %v has %d choices, had %d: the engine is not deterministic", x.at, x.digits, n, x.sizes[x.at]))
	}
	x.at++
	return x.digits[x.at-1]
}

// next moves on to the next schedule.
func (x *exhaust) next() bool {
	x.at = 0
	for i := len(x.digits) - 1; i >= 0; i-- {
		if x.digits[i]+1 < x.sizes[i] {
			x.digits[i]++
			x.digits, x.sizes = x.digits[:i+1], x.sizes[:i+1]
			return true
		}
	}
	return false
}

// smallLife is an engine that runs on a disk.
type smallLife struct {
	runner *runner
	engine *kuji.Engine
	realm  *kuji.Realm
}

func openSmall(disk *vfs.Mem, entropy uint64) (*smallLife, error) {
	var key [32]byte
	key[0] = byte(entropy)
	w := &world{schedule: rand.New(rand.NewPCG(1, 1)), entropy: rand.NewChaCha8(key), clock: epoch, truth: epoch}
	l := &smallLife{runner: &runner{w: w}}
	var err error
	l.engine, err = openIn(disk, l.runner, kuji.Options{Now: l.runner.Now, SegmentSize: 4096, SyncEvery: time.Second})
	if err == nil {
		l.realm, err = l.engine.Realm(realmName)
	}
	return l, err
}

func (x *exhaust) prepare(stock int) (err error) {
	x.catalog, err = catalog.Parse(fmt.Appendf(nil,
		"kuji: 1\nitems: {gem: {}}\npools: {box: {entries: [{id: prize, weight: 1, stock: %d, reward: {items: {gem: 1}}}, {id: odd, weight: 0, stock: 1}]}}\n", max(1, stock)))
	if err != nil {
		return err
	}
	x.base = vfs.NewMem()
	l, err := openSmall(x.base, 0)
	if err != nil {
		return err
	}
	if _, err := l.realm.Apply(context.Background(), x.catalog); err != nil {
		return err
	}
	if stock == 0 { // a pool must not be empty: draw its only entry first
		if _, err := l.realm.Do(context.Background(), kuji.Draw{ID: "all", Player: "zoe", Pool: "box"}); err != nil {
			return err
		}
	}
	return l.engine.Close()
}

// smallRun is one schedule.
type smallRun struct {
	x       *exhaust
	disk    *vfs.Mem
	life    *smallLife
	sent    [3]int
	told    [3]int
	acks    []ack
	crashed bool
	err     error
}

func (x *exhaust) run() error {
	disk := x.base.KillClone()
	life, err := openSmall(disk, 1)
	if err != nil {
		return err
	}
	s := &smallRun{x: x, disk: disk, life: life}
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if s.crashed {
			return vfs.Fault{PowerCut: true}
		}
		if op.Kind == vfs.OpWrite || op.Kind == vfs.OpSync {
			for s.choice(false) {
			}
		}
		return vfs.Fault{PowerCut: s.crashed}
	})
	for s.choice(true) {
	}
	return s.err
}

// choice does one of the things that can happen now: a request arrives, the crash comes, or, between
// operations, the flusher takes a step. It returns false if the current operation goes on or the run
// is over.
func (s *smallRun) choice(between bool) bool {
	if s.crashed {
		return false
	}
	var ready []int
	for c := range smallRequests {
		if s.sent[c] == s.told[c] && s.sent[c] < len(smallRequests[c]) {
			ready = append(ready, c)
		}
	}
	work := between && len(s.life.runner.tasks) > 0
	n := len(ready) + 1 // requests, the crash
	if !between || work {
		n++
	}
	switch i := s.x.choose(n); {
	case i < len(ready):
		s.submit(ready[i])
	case i == n-1:
		s.crash()
		return false
	case work:
		s.life.runner.Step()
	default:
		return false // go on with the operation
	}
	return true
}

func (s *smallRun) submit(client int) {
	req := smallRequests[client][s.sent[client]]
	s.sent[client]++
	s.life.realm.Submit(req, func(res kuji.Result, err error) {
		if err != nil {
			if !s.crashed && s.err == nil {
				s.err = fmt.Errorf("%s: %w", req.ID, err)
			}
			return
		}
		s.told[client]++
		s.acks = append(s.acks, ack{call: &call{req: req, id: req.ID}, res: res})
	})
}

// crash checks every disk that a crash now can leave.
func (s *smallRun) crash() {
	s.crashed = true
	check := func(disk *vfs.Mem) {
		s.x.Crashes++
		key := sha256.Sum256(fmt.Append(digest(disk), s.acks))
		if s.x.seen[key] || s.err != nil {
			return
		}
		s.x.seen[key] = true
		s.x.Checked++
		s.err = s.x.recovered(disk, s.acks)
	}
	check(s.disk.KillClone())
	for disk := range s.disk.CrashStates(8, 1, false) {
		check(disk)
	}
}

// digest returns everything on a disk, as bytes to compare.
func digest(disk *vfs.Mem) []byte {
	var all []byte
	for _, dir := range []string{"", "log"} {
		dir = path.Join(dataDir, "realms", realmName, dir)
		names, err := disk.List(dir)
		if err != nil {
			return fmt.Append(all, err)
		}
		for _, name := range names {
			all = append(all, name...)
			f, err := disk.Open(path.Join(dir, name))
			if err != nil {
				continue // a directory
			}
			size, _ := f.Size()
			at := len(all)
			all = append(all, make([]byte, size)...)
			f.ReadAt(all[at:], 0) // in memory: the whole file
			f.Close()             // read-only
		}
	}
	return all
}

// recovered opens a crashed disk. It must have what was acknowledged. After every client has asked
// again, every request must have one effect.
func (x *exhaust) recovered(disk *vfs.Mem, acks []ack) error {
	l, err := openSmall(disk, 2)
	if err != nil {
		return fmt.Errorf("reopening: %w", err)
	}
	told := map[string]bool{}
	for _, a := range acks {
		told[a.call.id] = true
	}
	all := append([]ack(nil), acks...)
	for _, requests := range smallRequests {
		for _, req := range requests {
			res, err := l.realm.Do(context.Background(), req)
			if err != nil {
				return fmt.Errorf("%s again: %w", req.ID, err)
			}
			if told[req.ID] && !res.Replayed {
				return fmt.Errorf("%s was acknowledged, and carried out again after the crash", req.ID)
			}
			all = append(all, ack{call: &call{req: req, id: req.ID}, res: res})
		}
	}
	if err := l.engine.Close(); err != nil {
		return err
	}
	records, rep, err := (&game{name: realmName}).verified(disk)
	if err != nil {
		return err
	}
	m := newModel()
	for _, rec := range records {
		if err := m.apply(rec, x.catalog); err != nil {
			return fmt.Errorf("position %d, %s: %w", rec.Position, rec.ID, err)
		}
	}
	for _, e := range rep.Epochs {
		if !e.Revealed {
			return fmt.Errorf("epoch %d cannot be proven", e.Epoch)
		}
	}
	return (&game{claims: claims{acks: all}}).told(records)
}
