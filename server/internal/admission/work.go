package admission

import (
	"context"

	"github.com/kuji-dev/kuji/server/access"
)

// A small request can ask for much: 50 bytes can ask for a thousand outcomes, or for ten thousand
// entries of a pool. So a call takes the memory of its results and its answer from a budget before
// it is carried out, and gives it back when the answer is sent.
//
// A call takes once. Then it needs nothing more to end, so every wait ends.

// SmallWork is what each call may take outside the budget, in bytes. The number of calls bounds it.
const SmallWork = 64 << 10

// TakeWork waits until n bytes are left for a caller, and takes them. If n is more than a caller
// can have, it takes the most. It returns what GiveWork must give back. The error is ctx's.
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
