//go:build amd64 && !race

package economy

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// guard lets readers copy what the one writer changes: a version that is odd during
// a change (a sequence lock; Boehm, "Can Seqlocks Get Along with Programming
// Language Memory Models?", MSPC 2012). A reader waits for the end of a change that
// is under way, copies, and if the version is another than before, copies again; the
// writer waits for nobody but a reader that has done so in vain too often. Until
// then what it has read may be of no meaning: lengths and places must be checked
// by unchanged before they are used.
//
// It rests on a processor that shows loads and stores of each other in order, as
// amd64 does, and on Go's promise that a load of a word sees a word that was
// stored. The race detector knows neither, so that there, and on other
// processors, a guard is a lock.
type guard struct {
	version atomic.Uint64
	waiting atomic.Int32 // readers that the writer should let go first
	patient sync.Mutex   // held by one of them
}

// glances says that memory may be looked at beside its writer for nothing but its being
// fetched. The race detector would report it.
const glances = true

// patience is how many copies a reader makes in vain before it asks the writer to
// let it go first: of a large player who changes all the time, none might succeed.
const patience = 8

// open begins a change. Only the writer calls it.
func (g *guard) open() {
	if g.waiting.Load() != 0 {
		g.openLater()
		return
	}
	publish(&g.version, g.version.Load()+1)
}

// publish stores a word behind all that was stored before it, and before all that
// is stored after it: what an atomic store does, too, but as that is also in order
// with loads, the processor waits for it.
//
//go:noescape
func publish(word *atomic.Uint64, value uint64)

// openBoth is open of one guard and then of another.
func openBoth(a, b *guard) {
	if a.waiting.Load()|b.waiting.Load() != 0 {
		a.open()
		b.open()
		return
	}
	raise(&a.version, &b.version)
}

// closeBoth is close of one guard and then of another.
func closeBoth(a, b *guard) { raise(&a.version, &b.version) }

// raise is publish of two words one behind the other, each by one more than it was.
//
//go:noescape
func raise(a, b *atomic.Uint64)

func (g *guard) openLater() {
	g.patient.Lock()
	defer g.patient.Unlock()
	publish(&g.version, g.version.Load()+1)
}

// close ends a change.
func (g *guard) close() { publish(&g.version, g.version.Load()+1) }

// look begins a reader's copying.
func (g *guard) look(r *reading) {
	if r.version = g.version.Load(); r.version&1 != 0 {
		g.await(r)
	}
}

// await waits for the end of a change, which is never far.
func (g *guard) await(r *reading) {
	for ; r.version&1 != 0; r.version = g.version.Load() {
		runtime.Gosched()
	}
}

// unchanged reports whether what the reader has read since look was of one moment.
// If not, look is called again.
func (g *guard) unchanged(r *reading) bool {
	if g.version.Load() == r.version {
		return true
	}
	g.again(r)
	return false
}

// again counts a copy that was in vain.
func (g *guard) again(r *reading) {
	if r.vain++; r.vain == patience {
		g.waiting.Add(1)
		g.patient.Lock()
	}
	g.look(r)
}

// done is unchanged at the end of the copying. When it is true the reader is done,
// otherwise it must begin anew: look has been called again.
func (g *guard) done(r *reading) bool {
	if !g.unchanged(r) {
		return false
	}
	g.quit(r)
	return true
}

// quit ends the copying of a reader who does not mind what came of it.
func (g *guard) quit(r *reading) {
	if r.vain >= patience {
		g.patient.Unlock()
		g.waiting.Add(-1)
	}
}

// reading is a reader's place at a guard, zero to begin with.
type reading struct {
	version uint64
	vain    uint32 // copies
}

// hasty is a reading of something that changes so often, and takes so long to copy,
// that most copies would be in vain: after the second, the writer is asked to wait.
func hasty() reading { return reading{vain: patience - 2} }
