package kuji

import (
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
	wait, err := r.prepareAndApply(ctx, c, over, &res)
	if failed := wait.Wait(ctx); failed != nil {
		return Result{}, failed
	}
	if err != nil {
		return Result{}, err
	}
	return res, nil
}

// prepareAndApply prepares a catalog, puts it in force, and fills in res. The Commit says
// when that is durable, or what a refusal rests on.
func (r *Realm) prepareAndApply(ctx context.Context, c *catalog.Catalog, over *uint64, res *Result) (Commit, error) {
	r.catalogs.Lock()
	defer r.catalogs.Unlock()
	prepared, refused := rules.Prepare(r.state, r.tables.Load(), c)
	if refused == nil && len(prepared.Event) > maxCatalogEvent {
		return Commit{}, errf(CodeInvalid, "catalog", "%d bytes when compiled; at most %d are allowed", len(prepared.Event), maxCatalogEvent)
	}
	if err := r.lockForRoom(ctx); err != nil {
		return Commit{}, err
	}
	defer r.unlock()
	version := r.state.Catalog().Version
	switch {
	case over != nil && *over != version && (refused != nil || prepared.Event != nil):
		return r.commitOf(r.batchAt(r.state.Position())), errf(CodeConflict, "version", "version %d is in force, not %d", version, *over)
	case refused != nil:
		return r.commitOf(r.batchAt(r.state.Position())), &Error{Code: CodeConflict, Field: "catalog", Message: "the realm's state refuses it", Err: refused}
	}
	b, err := r.putInForce(prepared, res)
	return r.commitOf(b), err
}

// commitOf returns what waits for a batch, nil for one that is durable. The caller holds mu.
func (r *Realm) commitOf(b *batch) Commit {
	if b == nil {
		return Commit{}
	}
	return Commit{batch: b, done: r.waitFor(b), steps: r.world.steps}
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
	p, wait, err := r.plan(c)
	if failed := wait.Wait(ctx); failed != nil {
		return Plan{}, failed
	}
	if err != nil {
		return Plan{}, err
	}
	return planOf(&p), nil
}

// plan makes a plan. The Commit says when everything that it has seen is durable.
func (r *Realm) plan(c *catalog.Catalog) (rules.Plan, Commit, error) {
	r.catalogs.Lock()
	defer r.catalogs.Unlock()
	r.mu.Lock()
	if err := r.usable(); err != nil {
		r.mu.Unlock()
		return rules.Plan{}, Commit{}, err
	}
	planner := rules.NewPlanner(r.state, r.tables.Load(), c)
	r.mu.Unlock()
	p, err := planner.Plan(c)
	if err != nil {
		err = &Error{Code: CodeConflict, Field: "catalog", Message: "the realm's state refuses it", Err: err}
	}
	r.mu.Lock()
	defer r.unlock()
	return p, r.commitOf(r.batchAt(r.state.Position())), err
}
