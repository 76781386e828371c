package sim

import (
	"math/rand/v2"
	"time"

	"github.com/kuji-dev/kuji/internal/step"
)

// runner is the step.Runner of one life of the engine. Goroutines and timers are tasks that wait
// here until the schedule runs them.
type runner struct {
	w      *world
	tasks  []func()
	timers []*timer

	owner *session // the realm that runs or is being opened, if known
}

type timer struct {
	owner    *session // whose log it fsyncs; nil: none that is watched
	interval time.Duration
	next     int64 // in the world's milliseconds
	queued   bool
	task     func() bool
}

var _ step.Runner = (*runner)(nil)

// Go implements [step.Runner].
func (r *runner) Go(task func()) {
	owner := r.owner // the task's, and that of all that it starts
	r.tasks = append(r.tasks, func() {
		before := r.owner
		r.owner = owner
		task()
		r.owner = before
	})
}

// Step implements [step.Runner].
func (r *runner) Step() {
	if len(r.tasks) == 0 {
		panic(stuck{})
	}
	i := r.w.schedule.IntN(len(r.tasks))
	task := r.tasks[i]
	r.tasks = append(r.tasks[:i], r.tasks[i+1:]...)
	task()
}

// stuck is what Step panics with: a task waits for something that can never happen.
type stuck struct{}

func (stuck) String() string { return "the engine waits for something that nothing will do" }

// Every implements [step.Runner].
func (r *runner) Every(interval time.Duration, task func() bool) {
	r.timers = append(r.timers, &timer{owner: r.owner, interval: interval, next: r.w.truth + interval.Milliseconds(), task: task})
}

// ring queues the timers that are due.
func (r *runner) ring() {
	for _, t := range r.timers {
		if t.queued || t.next > r.w.truth {
			continue
		}
		t.queued = true
		r.Go(func() {
			synced := t.owner.acknowledged()
			t.queued = !t.task() // it never runs again once it is done
			if !t.queued {
				t.owner.keeps(synced)
			}
			t.next = r.w.truth + t.interval.Milliseconds()
		})
	}
}

// Now implements [step.Runner].
func (r *runner) Now() time.Time { return time.UnixMilli(r.w.clock) }

// Elapsed implements [step.Runner].
func (r *runner) Elapsed() time.Duration { return time.Duration(r.w.truth) * time.Millisecond }

// Entropy implements [step.Runner].
func (r *runner) Entropy(p []byte) {
	r.w.entropy.Read(p) // never fails
}

// stream returns a source for one purpose. So leaving out one fault does not change the others.
func stream(seed uint64, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, purpose))
}
