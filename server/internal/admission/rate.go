package admission

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
)

// Rates limits how often callers ask. A caller may ask for one second's worth at once, and then at
// its rate. A batch may be larger than that: the caller then waits longer before the next request.
type Rates struct {
	Now func() time.Time

	mu    sync.Mutex
	all   map[access.Caller]*bucket
	sweep int // at this many callers, those that owe nothing are dropped
}

// bucket is the time at which a caller has paid for all requests so far.
type bucket struct {
	paid time.Time
	rate int
}

// leastSweep is the number of callers that are remembered in any case.
const leastSweep = 4096

func NewRates() *Rates {
	return &Rates{Now: time.Now, all: map[access.Caller]*bucket{}, sweep: leastSweep}
}

// Take counts one request of a caller that may ask now. Otherwise it returns how long to wait.
func (r *Rates) Take(a *access.Access) (wait time.Duration) {
	if a.Rate == 0 {
		return 0
	}
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.all[a.Who]
	if b == nil {
		r.forget(now)
		b = &bucket{}
		r.all[a.Who] = b
	}
	b.rate = a.Rate
	if wait := b.paid.Add(time.Second / time.Duration(b.rate)).Sub(now); wait > 0 {
		return wait
	}
	r.add(b, now, 1)
	return 0
}

// Owe counts n more for a caller that Take let in.
func (r *Rates) Owe(a *access.Access, n int) {
	if a.Rate == 0 || n <= 0 {
		return
	}
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.all[a.Who]; b != nil {
		r.add(b, now, n)
	}
}

// add counts n. A caller that asked for nothing in the last second has a second's worth.
func (r *Rates) add(b *bucket, now time.Time, n int) {
	if least := now.Add(-time.Second); b.paid.Before(least) {
		b.paid = least
	}
	b.paid = b.paid.Add(time.Duration(n) * time.Second / time.Duration(b.rate))
}

// forget drops callers that have a full second's worth, like a new one.
func (r *Rates) forget(now time.Time) {
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

// Check counts one request of a caller, or refuses it because the caller asks too often.
func (r *Rates) Check(a *access.Access) *connect.Error {
	wait := r.Take(a)
	if wait <= 0 {
		return nil
	}
	ce := contract.Refused(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED,
		fmt.Errorf("more than %d commands a second: try again in %v", a.Rate, wait.Round(time.Millisecond)))
	ce.Meta().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	return ce
}
