package demo

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// maxReported bounds the errors that one check reports. The first ones say enough.
const maxReported = 5

// add books the outcome of one check: what was found, and what was wrong.
func (d *demo) add(name, found string, wrong []error) {
	c := Check{Name: name, OK: len(wrong) == 0, Detail: found}
	for i, err := range wrong {
		if i == maxReported {
			c.Errors = append(c.Errors, fmt.Sprintf("and %d more", len(wrong)-i))
			break
		}
		c.Errors = append(c.Errors, err.Error())
	}
	d.report.Checks = append(d.report.Checks, c)
}

// check asks the running server, then stops it and asks the log.
func (d *demo) check(ctx context.Context) error {
	steps := []func(context.Context) error{d.checkRecovery, d.checkAcknowledged, d.checkBalances, d.checkStock, d.checkLog}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkRecovery checks that the restarted server found every acknowledged position.
func (d *demo) checkRecovery(ctx context.Context) error {
	var wrong []error
	for _, at := range d.attractions {
		resp, err := at.client.Admin.GetStatus(ctx, &kujiv1.GetStatusRequest{Realm: at.realm})
		if err != nil {
			return err
		}
		r := Recovered{Realm: at.realm, Acknowledged: d.books[at.realm].beforeCrash}
		for _, st := range resp.GetRealms() {
			if r.Recovered = st.GetRecoveredPosition(); slices.Contains(d.spared, at.realm) {
				r.Recovered = st.GetPosition()
			}
		}
		d.report.Recovered = append(d.report.Recovered, r)
		if err := r.check(); err != nil {
			wrong = append(wrong, err)
		}
	}
	d.add("recovered", "every realm came back with all that was acknowledged before the kill", wrong)
	return nil
}

// batchSize is how many commands are sent again in one request.
const batchSize = 500

// checkAcknowledged sends every acknowledged command again. Each must get its
// first result from memory, and must not be carried out again.
func (d *demo) checkAcknowledged(ctx context.Context) error {
	var wrong []error
	sent := 0
	for _, at := range d.attractions {
		book := d.books[at.realm]
		if window := uint64(at.catalog.Idempotency.Count); uint64(len(book.records)) > window {
			return fmt.Errorf("realm %s: %d requests, more than the %d that the catalog remembers: run with a shorter --load", at.realm, len(book.records), window)
		}
		for part := range slices.Chunk(book.records, batchSize) {
			bad, err := resend(ctx, at, part)
			if err != nil {
				return err
			}
			wrong = append(wrong, bad...)
			sent += len(part)
		}
	}
	d.add("acknowledged", fmt.Sprintf("%d requests sent again: each got its first result", sent), wrong)
	return nil
}

func resend(ctx context.Context, at *attraction, part []record) (wrong []error, err error) {
	req := &kujiv1.BatchRequest{Realm: at.realm}
	for _, rec := range part {
		req.Commands = append(req.Commands, rec.command)
	}
	resp, err := at.client.Batch(ctx, req)
	if err != nil {
		return nil, err
	}
	if len(resp.GetResults()) != len(part) {
		return nil, fmt.Errorf("batch of %d commands: %d results", len(part), len(resp.GetResults()))
	}
	for i, r := range resp.GetResults() {
		result, err := expand(r, resp)
		if err == nil {
			err = checkAgain(part[i], result)
		} else {
			err = fmt.Errorf("request %s: %w", part[i].command.GetRequestId(), err)
		}
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong, nil
}

// checkBalances reads every player and compares items and tracks with the
// clients' books.
func (d *demo) checkBalances(ctx context.Context) error {
	type question struct {
		at     *attraction
		player string
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	questions := make(chan question)
	var (
		mu      sync.Mutex
		wrong   []error
		pity    []error
		readers sync.WaitGroup
	)
	for range 16 {
		readers.Go(func() {
			for q := range questions {
				resp, err := q.at.client.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Realm: q.at.realm, Player: q.player})
				if err != nil && connect.CodeOf(err) != connect.CodeNotFound { // a player who is not found holds nothing
					cancel(fmt.Errorf("player %s: %w", q.player, err))
					continue
				}
				mu.Lock()
				book := d.books[q.at.realm]
				if err := checkPlayer(q.player, book.balances[q.player], resp.GetPlayer().GetItems()); err != nil {
					wrong = append(wrong, err)
				}
				if err := book.check(q.player, resp.GetPlayer().GetPity()); err != nil {
					pity = append(pity, err)
				}
				mu.Unlock()
			}
		})
	}
	players := 0
	for _, at := range d.attractions {
		book := d.books[at.realm]
		pity = append(pity, book.wrong...)
		for player := range book.balances {
			if ctx.Err() == nil {
				questions <- question{at, player}
				players++
			}
		}
	}
	close(questions)
	readers.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	d.add("balances", fmt.Sprintf("%d players hold exactly what they were told", players), wrong)
	d.add("pity", fmt.Sprintf("%d players: every track is where their draws left it, and hit when it had to", players), pity)
	return nil
}

// checkStock reads every pool: stock, draws and acknowledgements must add up,
// and the odds must have been kept.
func (d *demo) checkStock(ctx context.Context) error {
	var wrongStock, wrongOdds []error
	limited := 0
	for _, at := range d.attractions {
		book := d.books[at.realm]
		for _, p := range at.catalog.Pools {
			resp, err := at.client.GetPool(ctx, &kujiv1.GetPoolRequest{Realm: at.realm, Pool: p.ID, EntryLimit: 10_000})
			if err != nil {
				return err
			}
			pool, stock := resp.GetPool(), stockOf(p)
			limited += len(stock)
			if err := checkPool(pool, stock, book.drawn[p.ID]); err != nil {
				wrongStock = append(wrongStock, err)
			}
			if p.ID != at.pool || len(stock) > 0 {
				continue
			}
			table, err := oddsOf(pool, book.plain[p.ID])
			if err != nil {
				wrongOdds = append(wrongOdds, err)
			}
			d.report.OddsPool, d.report.Odds = p.ID, table
		}
	}
	d.add("stock", fmt.Sprintf("%d limited prizes: drawn and left add up to the stock, none below zero", limited), wrongStock)
	d.add("odds", fmt.Sprintf("pool %s: every frequency within %d standard deviations of its odds, where pity changes none", d.report.OddsPool, maxSigma), wrongOdds)
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

// checkLog stops the server and reads its log. Each acknowledged command must be in it once, at its
// position, and nothing else.
func (d *demo) checkLog(ctx context.Context) error {
	if err := d.Site.Stop(); err != nil {
		return err
	}
	audits := map[string]*audit{}
	for realm, book := range d.books {
		audits[realm] = newAudit(book)
	}
	left, err := d.Site.Verify(ctx, func(realm string, rec kuji.Record) {
		if a := audits[realm]; a != nil { // nobody drew in any other realm
			a.see(rec)
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrong []error
	if err != nil {
		wrong = append(wrong, err)
	}
	for _, at := range d.attractions {
		wrong = append(wrong, audits[at.realm].finish()...)
	}
	d.add("log", fmt.Sprintf("verified offline: each acknowledged id is in it once; %d events decided again from revealed seeds, with the same result", left.Decided), wrong)
	d.report.LogBytes, d.report.LogBatches = left.Bytes, left.Batches
	if d.report.Draws > 0 {
		d.report.LogBytesPerDraw = math.Round(10*float64(left.LogBytes)/float64(d.report.Draws)) / 10
	}
	return nil
}
