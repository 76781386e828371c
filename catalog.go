package kuji

import (
	"cmp"
	"context"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// Apply puts a catalog in force, durably. The catalog in force already is not applied
// again: the result is then the one of the call that applied it. A catalog that the realm's
// state refuses gives CodeConflict.
func (r *Realm) Apply(ctx context.Context, c *catalog.Catalog) (Result, error) {
	return r.apply(ctx, c, nil)
}

// ApplyOver is Apply over the version of the catalog in force that the caller has seen, 0
// for none. When another one is in force, CodeConflict: somebody else has applied a catalog
// meanwhile, and Plan says what this one would do now. The catalog in force already gives
// the result of the call that applied it, whatever version was expected, so that a lost
// answer can be asked for again.
func (r *Realm) ApplyOver(ctx context.Context, c *catalog.Catalog, version uint64) (Result, error) {
	return r.apply(ctx, c, &version)
}

func (r *Realm) apply(ctx context.Context, c *catalog.Catalog, over *uint64) (Result, error) {
	if err := checkCatalog(c); err != nil {
		return Result{}, err
	}
	var res Result
	wait, seen, err := r.prepareAndApply(ctx, c, over, &res)
	if err != nil {
		return Result{}, cmp.Or(r.settle(ctx, seen), err)
	}
	if err := wait.Wait(ctx); err != nil {
		return Result{}, err
	}
	return res, nil
}

// prepareAndApply prepares a catalog, puts it in force, and fills in res. The Commit says
// when that is durable. With an error it returns the position that a refusal rests on.
func (r *Realm) prepareAndApply(ctx context.Context, c *catalog.Catalog, over *uint64, res *Result) (wait Commit, seen uint64, err error) {
	r.catalogs.Lock()
	defer r.catalogs.Unlock()
	prepared, refused := rules.Prepare(r.state, r.tables.Load(), c)
	if refused == nil && len(prepared.Event) > maxCatalogEvent {
		return Commit{}, 0, errf(CodeInvalid, "catalog", "%d bytes when compiled; at most %d are allowed", len(prepared.Event), maxCatalogEvent)
	}
	if err := r.lockForRoom(ctx); err != nil {
		return Commit{}, 0, err
	}
	defer r.unlock()
	seen = r.state.Position()
	version := r.state.Catalog().Version
	switch {
	case over != nil && *over != version && (refused != nil || prepared.Event != nil):
		return Commit{}, seen, errf(CodeConflict, "version", "version %d is in force, not %d", version, *over)
	case refused != nil:
		return Commit{}, seen, &Error{Code: CodeConflict, Field: "catalog", Message: "the realm's state refuses it", Err: refused}
	}
	b, err := r.putInForce(prepared, res)
	if b == nil {
		return Commit{}, 0, err
	}
	return Commit{batch: b, done: r.waitFor(b), steps: r.world.steps}, 0, nil
}

// putInForce applies a prepared catalog and fills in res. The batch is the one that makes
// the result durable, nil when it is already. The caller holds mu.
func (r *Realm) putInForce(p *rules.Prepared, res *Result) (b *batch, err error) {
	defer r.noPanic(&b, &err)
	if p.Event == nil { // in force already
		v := r.state.Catalog()
		r.receipt(&res.Receipt, v.Position, int(v.Index), v.Time, v.Version)
		return r.batchAt(v.Position), nil
	}
	b = r.open
	r.stamp(b)
	if err := r.commit(b, append(b.buf, p.Event...), res); err != nil {
		return nil, err
	}
	r.tables.Store(p.Tables) // first: readers wait for it
	r.rules.Reset(p.Tables)
	res.Receipt.CatalogVersion = p.Tables.Version
	return b, nil
}

// checkCatalog refuses a catalog that did not come from Parse and is malformed.
func checkCatalog(c *catalog.Catalog) error {
	if c == nil {
		return errf(CodeInvalid, "catalog", "nil; a catalog is needed")
	}
	if err := c.Check(); err != nil {
		return &Error{Code: CodeInvalid, Field: "catalog", Message: "malformed", Err: err}
	}
	return nil
}

// Plan says what Apply would do, without doing it. What it says of draws is as of some
// moment meanwhile, and durable when it returns. CodeConflict as for Apply.
func (r *Realm) Plan(ctx context.Context, c *catalog.Catalog) (Plan, error) {
	if err := checkCatalog(c); err != nil {
		return Plan{}, err
	}
	p, seen, err := r.plan(c)
	if err := cmp.Or(r.settle(ctx, seen), err); err != nil {
		return Plan{}, err
	}
	return planOf(&p), nil
}

// plan makes a plan. It returns a position that is no less than that of anything that the
// plan has seen.
func (r *Realm) plan(c *catalog.Catalog) (p rules.Plan, seen uint64, err error) {
	r.catalogs.Lock()
	defer r.catalogs.Unlock()
	r.mu.Lock()
	if err := r.usable(); err != nil {
		r.mu.Unlock()
		return p, 0, err
	}
	planner := rules.NewPlanner(r.state, r.tables.Load(), c)
	r.mu.Unlock()
	if p, err = planner.Plan(c); err != nil {
		err = &Error{Code: CodeConflict, Field: "catalog", Message: "the realm's state refuses it", Err: err}
	}
	r.mu.Lock()
	defer r.unlock()
	return p, r.state.Position(), err
}
