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
	Calls    *Budget // one for each call being answered. Some calls take one of these as well:
	Streams  *Budget // streams of draws
	Feeds    *Budget // streams of events, and backups
	Reads    *Budget // a stream of events while it reads old ones; it waits for that
	Bulk     *Budget // Atomic, Batch and all others that can be large; they wait
	Catalogs *Budget // ApplyCatalog; they wait
	History  *Budget // reads of the history, and ListCatalogs; they wait
	Odds     *Budget // GetOdds; they wait
	Trials   *Budget // Simulate; they wait
	Work     *Budget // bytes: what results and answers take; calls wait

	Tokens *Budget // one for each stranger's token that waits or is checked; callers are addresses
	Checks *Budget // one for each that is checked; they wait

	Conns *Conns
	Crowd Crowd // requests without a key
	Rates *Rates

	HeaderTimeout time.Duration // for a client to send a header, or the rest of a refused request
	ReadTimeout   time.Duration // for a client to send a request
}

// Enter counts a request with a key against its rate, and takes a busy connection and RequestCost
// of memory, or neither if it refuses the request. Leave gives these two back.
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
// pool. So a call takes the memory of its results and its answer once, before it is carried out,
// until the answer is sent. It never waits for more while it holds some, so every wait ends.

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
