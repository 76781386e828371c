// Package admission decides whether there is room for a connection, a request, its body, its call
// and its answer. Each caller has a share of everything that clients can make the server hold.
// Nothing here knows what a request asks for.
package admission

import (
	"container/list"
	"context"
	"fmt"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
)

// greed limits what one caller may hold: this many times what stays free. One greedy caller gets
// three quarters of a budget, two get three sevenths each, and a newcomer always finds something.
const greed = 3

// keptForOperators is the part of a budget that only operators may use: one in so many.
const keptForOperators = 16

// Budget is an amount of something that callers share. If too little is left, a caller is refused
// or waits. Callers wait for turns first and for work second, and with work they need nothing more.
// So every wait ends.
type Budget struct {
	shared bool // callers have shares; otherwise one may take everything
	total  int64
	kept   int64  // the part of total that is for operators; what they hold counts against it
	what   string // in refusals, what used counts: "calls are being answered"
	whose  string // in refusals, whose part a caller holds: "for this key"

	mu       sync.Mutex
	used     int64
	operated int64                   // of used, by operators
	held     map[access.Caller]int64 // only callers that hold something
	queue    list.List               // of *waiter, in the order of arrival
}

type waiter struct {
	who   access.Caller
	n     int64         // how much it waits for
	taken chan struct{} // closed when it has that
}

// NewBudget returns a budget whose callers wait. It keeps nothing for operators: every wait ends.
func NewBudget(total int64, shared bool) *Budget {
	return &Budget{shared: shared, total: total, held: make(map[access.Caller]int64),
		what: "calls of its kind are carried out", whose: "for this key"}
}

// NewPlaces returns a budget that refuses callers when too little is left. what is as in
// "connections are busy".
func NewPlaces(total int64, shared bool, what string) *Budget {
	b := NewBudget(total, shared)
	if b.what = what; shared {
		b.kept = total / keptForOperators
	}
	return b
}

// Take takes n for a caller, or nothing, with a refusal, if the budget or the caller's share is
// used up.
func (b *Budget) Take(who access.Caller, n int64) *connect.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := b.held[who] + n
	if !b.allows(who, held, n) {
		return b.refusal(who)
	}
	b.hold(who, held, n)
	return nil
}

// Refusal is the error of a request that would take more than is left for its caller.
func (b *Budget) Refusal(who access.Caller) *connect.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusal(who)
}

// refusal is Refusal. mu must be held.
func (b *Budget) refusal(who access.Caller) *connect.Error {
	part := ""
	if mine := b.held[who]; mine < b.used {
		part = fmt.Sprintf(", %d of them %s,", mine, b.whose)
	}
	return contract.Refused(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED,
		fmt.Errorf("%d %s%s and the limit is %d: try again later", b.used, b.what, part, b.limit(who)))
}

// limit returns the total for callers like this one.
func (b *Budget) limit(who access.Caller) int64 {
	if who.Operator {
		return b.total
	}
	return b.total - b.kept
}

// hold notes that a caller takes n and then holds that much in all. mu must be held.
func (b *Budget) hold(who access.Caller, held, n int64) {
	b.used += n
	if who.Operator {
		b.operated += n
	}
	if held > 0 {
		b.held[who] = held
	} else {
		delete(b.held, who)
	}
}

// Wait takes n for a caller as soon as that is possible. n must be at most b.Most(). If ctx ends
// first, Wait takes nothing and returns ctx's error.
func (b *Budget) Wait(ctx context.Context, who access.Caller, n int64) error {
	w := &waiter{who: who, n: n, taken: make(chan struct{})}
	b.mu.Lock()
	place := b.queue.PushBack(w)
	b.serve()
	b.mu.Unlock()
	select {
	case <-w.taken:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.taken: // just now
		return nil
	default:
	}
	b.queue.Remove(place)
	b.serve() // the next in the queue may need less
	return ctx.Err()
}

// serve gives parts to callers that wait, in the order of arrival. It skips only a caller that
// holds something and may not have more. So a caller that needs much gets it in the end. mu must be
// held.
func (b *Budget) serve() {
	var full map[access.Caller]bool // callers that are skipped
	for place := b.queue.Front(); place != nil; {
		w := place.Value.(*waiter)
		next, held := place.Next(), b.held[w.who]
		switch {
		case full[w.who]:
		case b.allows(w.who, held+w.n, w.n):
			b.hold(w.who, held+w.n, w.n)
			b.queue.Remove(place)
			close(w.taken)
		case held > 0:
			if full == nil {
				full = make(map[access.Caller]bool)
			}
			full[w.who] = true
		default:
			return
		}
		place = next
	}
}

// Most returns the most that one caller can ever take at once.
func (b *Budget) Most() int64 {
	if !b.shared {
		return b.total
	}
	return max(1, (b.total-b.kept)*greed/(greed+1))
}

// allows reports whether a caller may take n and then hold that much in all. Everybody may have
// one, if it is left, whatever the shares. mu must be held.
func (b *Budget) allows(who access.Caller, held, n int64) bool {
	left := b.total - b.used - n
	if !who.Operator {
		left -= max(0, b.kept-b.operated)
	}
	return left >= 0 && (!b.shared || held == 1 || held <= greed*left)
}

// Give takes n back from a caller.
func (b *Budget) Give(who access.Caller, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold(who, b.held[who]-n, -n)
	b.serve()
}

// Room reports whether a caller who holds nothing and is no operator could take n.
func (b *Budget) Room(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.allows(access.Caller{}, n, n)
}

// Holdings returns what all callers hold, what one holds, the total for callers like this one, and
// how many wait.
func (b *Budget) Holdings(who access.Caller) (used, mine, total int64, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.held[who], b.limit(who), b.queue.Len()
}

// Crowd is the requests without a key: for health, and those that are refused. A newcomer to a full
// crowd gets the place of the oldest request, which is cut off. Honest requests end in a moment, so
// it hits those that block the crowd, and health stays reachable.
type Crowd struct {
	mu     sync.Mutex
	Places int
	list   list.List // of *Ends, the oldest first
}

// Enter gives the request that w answers a place, until Leave is called.
func (c *Crowd) Enter(w http.ResponseWriter) *list.Element {
	c.mu.Lock()
	place := c.list.PushBack(&Ends{conn: http.NewResponseController(w)})
	var oldest *list.Element
	if c.list.Len() > c.Places {
		oldest = c.list.Front()
		c.list.Remove(oldest)
	}
	c.mu.Unlock()
	if oldest != nil {
		ends := oldest.Value.(*Ends)
		ends.StopReading()
		ends.StopWriting()
	}
	return place
}

// Leave must be called before the handler returns.
func (c *Crowd) Leave(place *list.Element) {
	place.Value.(*Ends).Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list.Remove(place) // does nothing if a newcomer has it
}

// Len returns how many requests have a place.
func (c *Crowd) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list.Len()
}
