package admission

import (
	"context"

	"github.com/kuji-dev/kuji/server/access"
)

// A small request can ask for much: one of 50 bytes for a thousand outcomes, or for ten thousand
// entries of a pool. So a call takes what its results and its answer need from a budget of bytes
// before it is carried out, and gives it back when the answer is sent.
//
// A call takes once. Whoever has taken needs nothing more to end, so nobody waits for ever.

// SmallWork is what a call can take in addition to the budget, in bytes: Limits.InFlight bounds how
// many do.
const SmallWork = 64 << 10

// TakeWork waits until n bytes are left for a caller, and takes them. More than there can be is as
// much as there can be. It returns what is to be given back. The error is ctx's.
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
