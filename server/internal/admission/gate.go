package admission

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/server/access"
)

// Gate is the budgets of a server. A request takes a part of several, as the comments say.
type Gate struct {
	Memory   *Budget // bytes: RequestCost for each request with a key, and its body
	Calls    *Budget // one for each call being answered
	Streams  *Budget // and one of these for each stream of draws
	Feeds    *Budget // or one of these, of events
	Reads    *Budget // and one of these while it reads old events; they wait
	Bulk     *Budget // and one of these for each Atomic or Batch; they wait
	Catalogs *Budget // or this one, for ApplyCatalog; they wait
	History  *Budget // or one of these, for reads of the history; they wait
	Odds     *Budget // or one of these, for GetOdds; they wait
	Work     *Budget // bytes: what results and answers take; calls wait

	Tokens *Budget // one for each stranger's token that waits or is checked; callers are addresses
	Checks *Budget // and one of these while it is checked; they wait

	Conns *Conns
	Crowd Crowd // requests without a key
	Rates *Rates

	HeaderTimeout time.Duration // that a client has to send a header, or the rest of what is refused
	ReadTimeout   time.Duration // that a client has to send a request
}

// Enter counts a request with a key: it takes a part of the key's rate, a busy connection and
// RequestCost of memory, or nothing if it refuses the request. Leave gives them back.
func (g *Gate) Enter(c *Conn, a *access.Access) *connect.Error {
	if refusal := g.Rates.Check(a); refusal != nil {
		return refusal
	}
	if refusal := g.Conns.Begin(c, a.Who); refusal != nil {
		return refusal
	}
	refusal := g.Memory.Take(a.Who, RequestCost)
	if refusal != nil {
		g.Conns.End(c)
	}
	return refusal
}

// Leave gives back what Enter took.
func (g *Gate) Leave(c *Conn, who access.Caller) {
	g.Memory.Give(who, RequestCost)
	g.Conns.End(c)
}

// Busy reports whether a caller who holds nothing would be refused.
func (g *Gate) Busy() bool {
	return !g.Calls.Room(1) || !g.Memory.Room(RequestCost) || !g.Conns.Busy.Room(1)
}

// A small request can ask for much: 50 bytes for a thousand outcomes, or ten thousand entries of a
// pool. So a call takes the memory of its results and its answer before it is carried out, once,
// and gives it back when the answer is sent. Then it needs nothing more to end, so every wait ends.

// SmallWork is what each call may take outside the budget, in bytes. The number of calls bounds it.
const SmallWork = 64 << 10

// TakeWork waits until n bytes, or the most that a caller can have, are left for a caller, and
// takes them. It returns what GiveWork must give back. The error is ctx's.
func (g *Gate) TakeWork(ctx context.Context, who access.Caller, n int64) (taken int64, err error) {
	if n <= SmallWork {
		return 0, nil
	}
	n = min(n, g.Work.Most())
	if err := g.Work.Wait(ctx, who, n); err != nil {
		return 0, err
	}
	return n, nil
}

// GiveWork gives back what TakeWork took.
func (g *Gate) GiveWork(who access.Caller, taken int64) {
	if taken > 0 {
		g.Work.Give(who, taken)
	}
}
