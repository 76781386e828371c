package demo

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// maxReported bounds the errors that one check reports. The first ones say enough.
const maxReported = 5

// add books the outcome of one check: what was found, and what was wrong. Errors of nil do not count.
func (d *demo) add(name, found string, wrong ...error) {
	c := Check{Name: name, Detail: found}
	for _, err := range wrong {
		if err != nil {
			c.Errors = append(c.Errors, err.Error())
		}
	}
	c.OK = len(c.Errors) == 0
	if more := len(c.Errors) - maxReported; more > 0 {
		c.Errors = append(c.Errors[:maxReported], fmt.Sprintf("and %d more", more))
	}
	d.report.Checks = append(d.report.Checks, c)
}

// checkRecovery checks that the restarted server found every acknowledged position.
func (d *demo) checkRecovery(ctx context.Context) error {
	var wrong []error
	for _, at := range d.attractions {
		resp, err := at.client.Admin.GetStatus(ctx, &kujiv1.GetStatusRequest{Realm: at.realm})
		if err != nil {
			return err
		}
		r := Recovered{Realm: at.realm, Acknowledged: at.book.beforeCrash}
		for _, st := range resp.GetRealms() {
			if r.Recovered = st.GetRecoveredPosition(); slices.Contains(d.spared, at.realm) {
				r.Recovered = st.GetPosition()
			}
		}
		d.report.Recovered = append(d.report.Recovered, r)
		wrong = append(wrong, r.check())
	}
	d.add("recovered", "every realm came back with all that was acknowledged before the kill", wrong...)
	return nil
}

// batchSize is how many commands are sent again in one request.
const batchSize = 500

// checkAcknowledged sends each command again: it must get its first result, and not be carried out again.
func (d *demo) checkAcknowledged(ctx context.Context) error {
	var wrong []error
	for _, at := range d.attractions {
		records := slices.Collect(maps.Values(at.book.records))
		if window := at.catalog.Idempotency.Count; uint64(len(records)) > uint64(window) {
			return fmt.Errorf("realm %s: %d requests, more than the %d that the catalog remembers: run with a shorter --load", at.realm, len(records), window)
		}
		for part := range slices.Chunk(records, batchSize) {
			req := &kujiv1.BatchRequest{Realm: at.realm}
			for _, rec := range part {
				req.Commands = append(req.Commands, rec.command)
			}
			resp, err := at.client.Batch(ctx, req)
			if err != nil {
				return err
			}
			if len(resp.GetResults()) != len(part) {
				return fmt.Errorf("batch of %d commands: %d results", len(part), len(resp.GetResults()))
			}
			for i, r := range resp.GetResults() {
				result, err := expand(r, resp)
				if err == nil {
					err = part[i].checkAgain(result)
				} else {
					err = fmt.Errorf("request %s: %w", part[i].command.GetRequestId(), err)
				}
				wrong = append(wrong, err)
			}
		}
	}
	d.add("acknowledged", fmt.Sprintf("%d requests sent again: each got its first result", len(wrong)), wrong...)
	return nil
}

// checkBalances reads every player and compares items and tracks with the clients' books.
func (d *demo) checkBalances(ctx context.Context) error {
	var (
		mu          sync.Mutex
		wrong, pity []error
	)
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(16)
	for _, at := range d.attractions {
		for player := range at.book.balances {
			readers.Go(func() error {
				resp, err := at.client.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Realm: at.realm, Player: player})
				if err != nil && connect.CodeOf(err) != connect.CodeNotFound { // a player who is not found holds nothing
					return fmt.Errorf("player %s: %w", player, err)
				}
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, checkPlayer(player, at.book.balances[player], resp.GetPlayer().GetItems()))
				pity = append(pity, at.book.check(player, resp.GetPlayer().GetPity()))
				return nil
			})
		}
	}
	if err := readers.Wait(); err != nil {
		return err
	}
	players := len(wrong)
	for _, at := range d.attractions {
		pity = append(pity, at.book.wrong...)
	}
	d.add("balances", fmt.Sprintf("%d players hold exactly what they were told", players), wrong...)
	d.add("pity", fmt.Sprintf("%d players: every track is where their draws left it, and hit when it had to", players), pity...)
	return nil
}

// checkStock reads every pool: stock, draws and acknowledgements must add up, and the odds must have been kept.
func (d *demo) checkStock(ctx context.Context) error {
	var wrongStock, wrongOdds []error
	limited := 0
	for _, at := range d.attractions {
		for _, p := range at.catalog.Pools {
			resp, err := at.client.GetPool(ctx, &kujiv1.GetPoolRequest{Realm: at.realm, Pool: p.ID, EntryLimit: 10_000})
			if err != nil {
				return err
			}
			stock := stockOf(p)
			limited += len(stock)
			wrongStock = append(wrongStock, checkPool(resp.GetPool(), stock, at.book.drawn[p.ID]))
			if p.ID == at.pool && len(stock) == 0 {
				d.report.OddsPool = p.ID
				d.report.Odds, err = oddsOf(resp.GetPool(), at.book.plain[p.ID])
				wrongOdds = append(wrongOdds, err)
			}
		}
	}
	d.add("stock", fmt.Sprintf("%d limited prizes: drawn and left add up to the stock, none below zero", limited), wrongStock...)
	d.add("odds", fmt.Sprintf("pool %s: every frequency within %d standard deviations of its odds, where pity changes none", d.report.OddsPool, maxSigma), wrongOdds...)
	return nil
}

func stockOf(p catalog.Pool) map[string]uint64 {
	stock := map[string]uint64{}
	for _, e := range p.Entries {
		if !e.Stock.Unlimited {
			stock[e.ID] = e.Stock.Count
		}
	}
	return stock
}

// checkLog stops the server and finds each acknowledged command in its log once, in place, and no other.
func (d *demo) checkLog(ctx context.Context) error {
	if err := d.Site.Stop(); err != nil {
		return err
	}
	books := map[string]*book{}
	for _, at := range d.attractions {
		books[at.realm] = at.book
	}
	var wrong []error
	left, err := d.Site.Verify(ctx, func(realm string, rec kuji.Record) {
		if b := books[realm]; b != nil { // nobody drew in any other realm
			wrong = append(wrong, b.audit(rec))
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	wrong = append([]error{err}, wrong...)
	for _, at := range d.attractions {
		wrong = append(wrong, at.book.missing()...)
	}
	d.add("log", fmt.Sprintf("verified offline: each acknowledged id is in it once; %d events decided again from revealed seeds, with the same result", left.Decided), wrong...)
	d.report.LogBytes, d.report.LogBatches = left.Bytes, left.Batches
	if d.report.Draws > 0 {
		d.report.LogBytesPerDraw = math.Round(10*float64(left.LogBytes)/float64(d.report.Draws)) / 10
	}
	return nil
}
