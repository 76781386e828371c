package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h rewardService) GetCatalog(ctx context.Context, req *kujiv1.GetCatalogRequest) (*kujiv1.GetCatalogResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	v, err := r.Catalogs().InForce(ctx)
	if err != nil {
		return nil, err
	}
	c := v.Catalog
	if c == nil {
		return &kujiv1.GetCatalogResponse{}, nil
	}
	from, to, err := page("item_limit", req.GetItemOffset(), req.GetItemLimit(), len(c.Items))
	if err != nil {
		return nil, err
	}
	out := &kujiv1.GetCatalogResponse{
		Version: v.Version, Hash: v.Hash[:], Position: v.Position, Name: c.Name,
		ItemCount: uint32(len(c.Items)), Start: stacksProto(c.Start),
		Idempotency: &kujiv1.Idempotency{Count: c.Idempotency.Count, AgeMs: c.Idempotency.Age.Milliseconds(),
			TimeOrdered: c.Idempotency.IDs == catalog.IDsTimeOrdered, AheadMs: c.Idempotency.Ahead.Milliseconds()},
	}
	for _, it := range c.Items[from:to] {
		out.Items = append(out.Items, itemProto(&it))
	}
	for i := range c.Pools {
		out.Pools = append(out.Pools, c.Pools[i].ID)
	}
	return out, nil
}

func itemProto(it *catalog.Item) *kujiv1.Item {
	return &kujiv1.Item{Id: it.ID, Kind: kindProto(it.Kind), Name: it.Name}
}

// namesIn returns what the items are that an answer names. So whoever may read the answer learns their
// names, and nothing of the rest of the catalog.
func namesIn(ctx context.Context, r *kuji.Realm, answer proto.Message) ([]*kujiv1.Item, error) {
	named := map[string]bool{}
	itemsNamed(answer.ProtoReflect(), named)
	items, err := r.Catalogs().Items(ctx, slices.Collect(maps.Keys(named)))
	return each(items, itemProto), err
}

// itemsNamed adds the items that a message names: in fields with the name item, and in what a condition
// wants the player to lack.
func itemsNamed(m protoreflect.Message, to map[string]bool) {
	if c, ok := m.Interface().(*kujiv1.Condition); ok {
		for _, item := range c.GetLacks() {
			to[item] = true
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() == protoreflect.StringKind && f.Name() == "item":
			to[v.String()] = true
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				itemsNamed(v.List().Get(i).Message(), to)
			}
		default:
			itemsNamed(v.Message(), to)
		}
		return true
	})
}

func (h rewardService) ExportCatalog(ctx context.Context, req *kujiv1.ExportCatalogRequest) (*kujiv1.ExportCatalogResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	var v kuji.CatalogView
	if version := req.GetVersion(); version > 0 {
		v, err = r.Catalogs().Version(ctx, version)
	} else {
		v, err = r.Catalogs().InForce(ctx)
	}
	if err != nil {
		return nil, err
	}
	if v.Catalog == nil {
		return nil, &kuji.Error{Code: kuji.CodeNotFound, Field: "catalog", Message: fmt.Sprintf("realm %q has no catalog yet", r.Name())}
	}
	return &kujiv1.ExportCatalogResponse{Version: v.Version, Hash: v.Hash[:], Yaml: v.Catalog.AppendYAML(nil)}, nil
}

const (
	// defaultVersions and maxVersions are how many versions of a catalog an answer has, and how many it
	// can have.
	defaultVersions = 100
	maxVersions     = 1000
)

func (h rewardService) ListCatalogs(ctx context.Context, req *kujiv1.ListCatalogsRequest) (*kujiv1.ListCatalogsResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	limit := int(req.GetLimit())
	switch {
	case limit > maxVersions:
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "limit", Message: fmt.Sprintf("is %d, want at most %d", limit, maxVersions)}
	case limit == 0:
		limit = defaultVersions
	}
	all, err := r.Catalogs().Versions(ctx)
	if err != nil {
		return nil, err
	}
	out := &kujiv1.ListCatalogsResponse{}
	if len(all) > 0 {
		out.Oldest = all[0].Version
	}
	for _, v := range slices.Backward(all) {
		if req.GetBefore() > 0 && v.Version >= req.GetBefore() {
			continue
		}
		if len(out.Catalogs) == limit {
			break
		}
		out.Catalogs = append(out.Catalogs, &kujiv1.CatalogVersion{
			Version: v.Version, Hash: v.Hash[:], Position: v.Position, TimeUnixMs: v.Time, Name: v.Name, Items: uint32(v.Items), Pools: uint32(v.Pools),
			By: v.Note.By, Reason: v.Note.Reason, Metadata: v.Note.Metadata,
		})
	}
	return out, nil
}

func kindProto(k catalog.ItemKind) kujiv1.ItemKind {
	switch k {
	case catalog.KindItem:
		return kujiv1.ItemKind_ITEM_KIND_ITEM
	case catalog.KindCurrency:
		return kujiv1.ItemKind_ITEM_KIND_CURRENCY
	}
	return kujiv1.ItemKind_ITEM_KIND_UNSPECIFIED
}

func (h adminService) ApplyCatalog(ctx context.Context, req *kujiv1.ApplyCatalogRequest) (*kujiv1.ApplyCatalogResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	c, err := catalog.ParseContext(ctx, req.GetYaml())
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "yaml", Err: err}
	}
	plan, err := r.Catalogs().Plan(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &kujiv1.ApplyCatalogResponse{Plan: planProto(&plan)}
	over, expected := req.GetExpectedVersion(), req.ExpectedVersion != nil
	if req.GetDryRun() {
		if in := plan.Version - 1; expected && !plan.Unchanged && in != over {
			return nil, &kuji.Error{Code: kuji.CodeConflict, Field: "version", Message: fmt.Sprintf("version %d is in force, not %d", in, over)}
		}
		return out, nil
	}
	o := kuji.ApplyOptions{Note: h.s.note(ctx, req)}
	if expected {
		o.Over = &over
	}
	res, err := r.Catalogs().Apply(ctx, c, o)
	if err != nil {
		return nil, err
	}
	if !plan.Unchanged {
		h.s.log.Info("catalog applied", "realm", r.Name(), "version", res.Receipt.CatalogVersion, "position", res.Receipt.Position,
			"changes", len(plan.Changes), "warnings", plan.Warnings(), "by", o.Note.By, "reason", o.Note.Reason)
	}
	out.Result = resultProto(&res)
	return out, nil
}

func planProto(p *kuji.Plan) *kujiv1.Plan {
	out := &kujiv1.Plan{Unchanged: p.Unchanged, Version: p.Version, Kept: uint32(p.Kept), Changes: make([]*kujiv1.Change, len(p.Changes))}
	for i := range p.Changes {
		c := &p.Changes[i]
		to := &kujiv1.Change{
			// The contract's names are the engine's in capitals; a test checks all of them.
			Kind: kujiv1.ChangeKind(kujiv1.ChangeKind_value["CHANGE_KIND_"+strings.ToUpper(string(c.Kind))]),
			Id:   c.ID, Entry: c.Entry, Drawn: c.Drawn, Warning: c.Warning, Text: c.Text,
			Settings: each(c.Settings, func(s *kuji.Setting) *kujiv1.Setting {
				return &kujiv1.Setting{Name: s.Name, Before: s.Before, After: s.After}
			}),
		}
		if c.Entry != "" {
			if to.Kind != kujiv1.ChangeKind_CHANGE_KIND_ENTRY_ADDED {
				to.Before = &kujiv1.EntryStock{Unlimited: c.UnlimitedBefore, Stock: c.StockBefore, Left: c.LeftBefore}
			}
			if to.Kind != kujiv1.ChangeKind_CHANGE_KIND_ENTRY_REMOVED {
				to.After = &kujiv1.EntryStock{Unlimited: c.UnlimitedAfter, Stock: c.StockAfter, Left: c.LeftAfter}
			}
		}
		out.Changes[i] = to
	}
	return out
}
