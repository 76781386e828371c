package kuji

import (
	"cmp"
	"context"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/plan"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/view"
)

// Catalogs is the view of a realm's catalogs.
type Catalogs struct {
	w      *writer
	places *places

	turn     chan struct{} // taken while the log is read for versions; holds one
	versions versions
}

// Apply puts a catalog in force and returns once that is durable. If the same catalog is already
// in force, nothing is logged and the result is that of the call that applied it. CodeConflict:
// the catalog does not fit the realm's state.
func (r *Realm) Apply(ctx context.Context, c *catalog.Catalog) (Result, error) {
	return r.catalogs.Apply(ctx, c, ApplyOptions{})
}

// ApplyOptions says more about a catalog that is applied.
type ApplyOptions struct {
	// Over is the version that must be in force, 0 for none. CodeConflict if another one is: somebody
	// else has applied a catalog in the meantime, and Plan says what this one would change now. If the
	// same catalog is already in force, Over does not matter, so that a lost answer can be asked for
	// again. nil: any version.
	Over *uint64
	Note Note // who applies it, and why
}

// Apply is Realm.Apply with options.
func (v *Catalogs) Apply(ctx context.Context, c *catalog.Catalog, o ApplyOptions) (Result, error) {
	if err := checkCatalog(c); err != nil {
		return Result{}, err
	}
	if err := invalid(o.Note.note().Check()); err != nil {
		return Result{}, err
	}
	var a applied
	var res Result
	wait, err := v.start(ctx, c, &o, &a, &res)
	if err := v.w.finish(ctx, wait, err); err != nil {
		return Result{}, err
	}
	res.Receipt.CatalogVersion = a.version
	return res, nil
}

// startCatalog prepares a catalog and lets it enter.
func (v *Catalogs) start(ctx context.Context, c *catalog.Catalog, o *ApplyOptions, a *applied, res *Result) (Commit, error) {
	v.w.prepare.Lock()
	defer v.w.prepare.Unlock()
	begin, err := v.allow(c)
	if err != nil {
		return Commit{}, err
	}
	a.over = o.Over
	a.prepared, a.refused = rules.Prepare(v.w.state, v.w.tables.Load(), c, o.Note.note(), begin)
	if a.refused == nil && len(a.prepared.Event) > maxCatalogEvent {
		return Commit{}, errf(CodeInvalid, "catalog", "%d bytes when compiled; at most %d are allowed", len(a.prepared.Event), maxCatalogEvent)
	}
	return v.w.start(ctx, a, res)
}

// applied is a catalog that was prepared.
type applied struct {
	prepared *rules.Prepared // without an event: the catalog is in force already
	refused  error
	over     *uint64 // the version that must be in force; nil: any
	version  uint64  // that it has
}

func (a *applied) propose(w *writer, b *ledger.Batch, event *store.Writer) (earlier, error) {
	v := w.state.Catalog()
	switch {
	case a.over != nil && *a.over != v.Version && (a.refused != nil || a.prepared.Event != nil):
		return until(w.state.Position()), errf(CodeConflict, "version", "version %d is in force, not %d", v.Version, *a.over)
	case a.refused != nil:
		return until(w.state.Position()), &Error{Code: CodeConflict, Field: "catalog", Message: "does not fit the realm's state", Err: a.refused}
	case a.prepared.Event == nil:
		a.version = v.Version
		return earlier{at: store.At{Position: v.Position, Index: v.Index, Time: v.Time}, version: v.Version}, nil
	}
	w.stamp(b)
	event.Buf = append(event.Buf, a.prepared.Event...)
	return earlier{}, nil
}

func (a *applied) entered(w *writer, _ *ledger.Batch) {
	a.version = a.prepared.Tables.Version
	w.world.levels.note(w.name, w.state)
	w.tables.Store(a.prepared.Tables) // before the rules: readers wait for it
	w.rules.Reset(a.prepared.Tables)
	w.countPools()
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
func (v *Catalogs) Plan(ctx context.Context, c *catalog.Catalog) (Plan, error) {
	if err := checkCatalog(c); err != nil {
		return Plan{}, err
	}
	p, seen, err := v.plan(ctx, c)
	if err := cmp.Or(v.w.settle(ctx, seen), err); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// plan makes a plan. The position that it returns covers everything that the plan depends on.
func (v *Catalogs) plan(ctx context.Context, c *catalog.Catalog) (p plan.Plan, seen uint64, err error) {
	v.w.prepare.Lock()
	defer v.w.prepare.Unlock()
	v.w.mu.Lock()
	if err := v.w.gate.answers(ctx); err != nil {
		v.w.mu.Unlock()
		return p, 0, err
	}
	if _, err := v.level(c); err != nil {
		v.w.mu.Unlock()
		return p, 0, err
	}
	planner := plan.NewPlanner(v.w.state, v.w.tables.Load(), c, v.w.now())
	v.w.mu.Unlock()
	if p, err = planner.Plan(c, going(ctx)); err != nil {
		err = &Error{Code: CodeConflict, Field: "catalog", Message: "does not fit the realm's state", Err: err}
	}
	v.w.mu.Lock()
	defer v.w.unlock()
	return p, v.w.state.Position(), err
}

// InForce returns the catalog in force.
func (v *Catalogs) InForce(ctx context.Context) (CatalogView, error) {
	t, c, err := v.inForce(ctx)
	if err != nil {
		return CatalogView{}, err
	}
	return CatalogView{Version: c.Version, Hash: t.Hash, Catalog: t.Catalog, Position: c.Position, Index: c.Index, Time: c.Time}, nil
}

// Items returns the items with these ids, as the catalog in force has them and in its order. Those that
// it does not have are left out.
func (v *Catalogs) Items(ctx context.Context, ids []string) ([]catalog.Item, error) {
	t, _, err := v.inForce(ctx)
	if err != nil {
		return nil, err
	}
	var all []catalog.Item
	for _, i := range view.Items(t, ids) {
		all = append(all, t.Catalog.Items[i])
	}
	return all, nil
}

// inForce returns the catalog in force, once that is durable.
func (v *Catalogs) inForce(ctx context.Context) (*rules.Tables, store.InForce, error) {
	if err := v.w.gate.answers(ctx); err != nil {
		return nil, store.InForce{}, err
	}
	t, c := v.w.inForce()
	return t, c, v.w.settle(ctx, c.Position)
}
