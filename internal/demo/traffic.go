package demo

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/client"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// attraction is one realm of the demo: an example catalog, the pool that
// players draw from, and how they go about it.
type attraction struct {
	realm   string
	file    string // in package examples
	pool    string
	clients int
	behave  func(ctx context.Context, w *worker) error
	yaml    []byte
	catalog *catalog.Catalog
}

func attractions(clients int) []*attraction {
	return []*attraction{
		{realm: "banner", file: "gacha-banner.yaml", pool: "banner", clients: max(1, clients*3/4), behave: pullBanner},
		{realm: "splash", file: "instant-win.yaml", pool: "splash", clients: max(1, clients/4-1), behave: tryLuck},
		{realm: "raffle", file: "box-raffle.yaml", pool: "box", clients: 1, behave: emptyBox},
	}
}

// prices returns what one draw from the pool costs, one of them. nil: nothing.
func (at *attraction) prices() (all [][]*kujiv1.Stack) {
	for _, p := range at.catalog.Pools {
		if p.ID != at.pool {
			continue
		}
		for _, price := range p.Price {
			all = append(all, stacksOf(price))
		}
	}
	return all
}

func stacksOf(stacks []catalog.Stack) []*kujiv1.Stack {
	out := make([]*kujiv1.Stack, len(stacks))
	for i, s := range stacks {
		out[i] = &kujiv1.Stack{Item: s.Item, Quantity: s.Quantity}
	}
	return out
}

// traffic is what all workers share.
type traffic struct {
	nodes     []string // URLs of one server, or of the nodes of a cluster
	transport http.RoundTripper
	deadline  time.Time
	length    time.Duration // from the start to deadline
	draws     atomic.Int64  // acknowledged so far
	crashing  atomic.Bool   // set before the server is killed
}

// client returns a client that begins at one of the nodes.
func (t *traffic) client(number int, retry func(error)) (*client.Client, error) {
	number %= len(t.nodes)
	return client.New(slices.Concat(t.nodes[number:], t.nodes[:number]), client.Options{Transport: t.transport, Timeout: patience, Retry: retry})
}

func (t *traffic) over() bool { return !time.Now().Before(t.deadline) }

// worker is one client: it sends one command at a time, repeats it with the
// same id until it knows the outcome, and keeps its own book.
type worker struct {
	*traffic
	*ledger
	at     *attraction
	number int
	client *client.Client
	again  bool // the command in hand was sent again
	start  []*kujiv1.Stack
	prices [][]*kujiv1.Stack
	// What became of requests whose first answer was lost.
	interrupted, happened int
	longest               time.Duration // the longest that one of those took
}

func newWorker(t *traffic, at *attraction, number int) (w *worker, err error) {
	w = &worker{traffic: t, ledger: newLedger(at.realm, at.catalog.Pools), at: at, number: number}
	w.start, w.prices = stacksOf(at.catalog.Start), at.prices()
	w.client, err = t.client(number, func(error) { w.again = true })
	return w, err
}

func (w *worker) draw(ctx context.Context, player string) (*kujiv1.Result, error) {
	id := client.NewID()
	req := &kujiv1.DrawRequest{Realm: w.at.realm, RequestId: id, Player: player, Pool: w.at.pool, Count: 1}
	resp, err := exchange(ctx, w, w.client.Draw, req)
	if err != nil {
		return nil, err
	}
	result := resp.GetResult()
	w.draws.Add(int64(len(result.GetOutcomes())))
	return result, w.book(player, result, &kujiv1.Command{RequestId: id, Command: &kujiv1.Command_Draw{
		Draw: &kujiv1.Draw{Player: player, Pool: w.at.pool, Count: 1},
	}})
}

func (w *worker) grant(ctx context.Context, player string, items []*kujiv1.Stack) error {
	id := client.NewID()
	req := &kujiv1.GrantRequest{Realm: w.at.realm, RequestId: id, Player: player, Items: items}
	resp, err := exchange(ctx, w, w.client.Grant, req)
	if err != nil {
		return err
	}
	result := resp.GetResult()
	return w.book(player, result, &kujiv1.Command{RequestId: id, Command: &kujiv1.Command_Grant{
		Grant: &kujiv1.Grant{Player: player, Items: items},
	}})
}

func (w *worker) book(player string, result *kujiv1.Result, cmd *kujiv1.Command) error {
	if result.GetStatus() == kujiv1.Status_STATUS_OK {
		w.meet(player, w.start) // a refused command changes nothing: it makes no player known
	}
	if !w.crashing.Load() {
		w.beforeCrash = max(w.beforeCrash, result.GetReceipt().GetPosition())
	}
	return w.acknowledge(cmd, result, w.prices)
}

// exchange sends one command until its outcome is known, and measures it.
func exchange[Req any, Resp interface{ GetResult() *kujiv1.Result }](ctx context.Context, w *worker, rpc func(context.Context, *Req) (Resp, error), msg *Req) (Resp, error) {
	w.again = false
	begin := time.Now()
	resp, err := rpc(ctx, msg)
	took := time.Since(begin)
	if !w.again {
		w.latencies = append(w.latencies, float64(took)/float64(time.Millisecond))
		return resp, err
	}
	w.interrupted++
	w.longest = max(w.longest, took)
	// A repetition that the server had seen before says so in its result.
	if err == nil && resp.GetResult().GetReplayed() {
		w.happened++
	}
	return resp, err
}

// pullBanner: players who draw as long as their currency lasts and then buy more.
func pullBanner(ctx context.Context, w *worker) error {
	const players = 8
	for n := 0; !w.over(); n++ {
		player := fmt.Sprintf("puller-%d-%d", w.number, n%players)
		result, err := w.draw(ctx, player)
		if err != nil {
			return err
		}
		switch result.GetStatus() {
		case kujiv1.Status_STATUS_OK:
		case kujiv1.Status_STATUS_INSUFFICIENT_ITEMS:
			price := w.prices[0]
			purchase := make([]*kujiv1.Stack, len(price))
			for i, s := range price {
				purchase[i] = &kujiv1.Stack{Item: s.GetItem(), Quantity: 50 * s.GetQuantity()}
			}
			if err := w.grant(ctx, player, purchase); err != nil {
				return err
			}
		default:
			return unexpected(w, result)
		}
	}
	return nil
}

// tryLuck: a crowd with one try each; some try twice and are refused.
func tryLuck(ctx context.Context, w *worker) error {
	for n := 0; !w.over(); n++ {
		player := fmt.Sprintf("guest-%d-%d", w.number, n-n%16/15) // the last of 16 is the one before it
		result, err := w.draw(ctx, player)
		if err != nil {
			return err
		}
		switch result.GetStatus() {
		case kujiv1.Status_STATUS_OK, kujiv1.Status_STATUS_LIMIT_REACHED:
		default:
			return unexpected(w, result)
		}
	}
	return nil
}

// emptyBox: one ticket after the other, at a pace that spreads the box over
// the whole run, crash included, and then on until it is sold out.
func emptyBox(ctx context.Context, w *worker) error {
	const tickets = 100
	pace := time.NewTicker(w.length / (tickets + 10))
	defer pace.Stop()
	for n := 0; n <= 10*tickets; n++ {
		if !w.over() {
			select {
			case <-pace.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		result, err := w.draw(ctx, fmt.Sprintf("regular-%d", n/2)) // the start is enough for two tickets
		if err != nil {
			return err
		}
		switch result.GetStatus() {
		case kujiv1.Status_STATUS_OK:
		case kujiv1.Status_STATUS_SOLD_OUT:
			return nil
		default:
			return unexpected(w, result)
		}
	}
	return brokenf("pool %s gave %d tickets and is not sold out", w.at.pool, 10*tickets)
}

// unexpected is a status that no player of this demo can get: something
// acknowledged is gone.
func unexpected(w *worker, result *kujiv1.Result) error {
	return brokenf("draw from %s: unexpected status %s, subject %q", w.at.pool, contract.Word(result.GetStatus()), result.GetSubject())
}
