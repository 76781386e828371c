package kuji

import (
	"cmp"
	"context"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/plan"
	"github.com/kuji-dev/kuji/internal/rules"
)

// Apply puts a catalog in force and returns once that is durable. If the same catalog is already
// in force, nothing is logged and the result is that of the call that applied it. CodeConflict:
// the catalog does not fit the realm's state.
func (r *Realm) Apply(ctx context.Context, c *catalog.Catalog) (Result, error) {
	return r.ApplyWith(ctx, c, ApplyOptions{})
}

// ApplyOver is Apply on the condition that the given version is in force, 0 for none. CodeConflict
// if another version is in force: somebody else has applied a catalog in the meantime. Plan says
// what this one would change now. If the same catalog is already in force, ApplyOver ignores the
// version and returns the result of the call that applied it, so that a lost answer can be asked
// for again.
func (r *Realm) ApplyOver(ctx context.Context, c *catalog.Catalog, version uint64) (Result, error) {
	return r.ApplyWith(ctx, c, ApplyOptions{Over: &version})
}

// ApplyOptions says more about a catalog that is applied.
type ApplyOptions struct {
	Over *uint64 // the version that must be in force: see ApplyOver; nil: any
	Note Note    // who applies it, and why
}

// ApplyWith is Apply with options.
func (r *Realm) ApplyWith(ctx context.Context, c *catalog.Catalog, o ApplyOptions) (Result, error) {
	if err := checkCatalog(c); err != nil {
		return Result{}, err
	}
	if err := invalid(o.Note.note().Check()); err != nil {
		return Result{}, err
	}
	var res Result
	wait, seen, err := r.prepareAndApply(ctx, c, &o, &res)
	if err != nil {
		return Result{}, cmp.Or(r.settle(ctx, seen), err)
	}
	if err := wait.Wait(ctx); err != nil {
		return Result{}, err
	}
	return res, nil
}

// prepareAndApply prepares a catalog, puts it in force and fills in res. The Commit says when that
// is durable. With an error, seen is the position that the refusal depends on.
func (r *Realm) prepareAndApply(ctx context.Context, c *catalog.Catalog, o *ApplyOptions, res *Result) (wait Commit, seen uint64, err error) {
	r.catalogs.Lock()
	defer r.catalogs.Unlock()
	begin, err := r.allow(c)
	if err != nil {
		return Commit{}, 0, err
	}
	prepared, refused := rules.Prepare(r.state, r.tables.Load(), c, o.Note.note(), begin)
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
	case o.Over != nil && *o.Over != version && (refused != nil || prepared.Event != nil):
		return Commit{}, seen, errf(CodeConflict, "version", "version %d is in force, not %d", version, *o.Over)
	case refused != nil:
		return Commit{}, seen, &Error{Code: CodeConflict, Field: "catalog", Message: "does not fit the realm's state", Err: refused}
	}
	b, err := r.putInForce(prepared, res)
	if b == nil {
		return Commit{}, 0, err
	}
	return Commit{batch: b, done: b.Done(), steps: r.world.steps}, 0, nil
}

// putInForce applies a prepared catalog and fills in res. It returns the batch that makes the
// result durable, or nil if it already is. The caller holds mu.
func (r *Realm) putInForce(p *rules.Prepared, res *Result) (b *ledger.Batch, err error) {
	finished := false
	defer r.ended(&finished, &b, &err)
	b, err = r.commitCatalog(p, res)
	finished = true
	return b, err
}

func (r *Realm) commitCatalog(p *rules.Prepared, res *Result) (*ledger.Batch, error) {
	if p.Event == nil { // already in force
		v := r.state.Catalog()
		r.receipt(&res.Receipt, v.Position, int(v.Index), v.Time, v.Version)
		return r.batchAt(v.Position), nil
	}
	b := r.group.Open()
	r.stamp(b)
	if err := r.commit(b, append(b.Buf, p.Event...), res); err != nil {
		return nil, err
	}
	r.world.levels.note(r.name, r.state)
	r.tables.Store(p.Tables) // before the rules: readers wait for it
	r.rules.Reset(p.Tables)
	r.countPools()
	res.Receipt.CatalogVersion = p.Tables.Version
	return b, nil
}

// checkCatalog refuses a malformed catalog, which cannot come from Parse.
func checkCatalog(c *catalog.Catalog) error {
	if c == nil {
		return errf(CodeInvalid, "catalog", "nil; want a catalog")
	}
	if err := c.Check(); err != nil {
		return &Error{Code: CodeInvalid, Field: "catalog", Message: "malformed", Err: err}
	}
	return nil
}

// Plan says what Apply would do, without doing it. Its numbers of draws are those of one moment
// during the call, and are durable when it returns. CodeConflict: as for Apply.
func (r *Realm) Plan(ctx context.Context, c *catalog.Catalog) (Plan, error) {
	if err := checkCatalog(c); err != nil {
		return Plan{}, err
	}
	p, seen, err := r.plan(ctx, c)
	if err := cmp.Or(r.settle(ctx, seen), err); err != nil {
		return Plan{}, err
	}
	return planOf(&p), nil
}

// plan makes a plan. The position that it returns covers everything that the plan depends on.
func (r *Realm) plan(ctx context.Context, c *catalog.Catalog) (p plan.Plan, seen uint64, err error) {
	r.catalogs.Lock()
	defer r.catalogs.Unlock()
	r.mu.Lock()
	if err := r.answers(ctx); err != nil {
		r.mu.Unlock()
		return p, 0, err
	}
	if _, err := r.level(c); err != nil {
		r.mu.Unlock()
		return p, 0, err
	}
	planner := plan.NewPlanner(r.state, r.tables.Load(), c, r.now())
	r.mu.Unlock()
	if p, err = planner.Plan(c, going(ctx)); err != nil {
		err = &Error{Code: CodeConflict, Field: "catalog", Message: "does not fit the realm's state", Err: err}
	}
	r.mu.Lock()
	defer r.unlock()
	return p, r.state.Position(), err
}
