// Package step is the seam for whatever goes on by itself: goroutines that wait
// for work, timers, the clock and entropy. Outside tests there is no [Runner],
// and the functions here do what they are named after. A simulator is a Runner:
// it runs the log and the engine on one goroutine, a task at a time, in an
// order that it chooses, so that the same seed gives the same run.
//
// The package knows nothing of logs or rewards and imports nothing of the
// project.
package step

import (
	"context"
	"crypto/rand"
	"iter"
	"runtime"
	"time"
)

// Runner runs tasks in the place of goroutines. Its methods are called from
// one goroutine, that of the tasks; a nil Runner stands for the real thing.
type Runner interface {
	// Go takes a task to be run later, once, to its end.
	Go(task func())
	// Step runs one of the tasks taken, to its end. It is called by tasks that
	// would block: when there is none left, they would block for ever, and
	// Step panics.
	Step()
	// Every takes a task to be run at every interval until it returns false.
	Every(interval time.Duration, task func() bool)
	// Now is the time.
	Now() time.Time
	// Entropy fills p with random bytes.
	Entropy(p []byte)
}

// Go runs task on a goroutine of its own, or as a task of r.
func Go(r Runner, task func()) {
	if r == nil {
		go task()
		return
	}
	r.Go(task)
}

// Wait returns nil when done is closed, or the context's error when it ends.
func Wait(ctx context.Context, r Runner, done <-chan struct{}) error {
	if r != nil {
		for !closed(done) {
			if err := ctx.Err(); err != nil {
				return err
			}
			r.Step()
		}
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Now is the time.
func Now(r Runner) time.Time {
	if r == nil {
		return time.Now()
	}
	return r.Now()
}

// Entropy fills p with random bytes that nobody can foretell. It never fails.
func Entropy(r Runner, p []byte) {
	if r == nil {
		rand.Read(p)
		return
	}
	r.Entropy(p)
}

// Yield lets other goroutines run that can. Tasks of r run to their end.
func Yield(r Runner) {
	if r == nil {
		runtime.Gosched()
	}
}

// Ahead is seq, read on a goroutine of its own up to n values ahead of whoever uses them. With
// a runner it is seq.
func Ahead[K, V any](r Runner, n int, seq iter.Seq2[K, V]) iter.Seq2[K, V] {
	if r != nil {
		return seq
	}
	return func(yield func(K, V) bool) {
		type pair struct {
			k K
			v V
		}
		pairs, stop := make(chan pair, n), make(chan struct{})
		var panicked any
		go func() {
			defer close(pairs)
			defer func() { panicked = recover() }()
			for k, v := range seq {
				select {
				case pairs <- pair{k, v}:
				case <-stop:
					return
				}
			}
		}()
		defer func() {
			close(stop)
			for range pairs { // until the goroutine has ended
			}
			if panicked != nil {
				panic(panicked)
			}
		}()
		for p := range pairs {
			if !yield(p.k, p.v) {
				return
			}
		}
	}
}

// Sleep waits for a while. Tasks of r do not.
func Sleep(r Runner, d time.Duration) {
	if r == nil {
		time.Sleep(d)
	}
}

// Behind returns what hands values to do, in order, on a goroutine of its own that is up to n
// values behind, and what waits for the first error. After an error the rest is dropped. With a
// runner do is called at once.
func Behind[T any](r Runner, n int, do func(T) error) (hand func(T), wait func() error) {
	var failed error
	one := func(v T) {
		if failed == nil {
			failed = do(v)
		}
	}
	if r != nil {
		return one, func() error { return failed }
	}
	values, done := make(chan T, n), make(chan struct{})
	var panicked any
	go func() {
		defer close(done)
		defer func() {
			if panicked = recover(); panicked != nil {
				for range values { // so that nobody waits for room
				}
			}
		}()
		for v := range values {
			one(v)
		}
	}()
	return func(v T) { values <- v }, func() error {
		close(values)
		<-done
		if panicked != nil {
			panic(panicked)
		}
		return failed
	}
}
