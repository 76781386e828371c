package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// catalogs answers what is asked about catalogs, and puts them in force.
type catalogs struct {
	log       *slog.Logger
	simulator Simulator // may be nil
	published *published
}

func (h catalogs) GetCatalog(ctx context.Context, req *kujiv1.GetCatalogRequest) (*kujiv1.GetCatalogResponse, error) {
	v, err := realmOf(ctx).Catalogs().InForce(ctx)
	if err != nil {
		return nil, err
	}
	show, err := shower(ctx, req)
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
		ItemCount: uint32(len(c.Items)), Start: message.Stacks(c.Start),
		Idempotency: &kujiv1.Idempotency{Count: c.Idempotency.Count, AgeMs: c.Idempotency.Age.Milliseconds(),
			TimeOrdered: c.Idempotency.IDs == catalog.IDsTimeOrdered, AheadMs: c.Idempotency.Ahead.Milliseconds()},
	}
	for _, it := range c.Items[from:to] {
		out.Items = append(out.Items, show.Item(&it))
	}
	for i := range c.Pools {
		out.Pools = append(out.Pools, c.Pools[i].ID)
	}
	return out, nil
}

func (h catalogs) ExportCatalog(ctx context.Context, req *kujiv1.ExportCatalogRequest) (*kujiv1.ExportCatalogResponse, error) {
	r := realmOf(ctx)
	v, err := catalogVersion(ctx, r, req.GetVersion())
	if err != nil {
		return nil, err
	}
	return &kujiv1.ExportCatalogResponse{Version: v.Version, Hash: v.Hash[:], Yaml: v.Catalog.AppendYAML(nil)}, nil
}

// noCatalog says that a realm has none.
func noCatalog(r *kuji.Realm) error {
	return &kuji.Error{Code: kuji.CodeNotFound, Field: "catalog", Message: fmt.Sprintf("realm %q has no catalog yet", r.Name())}
}

const (
	// defaultVersions and maxVersions are how many versions of a catalog an answer has, by default
	// and at most.
	defaultVersions = 100
	maxVersions     = 1000
)

func (h catalogs) ListCatalogs(ctx context.Context, req *kujiv1.ListCatalogsRequest) (*kujiv1.ListCatalogsResponse, error) {
	limit, err := pageLimit("limit", req.GetLimit(), defaultVersions, maxVersions)
	if err != nil {
		return nil, err
	}
	all, err := realmOf(ctx).Catalogs().Versions(ctx)
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

func (h catalogs) ApplyCatalog(ctx context.Context, req *kujiv1.ApplyCatalogRequest) (*kujiv1.ApplyCatalogResponse, error) {
	r := realmOf(ctx)
	c, err := parse(ctx, req.GetYaml())
	if err != nil {
		return nil, err
	}
	plan, err := r.Catalogs().Plan(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &kujiv1.ApplyCatalogResponse{Plan: message.Plan(&plan)}
	over, expected := req.GetExpectedVersion(), req.ExpectedVersion != nil
	if req.GetDryRun() {
		if in := plan.Version - 1; expected && !plan.Unchanged && in != over {
			return nil, &kuji.Error{Code: kuji.CodeConflict, Field: "version", Message: fmt.Sprintf("version %d is in force, not %d", in, over)}
		}
		if req.GetLanguage() != "" {
			show, err := message.NewShower(c, req.GetLanguage())
			if err != nil {
				return nil, err
			}
			out.Outline = show.Outline()
		}
		return out, nil
	}
	o := kuji.ApplyOptions{Note: noteOf(ctx, req)}
	if expected {
		o.Over = &over
	}
	res, err := r.Catalogs().Apply(ctx, c, o)
	if err != nil {
		return nil, err
	}
	if !plan.Unchanged {
		h.log.Info("catalog applied", "realm", r.Name(), "version", res.Receipt.CatalogVersion, "position", res.Receipt.Position,
			"changes", len(plan.Changes), "warnings", plan.Warnings(), "by", o.Note.By, "reason", o.Note.Reason)
	}
	out.Result = message.Result(&res)
	return out, nil
}
