package kuji

import (
	"cmp"
	"context"
	"errors"
	"runtime"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/odds"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// Odds is what the next draws from a pool give a player.
type Odds = view.Odds

// OutcomeOdds says how likely a draw takes an entry.
type OutcomeOdds = view.OutcomeOdds

// ItemOdds says how many of an item a draw gives on average.
type ItemOdds = view.ItemOdds

// TrackOdds says where a player stands in a track.
type TrackOdds = view.TrackOdds

// Odds returns what one request for count draws gives a player, with what the pool guarantees within it,
// once the state that it depends on is durable. An empty id is a player who was never seen. What is
// expected is of all draws together; with more than one, how likely an entry comes at least once is not
// computed.
//
// CodeNotFound: the catalog in force has no such pool. CodeInvalid: the id is too long, count is not from 1
// to catalog.MaxDrawCount, or the odds take too much work: more than 10 000 entries, in the pool and below,
// or too many ways that one draw can go. CodeCanceled: ctx ended.
func (p Pools) Odds(ctx context.Context, pool, player string, count int) (Odds, error) {
	switch {
	case len(player) > rules.MaxID:
		return Odds{}, errf(CodeInvalid, "player", "%d bytes long; at most %d are allowed", len(player), rules.MaxID)
	case count < 1 || count > catalog.MaxDrawCount:
		return Odds{}, errf(CodeInvalid, "count", "%d draws; 1 to %d are allowed", count, catalog.MaxDrawCount)
	}
	s, seen, version, err := p.stand(ctx, pool, player, count)
	if err != nil {
		return Odds{}, err
	}
	if s == nil {
		return Odds{}, cmp.Or(p.w.settle(ctx, seen), p.unknown(pool, version))
	}
	o, err := s.Odds(going(ctx))
	switch {
	case ctx.Err() != nil:
		return Odds{}, &Error{Code: CodeCanceled, Message: "while computing odds", Err: ctx.Err()}
	case err != nil:
		return Odds{}, oddsError(err)
	}
	o.CatalogVersion, o.Position, o.Count = version, seen, count
	return value(o, p.w.settle(ctx, seen))
}

// going lets a computation go on until ctx ends. It yields the processor, so that no draw waits.
func going(ctx context.Context) odds.Going {
	return func() bool {
		runtime.Gosched()
		return ctx.Err() == nil
	}
}

// stand copies what a draw depends on. The position that it returns covers all of it.
func (p Pools) stand(ctx context.Context, pool, player string, count int) (s *odds.Standing, seen, version uint64, err error) {
	now := min(p.w.o.Now().UnixMilli(), rules.MaxTime)
	p.w.mu.Lock()
	defer p.w.unlock()
	if err := p.w.gate.answers(ctx); err != nil {
		return nil, 0, 0, err
	}
	s, err = odds.Stand(p.w.rules, pool, player, count, now)
	return s, p.w.state.Position(), p.w.state.Catalog().Version, oddsError(err)
}

func oddsError(err error) error {
	if _, ok := errors.AsType[*odds.OddsError](err); ok {
		return &Error{Code: CodeInvalid, Field: "pool", Message: err.Error()}
	}
	return err
}

// Disclosed is what a catalog says of the odds of one pool. Its errors have CodeInvalid, as for Pools.Odds.
type Disclosed = view.Disclosed

// DisclosedRequest is what a request for several draws gives.
type DisclosedRequest = view.DisclosedRequest

// Disclose returns the odds of every pool of a catalog that is not internal.
func Disclose(c *catalog.Catalog) ([]Disclosed, error) {
	return DiscloseContext(context.Background(), c, "")
}

// DiscloseContext is Disclose for one pool, or, if that is empty, for all, until ctx ends. CodeNotFound: the catalog
// has no such pool that is not internal.
func DiscloseContext(ctx context.Context, c *catalog.Catalog, pool string) ([]Disclosed, error) {
	if err := checkCatalog(c); err != nil {
		return nil, err
	}
	all, err := odds.Disclose(c, pool, going(ctx))
	switch {
	case ctx.Err() != nil:
		return nil, &Error{Code: CodeCanceled, Message: "while computing odds", Err: ctx.Err()}
	case err != nil:
		return nil, &Error{Code: CodeInvalid, Field: "catalog", Err: err}
	case pool != "" && len(all) == 0:
		return nil, errf(CodeNotFound, "pool", "the catalog has no pool %q from which players draw", pool)
	}
	for i := range all {
		d := &all[i]
		d.Err = oddsError(d.Err)
		for k := range d.Requests {
			d.Requests[k].Err = oddsError(d.Requests[k].Err)
		}
	}
	return all, nil
}
