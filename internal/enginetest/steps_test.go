package enginetest

import (
	"math/rand/v2"
	"time"

	"github.com/kuji-dev/kuji/internal/step"
)

// steps runs what an engine does in the background only when something waits
// for it, oldest first, with a clock and entropy that are the same every time.
type steps struct {
	tasks []func()
	now   time.Time
	chaos *rand.ChaCha8
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

func (s *steps) Every(time.Duration, func() bool) {} // time stands still but for the test

func (s *steps) Now() time.Time { return s.now }

func (s *steps) Elapsed() time.Duration { return time.Duration(s.now.UnixNano()) }

func (s *steps) Entropy(p []byte) { s.chaos.Read(p) } // never fails
