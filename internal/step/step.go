// Package step is the seam for everything that happens in the background: goroutines, timers, the
// clock and entropy. Outside tests there is no [Runner], and the functions here do what their names
// say. A simulator is a Runner: it runs the log and the engine on one goroutine, one task at a
// time, in an order that it chooses, so that the same seed gives the same run.
//
// This package knows nothing of logs or rewards and imports nothing of the project.
package step

import (
	"context"
	"crypto/rand"
	"iter"
	"runtime"
	"time"
)

// Runner runs tasks in place of goroutines. Its methods are called from one goroutine, the one that
// runs the tasks. A nil Runner stands for real goroutines, timers and entropy.
type Runner interface {
	// Go queues a task. It runs later, once, to its end.
	Go(task func())
	// Step runs one queued task to its end. Tasks that would block call it. If no task is queued,
	// they would block for ever, and Step panics.
	Step()
	// Every runs a task at every interval until it returns false.
	Every(interval time.Duration, task func() bool)
	// Now returns the time.
	Now() time.Time
	// Elapsed returns the time since some moment, by a clock that nobody sets.
	Elapsed() time.Duration
	// Entropy fills p with random bytes.
	Entropy(p []byte)
}

// Go runs task on its own goroutine, or as a task of r.
func Go(r Runner, task func()) {
	if r == nil {
		go task()
		return
	}
	r.Go(task)
}

// Wait returns nil once done is closed, or the context's error if that ends first.
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

// Pause waits for a time, or until the context ends. It is for rooms that no [Runner] runs.
func Pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Now returns the time.
func Now(r Runner) time.Time {
	if r == nil {
		return time.Now()
	}
	return r.Now()
}

// Elapsed returns the time from one time to another by a clock that nobody sets, if both were read
// from the machine's clock; otherwise the difference. With a Runner, it returns the Runner's
// Elapsed for any two times: take differences.
func Elapsed(r Runner, from, to time.Time) time.Duration {
	if r == nil {
		return to.Sub(from) // by their monotonic readings
	}
	return r.Elapsed()
}

// Entropy fills p with random bytes that nobody can predict. It never fails.
func Entropy(r Runner, p []byte) {
	if r == nil {
		rand.Read(p)
		return
	}
	r.Entropy(p)
}

// After runs task once, after a time, on its own goroutine. stop keeps it from running, unless it runs
// already or has run: then it returns false.
func After(r Runner, d time.Duration, task func()) (stop func() bool) {
	if r == nil {
		return time.AfterFunc(d, task).Stop
	}
	over := false // it has run, or must not
	r.Every(d, func() bool {
		if !over {
			over = true
			task()
		}
		return false
	})
	return func() bool {
		stopped := !over
		over = true
		return stopped
	}
}

// Yield lets other goroutines run. With a Runner it does nothing: tasks run to their end.
func Yield(r Runner) {
	if r == nil {
		runtime.Gosched()
	}
}

// Ahead returns seq, read on its own goroutine up to n values ahead, but with a Runner seq itself.
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
		wait := start(func() {
			defer close(pairs)
			for k, v := range seq {
				select {
				case pairs <- pair{k, v}:
				case <-stop:
					return
				}
			}
		})
		defer wait()
		defer close(stop)
		for p := range pairs {
			if !yield(p.k, p.v) {
				return
			}
		}
	}
}

// start runs task on its own goroutine. wait waits until it has ended, and passes a panic on.
func start(task func()) (wait func()) {
	done := make(chan struct{})
	var panicked any
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		task()
	}()
	return func() {
		<-done
		if panicked != nil {
			panic(panicked)
		}
	}
}

// Sleep pauses for d. With a Runner it does nothing.
func Sleep(r Runner, d time.Duration) {
	if r == nil {
		time.Sleep(d)
	}
}

// Behind runs do for values on its own goroutine, in order, up to n values behind. It returns hand,
// which passes a value on, and wait, which waits until all are done and returns the first error.
// After an error the remaining values are dropped. With a Runner, hand calls do at once.
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
	values := make(chan T, n)
	ended := start(func() {
		defer func() {
			for range values { // after a panic, so that nobody waits for room
			}
		}()
		for v := range values {
			one(v)
		}
	})
	return func(v T) { values <- v }, func() error {
		close(values)
		ended()
		return failed
	}
}
