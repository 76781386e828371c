package kuji

import (
	"context"
	"errors"
	"math/big"
	"runtime"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/odds"
	"github.com/kuji-dev/kuji/internal/rules"
)

// Odds is what the next draw from a pool gives a player, in a request for one draw. It is exact,
// through all pools below, with pity, stock, budgets, codes, winning moments, limits and conditions as
// they are at one point of time.
type Odds struct {
	// Status is how the draw would end, and Subject what that is about: see Status. For a player who
	// was not named it leaves the price out. If it is not OK, the odds are those if the player could
	// draw.
	Status   Status
	Subject  string
	Count    int           // how many draws the request makes: see Pools.Odds
	Outcomes []OutcomeOdds // of the pool and those below it: each pool before those it leads to
	Items    []ItemOdds    // what can be given, in the catalog's order
	Pity     []TrackOdds   // of the pool and those below it

	CatalogVersion uint64
	Position       uint64 // the odds are those of the state as of this position
}

// OutcomeOdds says how likely a draw takes an entry.
type OutcomeOdds = odds.OutcomeOdds

// ItemOdds says how many of an item a draw gives on average.
type ItemOdds = odds.ItemOdds

// TrackOdds says where a player stands in a track.
type TrackOdds = odds.TrackOdds

// Odds returns what one request for count draws from a pool gives a player, or with an empty id a player
// who was never seen, with what the pool guarantees within it. What is expected is of all draws together;
// how likely an entry comes at least once is not computed if count is more than 1. It waits until that is
// durable. CodeNotFound: the catalog in force has no such pool. CodeInvalid: the id is too long, count is
// not from 1 to catalog.MaxDrawCount, or the odds take too much work: they are computed of at most
// 10 000 entries, in the pool and all below it, and only if one draw cannot go in too many different ways.
// When ctx ends, the computation does.
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
		if err := p.w.settle(ctx, seen); err != nil {
			return Odds{}, err
		}
		return Odds{}, p.unknown(pool, version)
	}
	o, err := s.Odds(going(ctx))
	switch {
	case ctx.Err() != nil:
		return Odds{}, &Error{Code: CodeCanceled, Message: "while computing odds", Err: ctx.Err()}
	case err != nil:
		return Odds{}, oddsError(err)
	}
	if err := p.w.settle(ctx, seen); err != nil {
		return Odds{}, err
	}
	out := oddsOf(&o)
	out.CatalogVersion, out.Position, out.Count = version, seen, count
	return out, nil
}

// going lets computations that take long go on as long as a context lasts. They give way to others, so
// that no draw waits for a processor because of them.
func going(ctx context.Context) odds.Going {
	return func() bool {
		runtime.Gosched()
		return ctx.Err() == nil
	}
}

// stand copies what a draw depends on. The position that it returns covers everything in it.
func (p Pools) stand(ctx context.Context, pool, player string, count int) (s *odds.Standing, seen, version uint64, err error) {
	now := min(p.w.o.Now().UnixMilli(), rules.MaxTime)
	p.w.mu.Lock()
	defer p.w.unlock()
	if err := p.w.gate.answers(ctx); err != nil {
		return nil, 0, 0, err
	}
	s, err = odds.Stand(p.w.rules, pool, player, count, now)
	if err != nil {
		err = oddsError(err)
	}
	return s, p.w.state.Position(), p.w.state.Catalog().Version, err
}

func oddsError(err error) error {
	if _, ok := errors.AsType[*odds.OddsError](err); ok {
		return &Error{Code: CodeInvalid, Field: "pool", Message: err.Error()}
	}
	return err
}

func oddsOf(o *odds.Odds) Odds {
	return Odds{Status: Status(o.Status), Subject: o.Subject, Outcomes: o.Outcomes, Items: o.Items, Pity: o.Tracks}
}

// Disclosed is what a catalog says of the odds of one pool.
type Disclosed struct {
	Pool *catalog.Pool
	Odds Odds  // of the first draw of a player who was never seen: stock as declared, full budgets, no moment
	Err  error // why they are not computed: CodeInvalid, as for Pools.Odds
	// LongRun is how many times a draw takes each entry on average when a player draws from the pool
	// again and again, in the order of Odds.Outcomes, while stock, codes and budgets last and between
	// moments. It is nil if that is not known: then Why says why.
	LongRun []*big.Rat
	Why     string
	// Requests are what one request for as many draws as a guarantee needs gives a player who was never
	// seen, by ascending count. A guarantee changes it.
	Requests []DisclosedRequest
}

// DisclosedRequest is what a request for several draws gives.
type DisclosedRequest = odds.DisclosedRequest

// Disclose returns the odds of every pool of a catalog that is not internal.
func Disclose(c *catalog.Catalog) ([]Disclosed, error) {
	if err := checkCatalog(c); err != nil {
		return nil, err
	}
	all, err := odds.Disclose(c)
	if err != nil {
		return nil, &Error{Code: CodeInvalid, Field: "catalog", Err: err}
	}
	out := make([]Disclosed, len(all))
	for i := range all {
		d := &all[i]
		for k := range d.Requests {
			d.Requests[k].Err = oddsError(d.Requests[k].Err)
		}
		out[i] = Disclosed{Pool: d.Pool, Odds: oddsOf(&d.Odds), Err: oddsError(d.Err), LongRun: d.LongRun, Why: d.Why, Requests: d.Requests}
	}
	return out, nil
}
