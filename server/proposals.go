package server

import (
	"context"
	"log/slog"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// proposals answers what is asked about catalogs that wait for somebody's approval.
type proposals struct {
	log *slog.Logger
}

// ProposeCatalog lets a catalog wait.
func (h proposals) ProposeCatalog(ctx context.Context, req *kujiv1.ProposeCatalogRequest) (*kujiv1.ProposeCatalogResponse, error) {
	r := realmOf(ctx)
	c, err := parse(ctx, req.GetYaml())
	if err != nil {
		return nil, err
	}
	plan, err := r.Catalogs().Plan(ctx, c)
	if err != nil {
		return nil, err
	}
	p, err := kuji.ProposalsOf(r).Propose(ctx, c, req.ExpectedVersion, noteOf(ctx, req))
	if err != nil {
		return nil, err
	}
	h.log.Info("catalog proposed", "realm", r.Name(), "proposal", p.Number, "over", p.Over, "by", p.Note.By, "reason", p.Note.Reason)
	return &kujiv1.ProposeCatalogResponse{Proposal: message.Proposal(&p), Plan: message.Plan(&plan)}, nil
}

// ListProposals returns what waits.
func (h proposals) ListProposals(ctx context.Context, _ *kujiv1.ListProposalsRequest) (*kujiv1.ListProposalsResponse, error) {
	all, err := kuji.ProposalsOf(realmOf(ctx)).All(ctx)
	return &kujiv1.ListProposalsResponse{Proposals: message.Each(all, message.Proposal)}, err
}

// GetProposal returns a catalog that waits.
func (h proposals) GetProposal(ctx context.Context, req *kujiv1.GetProposalRequest) (*kujiv1.GetProposalResponse, error) {
	r := realmOf(ctx)
	p, c, err := kuji.ProposalsOf(r).Get(ctx, req.GetNumber())
	if err != nil {
		return nil, err
	}
	out := &kujiv1.GetProposalResponse{Proposal: message.Proposal(&p), Yaml: c.AppendYAML(nil)}
	plan, err := r.Catalogs().Plan(ctx, c)
	if kuji.CodeOf(err) == kuji.CodeConflict {
		return out, nil // another catalog is in force by now, which it does not fit
	}
	out.Plan = message.Plan(&plan)
	return out, err
}

// WithdrawProposal drops a catalog that waits.
func (h proposals) WithdrawProposal(ctx context.Context, req *kujiv1.WithdrawProposalRequest) (*kujiv1.WithdrawProposalResponse, error) {
	r, n := realmOf(ctx), noteOf(ctx, req)
	ok, err := kuji.ProposalsOf(r).Withdraw(ctx, req.GetNumber(), n)
	if err != nil {
		return nil, err
	}
	if ok {
		h.log.Info("proposal withdrawn", "realm", r.Name(), "proposal", req.GetNumber(), "by", n.By, "reason", n.Reason)
	}
	return &kujiv1.WithdrawProposalResponse{Withdrawn: ok}, nil
}

// ApproveCatalog puts a catalog that waits in force.
func (h proposals) ApproveCatalog(ctx context.Context, req *kujiv1.ApproveCatalogRequest) (*kujiv1.ApproveCatalogResponse, error) {
	r, n := realmOf(ctx), noteOf(ctx, req)
	res, err := kuji.ProposalsOf(r).Approve(ctx, req.GetNumber(), n)
	if err != nil {
		return nil, err
	}
	h.log.Info("catalog applied", "realm", r.Name(), "version", res.Receipt.CatalogVersion, "position", res.Receipt.Position,
		"proposal", req.GetNumber(), "by", n.By, "reason", n.Reason)
	return &kujiv1.ApproveCatalogResponse{Result: message.Result(&res)}, nil
}
