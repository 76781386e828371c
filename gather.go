package kuji

import "time"

const (
	// gatherTime is how long callbacks wait for others at most, where they are answered
	// without an fsync: each batch costs who submits a system call that wakes the
	// flusher, and a processor that the two may share.
	gatherTime = time.Millisecond
	// gatherBytes and gatherCallbacks are as many as do not wait any longer: a thousand
	// small events, or answers that are none.
	gatherBytes, gatherCallbacks = 8 << 10, 1 << 10
	// The flusher gathers behind a batch of gatherFrom events, as many as come while one
	// is written.
	gatherFrom = 8
	// gatherRest bounds how many batches are not waited for after one that was waited for
	// in vain: half a second's or so.
	gatherRest = 1 << 16
)

// gathering is how the flusher lets callbacks wait for others. Who submits without end has
// an open batch filled long before gatherTime has passed. Who submits more when some of what was
// submitted is answered has not, however much that is: such a wait is in vain, and each
// that is behind another makes the flusher wait for none for twice as long.
type gathering struct {
	on   bool        // the next batch is waited for
	late bool        // gatherTime has passed
	vain int         // how many batches were not waited for the last time
	rest int         // how many are not waited for from now on
	time *time.Timer // sets late; the flusher's alone
}

// mayGather reports whether the flusher, which has written b, may let the next batch wait
// for more: nobody waits for b but callbacks, and many of them. The caller holds mu.
func (r *Realm) mayGather(b *batch) bool {
	if r.gathering.rest > 0 {
		r.gathering.rest--
		return false
	}
	return b.done == nil && b.events >= gatherFrom && r.o.Sync != SyncAlways && r.o.Steps == nil
}

// gather waits until the open batch is large, or somebody waits for it, or for
// gatherTime. The caller, who is the flusher, holds mu.
func (r *Realm) gather() {
	g := &r.gathering
	g.late = false
	if g.time == nil {
		g.time = time.AfterFunc(gatherTime, func() {
			r.mu.Lock()
			g.late = true // or that of the next time, which is then short
			r.wake.Signal()
			r.mu.Unlock()
		})
	} else {
		g.time.Reset(gatherTime)
	}
	for r.enough = gatherBytes; r.mayGrow(); {
		r.wake.Wait()
	}
	g.time.Stop()
	r.enough = 0
	switch {
	case r.open.large():
		g.vain = 0
	case g.late:
		g.vain = min(2*g.vain+1, gatherRest)
		g.rest = g.vain
	}
}

// mayGrow reports whether the open batch is to be waited for any longer. The caller holds mu.
func (r *Realm) mayGrow() bool {
	return !r.open.large() && r.open.done == nil && !r.gathering.late && r.snap.pending == nil && !r.closing && r.err == nil
}

// large reports whether a batch is not to be waited for any longer.
func (b *batch) large() bool { return len(b.buf) >= gatherBytes || len(b.pending) >= gatherCallbacks }
