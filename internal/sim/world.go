package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// Places on the simulated disk. Realms after the first have a number after the name.
const (
	dataDir   = "/data"
	realmName = "r"
)

// world is one run.
type world struct {
	cfg      Config
	schedule *rand.Rand    // what happens next
	entropy  *rand.ChaCha8 // the engine's entropy
	network  *rand.Rand    // what happens to messages
	clock    int64         // what the machine's clock shows, Unix milliseconds
	truth    int64         // what it should show, Unix milliseconds
	sum      hash.Hash     // of the trace
	tail     []string      // the newest lines of the trace
	report   Report        // what happened

	disk    *vfs.Mem
	life    *life // the engine's
	games   []*game
	clients []*client
	inbox   []message // on the way to the engine
	outbox  []message // on the way to a client
}

// Failure is a promise that was broken.
type Failure struct {
	Config Config
	Life   int    // of the engine, from 0
	Err    string // what was broken
	Tail   string // the newest lines of the trace
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s\nin life %d of seed %d; again with:\n  %s\n", f.Err, f.Life, f.Config.Seed, f.Config.Command())
}

// broken is what fail panics with.
type broken struct{ err error }

// fail ends the run: a promise was broken.
func (w *world) fail(format string, args ...any) { panic(broken{fmt.Errorf(format, args...)}) }

// Run simulates one configuration.
func Run(cfg Config) (rep Report, failure *Failure) {
	w := newWorld(cfg)
	defer func() {
		r := recover()
		copy(rep.Trace[:], w.sum.Sum(nil))
		if r == nil {
			return
		}
		failure = &Failure{Config: cfg, Tail: strings.Join(w.tail, "\n")}
		if w.life != nil {
			failure.Life = w.life.number
		}
		switch r := r.(type) {
		case broken:
			failure.Err = r.err.Error()
		default:
			failure.Err = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	w.run()
	return w.report, nil
}

func newWorld(cfg Config) *world {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], cfg.Seed)
	w := &world{
		cfg: cfg, clock: epoch, truth: epoch, sum: sha256.New(),
		schedule: stream(cfg.Seed, 3), network: stream(cfg.Seed, 4), entropy: rand.NewChaCha8(key),
		disk: vfs.NewMem(),
	}
	for i := range cfg.Realms {
		w.games = append(w.games, newGame(w, i))
	}
	for i := range cfg.Clients {
		w.clients = append(w.clients, newClient(cfg, i, w.games[i%cfg.Realms]))
	}
	return w
}

func (w *world) run() {
	for n := range w.cfg.Lives {
		w.live(n, n == w.cfg.Lives-1)
		w.audit()
		w.rot()
	}
	w.atTheEnd()
	for _, g := range w.games {
		w.report.Events += len(g.known)
		for _, rec := range g.known {
			w.report.settled(rec)
		}
	}
	if w.cfg.Realms > 1 {
		w.report.Shared++
	}
}

// audit checks every realm that a life left, before anything opens it again.
func (w *world) audit() {
	w.report.Audits++
	for _, g := range w.games {
		g.audit()
	}
}

// note adds a line to the trace.
func (w *world) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.report.Lines++
	w.sum.Write([]byte(line)) // never fails: hash.Hash
	w.sum.Write([]byte{'\n'})
	if len(w.tail) == 200 {
		w.tail = append(w.tail[:0], w.tail[100:]...)
	}
	w.tail = append(w.tail, line)
}

// fired counts a fault.
func (w *world) fired(f Faults) {
	if f != 0 {
		w.report.Fired[kindOf(f)]++
	}
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }

func short(b []byte) string { return hex.EncodeToString(b[:4]) }
