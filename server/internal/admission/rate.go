package admission

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
)

// Rates limits how often callers ask: one second's worth at once, and then at their rate. A batch
// may be larger: its caller waits longer before the next request.
type Rates struct {
	Now func() time.Time

	mu    sync.Mutex
	all   map[access.Caller]*rate.Limiter
	sweep int // at this many callers, those that owe nothing are dropped
}

// leastSweep is the number of callers that are remembered in any case.
const leastSweep = 4096

func NewRates() *Rates {
	return &Rates{Now: time.Now, all: map[access.Caller]*rate.Limiter{}, sweep: leastSweep}
}

// Take counts one request of a caller that may ask now. Otherwise it returns how long to wait.
func (r *Rates) Take(a *access.Access) (wait time.Duration) {
	if a.Rate == 0 {
		return 0
	}
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.all[a.Who]
	if l == nil {
		r.forget(now)
		l = rate.NewLimiter(rate.Limit(a.Rate), a.Rate)
		r.all[a.Who] = l
	}
	if l.Burst() != a.Rate { // the key file was read again
		l.SetLimitAt(now, rate.Limit(a.Rate))
		l.SetBurstAt(now, a.Rate)
	}
	one := l.ReserveN(now, 1)
	if wait = one.DelayFrom(now); wait > 0 {
		one.CancelAt(now)
	}
	return wait
}

// Owe counts n more for a caller that Take let in.
func (r *Rates) Owe(a *access.Access, n int) {
	if a.Rate == 0 || n <= 0 {
		return
	}
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := r.all[a.Who]; l != nil && n > 0; n -= l.Burst() {
		l.ReserveN(now, min(n, l.Burst())) // it takes no more at once
	}
}

// forget drops callers that have a full second's worth, like a new one.
func (r *Rates) forget(now time.Time) {
	if len(r.all) < r.sweep {
		return
	}
	maps.DeleteFunc(r.all, func(_ access.Caller, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(l.Burst()) })
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
