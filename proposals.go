package kuji

import (
	"cmp"
	"context"
	"errors"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// Proposals is the view of the catalogs that wait until another key approves them: see ProposalsOf. A realm
// has at most 20 of them, of at most 8 MiB each when compiled, 32 MiB in all.
type Proposals struct{ r *Realm }

// ProposalsOf returns the view of a realm's proposals.
func ProposalsOf(r *Realm) Proposals { return Proposals{r} }

// ProposalView is a catalog that waits for approval.
type ProposalView struct {
	Number   uint64 // from 1 on
	Over     uint64 // the version in force when it was proposed; it can be approved only while that is in force
	Hash     [32]byte
	Name     string // of the catalog
	Bytes    uint64 // of the compiled catalog
	Position uint64 // of the batch that has it
	Index    uint32 // of the event in that batch
	Time     int64  // of that event, Unix milliseconds
	Note     Note   // who proposed it, and why
}

func proposalView(p *rules.Proposal) ProposalView {
	return ProposalView{
		Number: p.Number, Over: p.Over, Hash: p.Hash, Name: p.Name, Bytes: p.Bytes,
		Position: p.At.Position, Index: p.At.Index, Time: p.At.Time, Note: Note(p.Note),
	}
}

// Propose proposes a catalog, and returns once the proposal is durable. The same catalog by the same By over
// the same version is the same proposal. over is the version that must be in force, nil for any.
// CodeConflict: another version is in force, the realm has no catalog yet, the catalog does not fit the
// realm's state or is in force already, or there is no room for another proposal.
func (v Proposals) Propose(ctx context.Context, c *catalog.Catalog, over *uint64, n Note) (ProposalView, error) {
	if err := cmp.Or(checkCatalog(c), invalid(n.note().Check())); err != nil {
		return ProposalView{}, err
	}
	if _, err := v.r.catalogs.level(c); err != nil {
		return ProposalView{}, err
	}
	w, p := v.r.w, proposing{Proposing: rules.NewProposing(c, rules.Note(n)), over: over}
	_, err := w.carry(ctx, &p, func() error {
		_, p.unfit = rules.Prepare(w.state, w.tables.Load(), c, nil, 0)
		return nil
	})
	return value(p.did, err)
}

type proposing struct {
	*rules.Proposing
	over  *uint64
	unfit error // the catalog does not fit the realm's state
	did   ProposalView
}

func (p *proposing) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	t := w.tables.Load()
	if p.over != nil && *p.over != t.Version {
		return until(w.state.Catalog().Position), errf(CodeConflict, "version", "version %d is in force, not %d", t.Version, *p.over)
	}
	same, err := p.Refused(w.state, t, w.state.Level())
	switch {
	case cmp.Or(err, p.unfit) != nil:
		return until(w.state.Position()), refusedProposal(cmp.Or(err, p.unfit))
	case same != nil:
		p.did = proposalView(same)
		return until(same.At.Position), nil
	}
	w.stamp(b)
	p.did = proposalView(p.Write(w.state, t, store.At{Position: b.Position, Index: uint32(b.Events), Time: b.Time}, event))
	return nil, nil
}

func (p *proposing) entered(*writer, *ledger.Batch) {}

// All returns the catalogs that wait for approval, the oldest first.
func (v Proposals) All(ctx context.Context) (all []ProposalView, err error) {
	err = v.read(ctx, func(s *store.State) {
		some := rules.Proposals(s)
		for i := range some {
			all = append(all, proposalView(&some[i]))
		}
	})
	return all, err
}

// Get returns a catalog that waits for approval. CodeNotFound: no proposal has this number.
func (v Proposals) Get(ctx context.Context, number uint64) (view ProposalView, c *catalog.Catalog, err error) {
	var canonical []byte
	found := false
	err = v.read(ctx, func(s *store.State) {
		var p rules.Proposal
		if p, canonical, found = rules.ProposalOf(s, number); found {
			view = proposalView(&p)
		}
	})
	switch {
	case err != nil:
		return ProposalView{}, nil, err
	case !found:
		return ProposalView{}, nil, v.unknown(number)
	}
	if c, err = catalog.Decode(canonical); err != nil {
		return view, nil, v.r.w.failed("reading a proposal", err)
	}
	return view, c, nil
}

// read calls f with the state, and waits until that is durable.
func (v Proposals) read(ctx context.Context, f func(s *store.State)) error {
	w := v.r.w
	w.mu.Lock()
	if err := w.gate.answers(ctx); err != nil {
		w.mu.Unlock()
		return err
	}
	f(w.state)
	seen := w.state.Position()
	w.unlock()
	return w.settle(ctx, seen)
}

func (v Proposals) unknown(number uint64) error {
	return errf(CodeNotFound, "number", "no proposal %d waits in realm %q", number, v.r.w.name)
}

// Withdraw drops a proposal, and returns once that is durable. ok is false if no proposal has this number.
func (v Proposals) Withdraw(ctx context.Context, number uint64, n Note) (ok bool, err error) {
	if err := invalid(n.note().Check()); err != nil {
		return false, err
	}
	p := withdrawing{number: number, note: n}
	_, err = v.r.w.carry(ctx, &p, nil)
	return value(p.ok, err)
}

type withdrawing struct {
	number uint64
	note   Note
	ok     bool
}

func (p *withdrawing) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	waits, _, ok := rules.ProposalOf(w.state, p.number)
	if !ok {
		return until(w.state.Position()), nil
	}
	w.stamp(b)
	waits.Withdraw(p.note.note(), event)
	p.ok = true
	return nil, nil
}

func (p *withdrawing) entered(*writer, *ledger.Batch) {}

// Approve puts a proposed catalog in force, and returns once that is durable. If this proposal is in force
// already, the result is that of the first call. CodeConflict: Note.By proposed it, or the version in force
// is no longer the one over which it was proposed. CodeNotFound: no proposal has this number.
func (v Proposals) Approve(ctx context.Context, number uint64, n Note) (Result, error) {
	if err := invalid(n.note().Check()); err != nil {
		return Result{}, err
	}
	w, cs := v.r.w, v.r.catalogs
	a := approving{number: number, by: n.By}
	rc, err := w.carry(ctx, &a, func() error {
		w.mu.Lock()
		waits, canonical, found := rules.ProposalOf(w.state, number)
		w.unlock()
		if !found {
			return nil
		}
		c, err := catalog.Decode(canonical)
		if err != nil {
			return w.failed("reading a proposal", err)
		}
		if _, err := cs.level(c); err != nil {
			return err
		}
		t := w.tables.Load()
		if a.refused = waits.CheckApproval(t, n.By); a.refused == nil {
			a.prepared, a.refused = rules.PrepareApproved(w.state, t, &waits, c, n.note())
		}
		a.found = true
		return nil
	})
	if err == nil && !a.found && a.version == 0 {
		err = v.unknown(number)
	}
	rc.CatalogVersion = a.version
	return value(Result{Receipt: rc}, err)
}

type approving struct {
	applied
	number uint64
	by     string
	found  bool
}

func (a *approving) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	if !a.found {
		if v := w.state.Catalog(); v.Version > 0 && rules.Approved(w.state, a.number) == v.Version {
			a.version = v.Version
			return &earlier{at: store.At{Position: v.Position, Index: v.Index, Time: v.Time}, version: v.Version}, nil
		}
		return until(w.state.Position()), nil
	}
	if a.refused != nil {
		return until(w.state.Position()), refusedProposal(a.refused)
	}
	if _, _, ok := rules.ProposalOf(w.state, a.number); !ok { // withdrawn while it was prepared
		a.found = false
		return until(w.state.Position()), nil
	}
	return a.applied.propose(w, b, event)
}

// refusedProposal is the error for what the rules say of a proposal.
func refusedProposal(err error) error {
	if level, ok := errors.AsType[*format.LevelError](err); ok {
		return &Error{Code: CodeFormat, Field: "catalog", Err: level}
	}
	return &Error{Code: CodeConflict, Field: "catalog", Message: "cannot be proposed or approved", Err: err}
}
