package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/disclosure"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// disclosureTime is how long the odds of one disclosure may take: those of one pool take a few seconds at most.
const disclosureTime = 20 * time.Second

// GetDisclosure returns what is published of the odds of a catalog.
func (h catalogs) GetDisclosure(ctx context.Context, req *kujiv1.GetDisclosureRequest) (*kujiv1.GetDisclosureResponse, error) {
	r := realmOf(ctx)
	if _, err := message.NewShower(nil, req.GetLanguage()); err != nil {
		return nil, err
	}
	v, err := catalogVersion(ctx, r, req.GetVersion())
	if err != nil {
		return nil, err
	}
	odds, err := h.published.odds(ctx, v.Catalog, v.Hash, req.GetPool())
	if err != nil {
		return nil, err
	}
	d := disclosure.New(v, odds, r.Name(), req.GetLanguage())
	html, err := d.HTML()
	switch {
	case errors.Is(err, disclosure.ErrTooLong):
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "pool", Message: "too much for one answer: ask for one pool, or use kuji odds --html"}
	case err != nil:
		return nil, err
	}
	return &kujiv1.GetDisclosureResponse{
		Version: v.Version, Hash: v.Hash[:], Html: string(html), Name: d.Name, Language: d.Language,
		Pools: message.Each(d.Pools, disclosedPool),
	}, nil
}

// catalogVersion returns a version of a realm's catalog, or, for 0, the one in force.
func catalogVersion(ctx context.Context, r *kuji.Realm, version uint64) (v kuji.CatalogView, err error) {
	if version > 0 {
		v, err = r.Catalogs().Version(ctx, version)
	} else {
		v, err = r.Catalogs().InForce(ctx)
	}
	if err == nil && v.Catalog == nil {
		err = noCatalog(r)
	}
	return v, err
}

func disclosedPool(p *disclosure.Pool) *kujiv1.DisclosedPool {
	return &kujiv1.DisclosedPool{
		Id: p.Pool, Name: p.Name, Prices: p.Prices, Rules: p.Rules(), Error: p.Error, LongRunUnknown: p.LongRun,
		Outcomes: message.Each(p.Lines, func(l *disclosure.Line) *kujiv1.DisclosedOutcome {
			out := &kujiv1.DisclosedOutcome{
				Pool: l.Pool, Entry: l.Entry, Name: l.Name, Rarity: l.Rarity, RarityName: l.RarityName, Icon: l.Icon, Leads: l.Leads,
				Chance: &kujiv1.Fraction{Exact: l.Exact, Value: number(l.Chance)}, Expected: number(l.Expected),
				Requests: message.Each(l.Requests, func(q *disclosure.Request) *kujiv1.DisclosedRequest {
					return &kujiv1.DisclosedRequest{Draws: uint32(q.Draws), Expected: number(q.Expected)}
				}),
			}
			if l.LongRun != "" {
				out.LongRun = new(number(l.LongRun))
			}
			return out
		}),
	}
}

// number reads a decimal that a disclosure wrote.
func number(decimal string) float64 {
	v, _ := strconv.ParseFloat(decimal, 64) // it wrote it
	return v
}

// published keeps the odds of the newest disclosures: many players read the same one.
type published struct {
	mu    sync.Mutex
	known []publication // the newest last
}

// maxPublished is how many disclosures are kept.
const maxPublished = 8

type publication struct {
	hash [32]byte // of the catalog
	pool string   // empty: all
	odds []kuji.Disclosed
}

// odds returns the odds of one pool of a catalog, or of all.
func (p *published) odds(ctx context.Context, c *catalog.Catalog, hash [32]byte, pool string) ([]kuji.Disclosed, error) {
	p.mu.Lock()
	at := slices.IndexFunc(p.known, func(k publication) bool { return k.hash == hash && k.pool == pool })
	if at >= 0 {
		defer p.mu.Unlock()
		return p.known[at].odds, nil
	}
	p.mu.Unlock()
	if n := outcomesOf(c, pool); n > message.MaxDisclosed {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "pool", Message: fmt.Sprintf("%d outcomes, want at most %d in one answer: ask for one pool, or use kuji odds --html", n, message.MaxDisclosed)}
	}
	within, cancel := context.WithTimeout(ctx, disclosureTime)
	defer cancel()
	odds, err := kuji.DiscloseContext(within, c, pool)
	if err != nil {
		if ctx.Err() == nil && within.Err() != nil {
			err = &kuji.Error{Code: kuji.CodeInvalid, Field: "pool", Message: fmt.Sprintf("the odds take more than %v: ask for one pool, or use kuji odds --html", disclosureTime)}
		}
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) == maxPublished {
		p.known = slices.Delete(p.known, 0, 1)
	}
	p.known = append(p.known, publication{hash, pool, odds})
	return odds, nil
}

// outcomesOf returns how many outcomes a disclosure has: the entries of each pool that players draw from, and of the
// pools that it leads to.
func outcomesOf(c *catalog.Catalog, pool string) (n int) {
	byID := make(map[string]*catalog.Pool, len(c.Pools))
	for i := range c.Pools {
		byID[c.Pools[i].ID] = &c.Pools[i]
	}
	for i := range c.Pools {
		if p := &c.Pools[i]; !p.Internal && (pool == "" || pool == p.ID) {
			n += outcomesFrom(p, byID, map[string]bool{})
		}
		if n > message.MaxDisclosed {
			break
		}
	}
	return n
}

func outcomesFrom(p *catalog.Pool, byID map[string]*catalog.Pool, seen map[string]bool) int {
	if p == nil || seen[p.ID] {
		return 0
	}
	seen[p.ID] = true
	n := len(p.Entries)
	for i := range p.Entries {
		for _, in := range p.Entries[i].Reward.Draws {
			n += outcomesFrom(byID[in.Pool], byID, seen)
		}
	}
	return n
}
