package ledger

import (
	"sync"
	"sync/atomic"

	"github.com/kuji-dev/kuji/internal/step"
)

// handoff is a lock that others hold nearly all the time under load, each for a microsecond. If the flusher slept
// until it is free, whoever unlocks would wake it by a system call, often in vain. So if somebody has the lock,
// they do what the flusher would do under it.
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
