package kuji

import (
	"cmp"
	"context"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/plan"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
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
	var a applied
	var res Result
	wait, err := r.startCatalog(ctx, c, &o, &a, &res)
	if err := r.finish(ctx, wait, err); err != nil {
		return Result{}, err
	}
	res.Receipt.CatalogVersion = a.version
	return res, nil
}

// startCatalog prepares a catalog and lets it enter.
func (r *Realm) startCatalog(ctx context.Context, c *catalog.Catalog, o *ApplyOptions, a *applied, res *Result) (Commit, error) {
	r.catalogs.Lock()
	defer r.catalogs.Unlock()
	begin, err := r.allow(c)
	if err != nil {
		return Commit{}, err
	}
	a.over = o.Over
	a.prepared, a.refused = rules.Prepare(r.state, r.tables.Load(), c, o.Note.note(), begin)
	if a.refused == nil && len(a.prepared.Event) > maxCatalogEvent {
		return Commit{}, errf(CodeInvalid, "catalog", "%d bytes when compiled; at most %d are allowed", len(a.prepared.Event), maxCatalogEvent)
	}
	return r.start(ctx, a, res)
}

// applied is a catalog that was prepared.
type applied struct {
	prepared *rules.Prepared // without an event: the catalog is in force already
	refused  error
	over     *uint64 // the version that must be in force; nil: any
	version  uint64  // that it has
}

func (a *applied) propose(r *Realm, b *ledger.Batch, w *store.Writer) (earlier, error) {
	v := r.state.Catalog()
	switch {
	case a.over != nil && *a.over != v.Version && (a.refused != nil || a.prepared.Event != nil):
		return until(r.state.Position()), errf(CodeConflict, "version", "version %d is in force, not %d", v.Version, *a.over)
	case a.refused != nil:
		return until(r.state.Position()), &Error{Code: CodeConflict, Field: "catalog", Message: "does not fit the realm's state", Err: a.refused}
	case a.prepared.Event == nil:
		a.version = v.Version
		return earlier{at: store.At{Position: v.Position, Index: v.Index, Time: v.Time}, version: v.Version}, nil
	}
	r.stamp(b)
	w.Buf = append(w.Buf, a.prepared.Event...)
	return earlier{}, nil
}

func (a *applied) entered(r *Realm, _ *ledger.Batch) {
	a.version = a.prepared.Tables.Version
	r.world.levels.note(r.name, r.state)
	r.tables.Store(a.prepared.Tables) // before the rules: readers wait for it
	r.rules.Reset(a.prepared.Tables)
	r.countPools()
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
