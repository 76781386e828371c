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

// attraction is one realm of the demo: an example catalog, its pool, and how players draw from it.
type attraction struct {
	realm   string
	file    string // in package examples
	pool    string
	clients int
	behave  func(ctx context.Context, w *worker) error
	catalog *catalog.Catalog
	book    *book
	client  *client.Client // for the checks
}

func attractions(clients int) []*attraction {
	return []*attraction{
		{realm: "banner", file: "gacha-banner.yaml", pool: "banner", clients: max(1, clients*3/4), behave: pullBanner},
		{realm: "splash", file: "instant-win.yaml", pool: "splash", clients: max(1, clients/4-1), behave: tryLuck},
		{realm: "raffle", file: "box-raffle.yaml", pool: "box", clients: 1, behave: emptyBox},
	}
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

// worker is one client: it sends a command, repeats it under its id until it knows the outcome, and books it.
type worker struct {
	*traffic
	at     *attraction
	number int
	client *client.Client
	again  bool // the command in hand was sent again
}

func newWorker(t *traffic, at *attraction, number int) (w *worker, err error) {
	w = &worker{traffic: t, at: at, number: number}
	w.client, err = t.client(number, func(error) { w.again = true })
	return w, err
}

// draw draws once for a player. A status that is not expected says that something acknowledged is gone.
func (w *worker) draw(ctx context.Context, player string, expected ...kujiv1.Status) (kujiv1.Status, error) {
	draw := &kujiv1.Draw{Player: player, Pool: w.at.pool, Count: 1}
	req := &kujiv1.DrawRequest{Realm: w.at.realm, RequestId: client.NewID(), Player: player, Pool: w.at.pool, Count: 1}
	result, err := exchange(ctx, w, w.client.Draw, req, contract.AsCommand(req.RequestId, draw))
	if err == nil && !slices.Contains(expected, result.GetStatus()) {
		err = brokenf("draw from %s: unexpected status %s, subject %q", w.at.pool, contract.Word(result.GetStatus()), result.GetSubject())
	}
	return result.GetStatus(), err
}

func (w *worker) grant(ctx context.Context, player string, items []*kujiv1.Stack) error {
	req := &kujiv1.GrantRequest{Realm: w.at.realm, RequestId: client.NewID(), Player: player, Items: items}
	_, err := exchange(ctx, w, w.client.Grant, req, contract.AsCommand(req.RequestId, &kujiv1.Grant{Player: player, Items: items}))
	return err
}

// exchange sends one command until its outcome is known, and books it. The command is what req asks for.
func exchange[Req any, Resp interface{ GetResult() *kujiv1.Result }](
	ctx context.Context, w *worker, rpc func(context.Context, *Req) (Resp, error), req *Req, command *kujiv1.Command,
) (*kujiv1.Result, error) {
	w.again = false
	begin := time.Now()
	resp, err := rpc(ctx, req)
	if err != nil {
		return nil, err
	}
	result, took, b := resp.GetResult(), time.Since(begin), w.at.book
	w.draws.Add(int64(len(result.GetOutcomes())))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took(took, w.again, result)
	if !w.crashing.Load() {
		b.beforeCrash = max(b.beforeCrash, result.GetReceipt().GetPosition())
	}
	return result, b.acknowledge(command, result)
}

const (
	ok      = kujiv1.Status_STATUS_OK
	soldOut = kujiv1.Status_STATUS_SOLD_OUT
	limited = kujiv1.Status_STATUS_LIMIT_REACHED
	tooPoor = kujiv1.Status_STATUS_INSUFFICIENT_ITEMS
)

// pullBanner: players draw as long as their currency lasts, and then buy more.
func pullBanner(ctx context.Context, w *worker) error {
	const players = 8
	at := slices.IndexFunc(w.at.catalog.Pools, func(p catalog.Pool) bool { return p.ID == w.at.pool })
	purchase := stacksOf(w.at.catalog.Pools[at].Price[0])
	for _, s := range purchase {
		s.Quantity *= 50
	}
	for n := 0; !w.over(); n++ {
		player := fmt.Sprintf("puller-%d-%d", w.number, n%players)
		status, err := w.draw(ctx, player, ok, tooPoor)
		if err == nil && status == tooPoor {
			err = w.grant(ctx, player, purchase)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tryLuck: a crowd has one try each. Some try twice, and are refused.
func tryLuck(ctx context.Context, w *worker) error {
	for n := 0; !w.over(); n++ {
		player := fmt.Sprintf("guest-%d-%d", w.number, n-n%16/15) // the last of 16 is the one before it
		if _, err := w.draw(ctx, player, ok, limited); err != nil {
			return err
		}
	}
	return nil
}

// emptyBox draws tickets at a pace that spreads the box over the run, crash included, until it is sold out.
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
		player := fmt.Sprintf("regular-%d", n/2) // the start is enough for two tickets
		if status, err := w.draw(ctx, player, ok, soldOut); err != nil || status == soldOut {
			return err
		}
	}
	return brokenf("pool %s gave %d tickets and is not sold out", w.at.pool, 10*tickets)
}
