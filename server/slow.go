package server

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/message"
)

const (
	// maxSlow is how many of the slowest calls are remembered.
	maxSlow = 100
	// slowAge is how long they are remembered, at least; at most twice as long.
	slowAge = 10 * time.Minute
)

// slowest remembers the slowest calls of late, in two heaps: those since it last turned, and those of
// the slowAge before. A call that is not among the slowest costs one comparison.
type slowest struct {
	floor atomic.Int64 // a call that took less is not remembered, nanoseconds
	turns atomic.Int64 // when it turns next, Unix milliseconds

	mu     sync.Mutex
	now    slowCalls
	before slowCalls
}

// slowCall is a call that took long.
type slowCall struct {
	method, realm, key, code string
	start                    time.Time
	took                     time.Duration
	received                 int64
}

// slowCalls is a heap with the fastest call first.
type slowCalls []slowCall

func (s slowCalls) Len() int           { return len(s) }
func (s slowCalls) Less(i, j int) bool { return s[i].took < s[j].took }
func (s slowCalls) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slowCalls) Push(any)          { panic("a slowest call takes the place of the fastest") }
func (s *slowCalls) Pop() any          { panic("a slowest call takes the place of the fastest") }

// wants reports whether a call would be among the slowest.
func (s *slowest) wants(start time.Time, took time.Duration) bool {
	return took > 0 && (int64(took) > s.floor.Load() || start.UnixMilli() >= s.turns.Load())
}

// note remembers a call, if it is among the slowest. It allocates nothing after the first calls.
func (s *slowest) note(c *call) {
	if !s.wants(c.start, c.took) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(c.start.Add(c.took))
	at := 0 // the fastest of the slowest
	if len(s.now) < maxSlow {
		s.now = append(s.now, slowCall{})
		at = len(s.now) - 1
	} else if c.took <= s.now[0].took {
		return
	}
	s.now[at] = slowCall{short(c.method), short(c.realm), c.key, c.label(), c.start, c.took, c.received}
	heap.Fix(&s.now, at)
	if len(s.now) == maxSlow {
		s.floor.Store(int64(s.now[0].took))
	}
}

// turn forgets what is too old. The caller holds mu.
func (s *slowest) turn(at time.Time) {
	late := time.Duration(at.UnixMilli()-s.turns.Load()) * time.Millisecond
	if late < 0 {
		return
	}
	s.before, s.now = s.now, s.before[:0]
	if late >= slowAge {
		s.before = s.before[:0]
	}
	s.turns.Store(at.Add(slowAge).UnixMilli())
	s.floor.Store(0)
}

// list returns the slowest calls, the slowest first.
func (s *slowest) list(at time.Time) []*kujiv1.SlowCall {
	s.mu.Lock()
	s.turn(at)
	all := slices.Concat(s.now, s.before)
	s.mu.Unlock()
	slices.SortStableFunc(all, func(a, b slowCall) int { return cmp.Compare(b.took, a.took) })
	return message.Each(all[:min(len(all), maxSlow)], func(c *slowCall) *kujiv1.SlowCall {
		return &kujiv1.SlowCall{
			Method: c.method, Realm: c.realm, Key: c.key, TimeUnixMs: c.start.UnixMilli(),
			TookUs: c.took.Microseconds(), Code: c.code, RequestBytes: uint64(max(0, c.received)),
		}
	})
}

// ListSlow returns the slowest calls of late.
func (h admin) ListSlow(context.Context, *kujiv1.ListSlowRequest) (*kujiv1.ListSlowResponse, error) {
	return &kujiv1.ListSlowResponse{Calls: h.slowest.list(time.Now())}, nil
}
