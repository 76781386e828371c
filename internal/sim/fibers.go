package sim

import (
	"iter"
	"math/rand/v2"
	"time"

	"github.com/kuji-dev/kuji/internal/step"
)

// fibers is a step.Runner that runs each task as a coroutine. A task that would block yields to the
// others. So any task can stand still anywhere while the others go on.
type fibers struct {
	rng     *rand.Rand
	entropy *rand.ChaCha8
	now     int64 // Unix milliseconds
	ready   []*fiber
	current *fiber
}

type fiber struct {
	next  func() (struct{}, bool)
	yield func(struct{}) bool
}

var _ step.Runner = (*fibers)(nil)

// Go implements [step.Runner].
func (f *fibers) Go(task func()) {
	fb := &fiber{}
	fb.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		fb.yield = yield
		task()
	})
	f.ready = append(f.ready, fb)
}

// Step implements [step.Runner]: it lets others run.
func (f *fibers) Step() {
	me := f.current
	me.yield(struct{}{})
	f.current = me
}

// run runs one of the tasks until it would block or ends, and reports whether there was one.
func (f *fibers) run() bool {
	if len(f.ready) == 0 {
		return false
	}
	i := f.rng.IntN(len(f.ready))
	f.current = f.ready[i]
	if _, more := f.current.next(); !more {
		f.ready = append(f.ready[:i], f.ready[i+1:]...)
	}
	return true
}

// Every implements [step.Runner]. Nothing here needs a timer.
func (f *fibers) Every(time.Duration, func() bool) {}

// Now implements [step.Runner].
func (f *fibers) Now() time.Time { return time.UnixMilli(f.now) }

// Elapsed implements [step.Runner].
func (f *fibers) Elapsed() time.Duration { return time.Duration(f.now) * time.Millisecond }

// Entropy implements [step.Runner].
func (f *fibers) Entropy(p []byte) { f.entropy.Read(p) } // never fails
