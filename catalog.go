package kuji

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/plan"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// Catalogs is the view of a realm's catalogs.
type Catalogs struct {
	w      *writer
	places *places

	turn     chan struct{} // taken while the log is read for versions; holds one
	versions versions
}

// CatalogView is the catalog in force.
type CatalogView struct {
	Version  uint64 // 1 for the first catalog, one more with every change; 0: none yet
	Hash     [32]byte
	Catalog  *catalog.Catalog // nil when Version is 0
	Position uint64           // of the batch that applied it
	Index    uint32           // of the event that applied it, in its batch
	Time     int64            // of that event, Unix milliseconds
}

// Plan says what applying a catalog would change.
type Plan = view.Plan

// Change is one line of a Plan: what happens to one item, pool, entry or realm setting.
type Change = view.Change

// Setting is a setting before and after, as catalogs write it.
type Setting = view.Setting

// ChangeKind says what a Change is about.
type ChangeKind = view.ChangeKind

const (
	ChangeItemAdded      ChangeKind = "item_added"
	ChangeItemChanged    ChangeKind = "item_changed"
	ChangeItemRemoved    ChangeKind = "item_removed"
	ChangePoolAdded      ChangeKind = "pool_added"
	ChangePoolChanged    ChangeKind = "pool_changed"
	ChangePoolRemoved    ChangeKind = "pool_removed"
	ChangeEntryAdded     ChangeKind = "entry_added"
	ChangeEntryChanged   ChangeKind = "entry_changed"
	ChangeEntryRemoved   ChangeKind = "entry_removed"
	ChangeCounterAdded   ChangeKind = "counter_added"
	ChangeCounterChanged ChangeKind = "counter_changed"
	ChangeCounterRemoved ChangeKind = "counter_removed"
	ChangeQuestAdded     ChangeKind = "quest_added"
	ChangeQuestChanged   ChangeKind = "quest_changed"
	ChangeQuestRemoved   ChangeKind = "quest_removed"
	ChangeRealm          ChangeKind = "realm_changed" // starting grants, idempotency window, name
	ChangeNotice         ChangeKind = "notice"        // nothing changes, but the catalog deserves a second look
)

// Apply puts a catalog in force and returns once that is durable. If it is in force already, nothing is
// logged and the result is that of the first call. CodeConflict: it does not fit the realm's state.
func (r *Realm) Apply(ctx context.Context, c *catalog.Catalog) (Result, error) {
	return r.catalogs.Apply(ctx, c, ApplyOptions{})
}

// ApplyOptions says more about a catalog that is applied.
type ApplyOptions struct {
	// Over is the version that must be in force, 0 for none, nil for any. CodeConflict: another one is, and
	// Plan says what this catalog would change now. A catalog that is in force already is never refused.
	Over *uint64
	Note Note // who applies it, and why
}

// Apply is Realm.Apply with options.
func (v *Catalogs) Apply(ctx context.Context, c *catalog.Catalog, o ApplyOptions) (Result, error) {
	if err := cmp.Or(checkCatalog(c), invalid(o.Note.note().Check())); err != nil {
		return Result{}, err
	}
	a := applied{over: o.Over}
	rc, err := v.w.carry(ctx, &a, func() error {
		begin, err := v.level(c)
		if err != nil {
			return err
		}
		a.prepared, a.refused = rules.Prepare(v.w.state, v.w.tables.Load(), c, o.Note.note(), begin)
		if a.refused == nil && len(a.prepared.Event) > maxCatalogEvent {
			return errf(CodeInvalid, "catalog", "%d bytes when compiled; at most %d are allowed", len(a.prepared.Event), maxCatalogEvent)
		}
		return nil
	})
	rc.CatalogVersion = a.version
	return value(Result{Receipt: rc}, err)
}

type applied struct {
	prepared *rules.Prepared // without an event: the catalog is in force already
	refused  error
	over     *uint64 // the version that must be in force; nil: any
	version  uint64  // that it has
}

func (a *applied) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	v := w.state.Catalog()
	switch {
	case a.over != nil && *a.over != v.Version && (a.refused != nil || a.prepared.Event != nil):
		return until(w.state.Position()), errf(CodeConflict, "version", "version %d is in force, not %d", v.Version, *a.over)
	case a.refused != nil:
		return until(w.state.Position()), &Error{Code: CodeConflict, Field: "catalog", Message: "does not fit the realm's state", Err: a.refused}
	case a.prepared.Event == nil:
		a.version = v.Version
		return &earlier{at: store.At{Position: v.Position, Index: v.Index, Time: v.Time}, version: v.Version}, nil
	}
	w.stamp(b)
	if err := a.prepared.Enter(w.state, b.Time, event); err != nil {
		return nil, &Error{Code: CodeConflict, Field: "catalog", Message: "does not fit the realm's state", Err: err}
	}
	return nil, nil
}

func (a *applied) entered(w *writer, _ *ledger.Batch) {
	a.version = a.prepared.Tables.Version
	w.world.levels.note(w.name, w.state)
	a.prepared.Tables.Grown(w.state)
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

// Plan says what Apply would do. Its numbers of draws are those of one moment during the call, and durable
// when it returns. CodeConflict: as for Apply.
func (v *Catalogs) Plan(ctx context.Context, c *catalog.Catalog) (Plan, error) {
	if err := checkCatalog(c); err != nil {
		return Plan{}, err
	}
	p, seen, err := v.plan(ctx, c)
	return value(p, cmp.Or(v.w.settle(ctx, seen), err))
}

// plan makes a plan. The position that it returns covers all that the plan depends on.
func (v *Catalogs) plan(ctx context.Context, c *catalog.Catalog) (p view.Plan, seen uint64, err error) {
	v.w.prepare.Lock()
	defer v.w.prepare.Unlock()
	if _, err := v.level(c); err != nil {
		return p, 0, err
	}
	v.w.mu.Lock()
	if err := v.w.gate.answers(ctx); err != nil {
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

// Items returns those of the items with these ids that the catalog in force has, in its order.
func (v *Catalogs) Items(ctx context.Context, ids []string) ([]catalog.Item, error) {
	t, _, err := v.inForce(ctx)
	if err != nil {
		return nil, err
	}
	var all []catalog.Item
	for _, i := range look.Items(t, ids) {
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

// Older catalogs stand only in the log. The first question reads it up to the catalog in force, and
// remembers where each catalog stands; later ones read what is new. A log that was trimmed is read again:
// it begins with the catalog of its oldest snapshot.

// MaxCatalogVersions is the most versions that a realm remembers the places of: the newest.
const MaxCatalogVersions = 4096

// CatalogVersion describes a catalog that was put in force.
type CatalogVersion struct {
	Version  uint64
	Hash     [32]byte
	Name     string
	Items    int
	Pools    int
	Position uint64 // of the batch that put it in force
	Index    uint32 // of the event in that batch
	Time     int64  // of that event, Unix milliseconds
	Note     Note   // who applied it and why; empty if that event was trimmed
}

type versions struct {
	known []versionAt   // ascending, without gaps
	next  place         // after which the log was not read yet
	first driver.Cursor // of the log, when it was read
}

// versionAt is a catalog, and the place right before the batch that put it in force.
type versionAt struct {
	CatalogVersion
	before   place
	snapshot bool // the event was trimmed: the oldest snapshot has the catalog
}

// Versions returns the catalogs that were put in force, the oldest first and the one in force last, at most
// MaxCatalogVersions. After trimming, the first is the one in force where the log begins. An engine in
// memory has only the last. The first call reads the log up to the catalog in force.
func (v *Catalogs) Versions(ctx context.Context) ([]CatalogVersion, error) {
	known, done, err := v.knowVersions(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	all := make([]CatalogVersion, len(known))
	for i := range known {
		all[i] = known[i].CatalogVersion
	}
	return all, nil
}

// Version returns a catalog by its version. CodeNotFound: there was none, or the log no longer has it.
func (v *Catalogs) Version(ctx context.Context, version uint64) (CatalogView, error) {
	if v, err := v.InForce(ctx); err != nil || v.Version == version && version > 0 {
		return v, err
	}
	known, done, err := v.knowVersions(ctx)
	if err != nil {
		return CatalogView{}, err
	}
	defer done()
	switch {
	case len(known) == 0 || version == 0 || version > known[len(known)-1].Version:
		return CatalogView{}, errf(CodeNotFound, "version", "realm %q has no catalog with version %d", v.w.name, version)
	case version < known[0].Version:
		return CatalogView{}, errf(CodeNotFound, "version", "the log of realm %q no longer has version %d: its oldest is %d", v.w.name, version, known[0].Version)
	}
	at := &known[version-known[0].Version]
	view := CatalogView{Version: version, Hash: at.Hash, Position: at.Position, Index: at.Index, Time: at.Time}
	view.Catalog, err = v.readVersion(ctx, at)
	return view, v.w.failed(fmt.Sprintf("reading catalog version %d", version), err)
}

// knowVersions brings what is known up to date; others cannot change it until done is called.
func (v *Catalogs) knowVersions(ctx context.Context) (known []versionAt, done func(), err error) {
	if err := v.w.gate.answers(ctx); err != nil {
		return nil, nil, err
	}
	_, c := v.w.inForce()
	if err := v.w.settle(ctx, c.Position); err != nil {
		return nil, nil, err
	}
	select {
	case v.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, &Error{Code: CodeCanceled, Message: "while another caller reads the catalogs", Err: ctx.Err()}
	}
	done = func() { <-v.turn }
	if err = v.findVersions(ctx, &c); err != nil {
		done()
		if ctx.Err() != nil {
			return nil, nil, &Error{Code: CodeCanceled, Message: "while reading the catalogs", Err: ctx.Err()}
		}
		return nil, nil, v.w.failed("reading the catalogs", err)
	}
	return v.versions.known, done, nil
}

// findVersions reads the log until it has met the catalog in force. The caller holds the turn.
func (v *Catalogs) findVersions(ctx context.Context, inForce *store.InForce) error {
	vs := &v.versions
	if inForce.Version == 0 {
		return nil
	}
	if !v.w.keepsLog() {
		vs.known = nil
		return vs.add(inForce, versionAt{})
	}
	first, err := v.places.log.First(ctx)
	if err != nil {
		return err
	}
	if first != vs.first { // the log was trimmed, or nobody has asked yet
		oldest, trimmed, err := v.places.begin(ctx)
		if err != nil {
			return err
		}
		*vs = versions{next: oldest}
		if trimmed && oldest.inForce.Version > 0 {
			if err := vs.add(&oldest.inForce, versionAt{snapshot: true}); err != nil {
				return err
			}
		}
		vs.first, vs.next.inForce = first, store.InForce{}
	}
	if n := len(vs.known); n > 0 && vs.known[n-1].Version >= inForce.Version {
		return nil
	}
	return v.readVersions(ctx, inForce.Version)
}

// readVersions reads on through the log, until it has met a version.
func (v *Catalogs) readVersions(ctx context.Context, last uint64) error {
	vs := &v.versions
	return v.walk(ctx, vs.next, func(e *ledger.Entry) (on bool, err error) {
		version := vs.next.version
		err = catalogsOf(e, func(c store.InForce, note Note) error {
			version++
			c.Version = version
			return vs.add(&c, versionAt{CatalogVersion: CatalogVersion{Note: note}, before: vs.next})
		})
		if err != nil {
			return false, e.Corrupt(err)
		}
		vs.next = place{at: e.At(), version: version}
		return version < last, nil
	})
}

// walk reads the log from a place on, until each says that it is enough.
func (v *Catalogs) walk(ctx context.Context, from place, each func(*ledger.Entry) (on bool, err error)) error {
	through, err := v.places.log.Last(ctx)
	if err != nil {
		return err
	}
	for e, err := range ledger.Walk(v.places.log, v.w.name, from.footer(v.w)).Entries(ctx, through) {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if on, err := each(&e); !on || err != nil {
			return err
		}
	}
	return nil
}

// catalogsOf calls f for each catalog that an entry of the log puts in force.
func catalogsOf(e *ledger.Entry, f func(c store.InForce, note Note) error) error {
	if e.Kind() != ledger.KindBatch {
		return nil
	}
	for le, err := range logged.Events(e, nil) {
		if err != nil {
			return err
		}
		if logged.Catalogs(le.Event) == 0 {
			continue
		}
		n, err := catalogNote(le.Event)
		if err != nil {
			return err
		}
		var effect store.Effect
		for effects := le.Event.Changes(); effects.Next(&effect); {
			if effect.Verb == store.Catalog {
				if err := f(store.InForce{Bytes: effect.Bytes, Position: e.Position, Index: le.At.Index, Time: le.At.Time}, n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// catalogNote returns who put a catalog in force, and why.
func catalogNote(ev *store.Event) (Note, error) {
	if rules.Kind(ev.Kind) == rules.KindApprove {
		p, err := rules.PropositionOf(ev)
		if p.Note == nil {
			return Note{}, err
		}
		return Note(*p.Note), err
	}
	n, err := rules.NoteOf(ev)
	if n == nil {
		return Note{}, err
	}
	return Note(*n), err
}

// add adds a version, and forgets the older half if there are too many.
func (vs *versions) add(c *store.InForce, at versionAt) error {
	decoded, err := catalog.Decode(c.Bytes)
	if err != nil {
		return fmt.Errorf("catalog version %d: %w", c.Version, err)
	}
	if n := len(vs.known); n > 0 && vs.known[n-1].Version >= c.Version {
		return nil // of a batch that is read again, after somebody stopped reading in it
	}
	at.CatalogVersion = CatalogVersion{
		Version: c.Version, Hash: decoded.Hash(), Name: decoded.Name, Items: len(decoded.Items), Pools: len(decoded.Pools),
		Position: c.Position, Index: c.Index, Time: c.Time, Note: at.Note,
	}
	if vs.known = append(vs.known, at); len(vs.known) > MaxCatalogVersions {
		vs.known = append([]versionAt(nil), vs.known[len(vs.known)-MaxCatalogVersions/2:]...)
	}
	return nil
}

func (v *Catalogs) readVersion(ctx context.Context, at *versionAt) (c *catalog.Catalog, err error) {
	if at.snapshot {
		oldest, _, err := v.places.begin(ctx)
		if err != nil {
			return nil, err
		}
		if oldest.inForce.Version != at.Version {
			return nil, errf(CodeNotFound, "version", "the log no longer has it")
		}
		return catalog.Decode(oldest.inForce.Bytes)
	}
	err = v.walk(ctx, at.before, func(e *ledger.Entry) (on bool, err error) {
		if e.Position < at.Position {
			return true, nil // entries that were not batches
		}
		return false, e.Corrupt(catalogsOf(e, func(found store.InForce, _ Note) (err error) {
			if found.Index == at.Index {
				c, err = catalog.Decode(found.Bytes)
			}
			return err
		}))
	})
	if _, ok := errors.AsType[*driver.TrimmedError](err); ok {
		return nil, errf(CodeNotFound, "version", "the log no longer has it")
	}
	if err == nil && (c == nil || c.Hash() != at.Hash) {
		err = fmt.Errorf("position %d does not have it", at.Position)
	}
	return c, err
}
