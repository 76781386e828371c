package ledger

import (
	"sync"
	"sync/atomic"

	"github.com/kuji-dev/kuji/internal/step"
)

// handoff is the realm's lock, as the flusher takes it. Under load, callers hold it nearly all the time, each for a
// microsecond. A flusher that sleeps must be woken by a system call, and often finds the lock taken again. So the
// flusher leaves its step to the goroutine that has the lock, which does it before it unlocks.
type handoff struct {
	mu     *sync.Mutex
	runner step.Runner
	wanted atomic.Pointer[task] // what the flusher waits for; nil: nothing
}

type task struct {
	do   func()
	done atomic.Bool
}

// locked has something done under the lock, by whom does not matter. t is the flusher's.
func (h *handoff) locked(t *task, do func()) {
	if h.mu.TryLock() {
		defer h.mu.Unlock()
		do()
		return
	}
	t.do = do
	t.done.Store(false)
	h.wanted.Store(t)
	for range 64 {
		if t.done.Load() {
			return
		}
		step.Yield(h.runner)
	}
	h.mu.Lock() // they may have been at it for long, or have left already
	defer h.mu.Unlock()
	h.Help()
}

// Help does what the flusher waits for, if it waits. Call it before you unlock.
func (h *handoff) Help() {
	t := h.wanted.Load()
	if t == nil {
		return
	}
	h.wanted.Store(nil)
	defer t.done.Store(true)
	t.do()
}
