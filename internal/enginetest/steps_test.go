package enginetest

import (
	"math/rand/v2"
	"time"

	"github.com/kuji-dev/kuji/internal/step"
)

// steps runs what an engine does in the background only when something waits
// for it, oldest first, with a clock and entropy that are the same every time.
type steps struct {
	tasks  []func()
	now    time.Time
	chaos  *rand.ChaCha8
	timers []stepTimer
	// instead, when not nil, is called by whoever waits, in the place of a task.
	instead func()
}

var _ step.Runner = (*steps)(nil)

func newSteps() *steps {
	return &steps{now: time.UnixMilli(1_800_000_000_000), chaos: rand.NewChaCha8([32]byte{1})}
}

func (s *steps) Go(task func()) { s.tasks = append(s.tasks, task) }

func (s *steps) Step() {
	if s.instead != nil {
		s.instead()
		return
	}
	task := s.tasks[0]
	s.tasks = s.tasks[1:]
	task()
}

// stepTimer is a task that waits for its time, which comes only when a test says so: see ring.
type stepTimer struct {
	at   time.Time
	task func() bool
}

func (s *steps) Every(interval time.Duration, task func() bool) {
	s.timers = append(s.timers, stepTimer{s.now.Add(interval), task})
}

// ring runs the timers whose time has come, once each, and all that follows.
func (s *steps) ring() {
	for i := 0; i < len(s.timers); i++ {
		if t := s.timers[i]; !t.at.After(s.now) {
			s.timers = append(s.timers[:i], s.timers[i+1:]...)
			i--
			t.task()
		}
	}
	s.runAll()
}

// runAll runs all tasks and those that they start.
func (s *steps) runAll() {
	for len(s.tasks) > 0 {
		s.Step()
	}
}

func (s *steps) Now() time.Time { return s.now }

func (s *steps) Elapsed() time.Duration { return time.Duration(s.now.UnixNano()) }

func (s *steps) Entropy(p []byte) { s.chaos.Read(p) } // never fails
