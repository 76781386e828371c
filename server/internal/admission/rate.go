package server

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// maxRate is the highest rate of a key.
const maxRate = 1_000_000

// rates bounds how often callers ask. Each may ask for as much as its rate in a second at once, and
// then goes on at its rate. A batch may be larger: whoever asks for one waits the longer after it.
type rates struct {
	now func() time.Time

	mu    sync.Mutex
	all   map[caller]*bucket
	sweep int // how many there may be before those who owe nothing are forgotten
}

// bucket is when a caller has paid for everything so far.
type bucket struct {
	paid time.Time
	rate int
}

// leastSweep is how many callers are remembered at least.
const leastSweep = 4096

func newRates() *rates {
	return &rates{now: time.Now, all: map[caller]*bucket{}, sweep: leastSweep}
}

// take counts one for a caller, if they may ask now. Otherwise it returns how long they must wait.
func (r *rates) take(a *access) (wait time.Duration) {
	if a.rate == 0 {
		return 0
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.all[a.who]
	if b == nil {
		r.forget(now)
		b = &bucket{}
		r.all[a.who] = b
	}
	b.rate = a.rate
	if wait := b.paid.Add(time.Second / time.Duration(b.rate)).Sub(now); wait > 0 {
		return wait
	}
	r.add(b, now, 1)
	return 0
}

// owe counts n more for a caller who was let in.
func (r *rates) owe(a *access, n int) {
	if a.rate == 0 || n <= 0 {
		return
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.all[a.who]; b != nil {
		r.add(b, now, n)
	}
}

// add counts n. A caller who asked for nothing in the last second has a second's worth.
func (r *rates) add(b *bucket, now time.Time, n int) {
	if least := now.Add(-time.Second); b.paid.Before(least) {
		b.paid = least
	}
	b.paid = b.paid.Add(time.Duration(n) * time.Second / time.Duration(b.rate))
}

// forget makes room: it drops callers who have a second's worth, as one who is new.
func (r *rates) forget(now time.Time) {
	if len(r.all) < r.sweep {
		return
	}
	least := now.Add(-time.Second)
	for who, b := range r.all {
		if !b.paid.After(least) {
			delete(r.all, who)
		}
	}
	r.sweep = max(leastSweep, 2*len(r.all))
}

// commandsIn returns how many commands a request asks for; a read is one.
func commandsIn(m proto.Message) int {
	switch m := m.(type) {
	case *kujiv1.AtomicRequest:
		return len(m.GetMembers())
	case *kujiv1.BatchRequest:
		n := 0
		for _, c := range m.GetCommands() {
			n += max(1, len(c.GetAtomic().GetMembers()))
		}
		return n
	case *kujiv1.StreamDrawsRequest:
		return max(len(m.GetPlayers()), len(m.GetPlayerIndexes()))
	}
	return 1
}

// checkRate counts one for a caller. Who asks too often must wait.
func (s *Server) checkRate(a *access) *connect.Error {
	wait := s.rates.take(a)
	if wait <= 0 {
		return nil
	}
	ce := refused(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED,
		fmt.Errorf("more than %d commands a second: try again in %v", a.rate, wait.Round(time.Millisecond)))
	ce.Meta().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	return ce
}
