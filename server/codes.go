package server

import (
	"context"
	"fmt"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h adminService) ImportCodes(ctx context.Context, req *kujiv1.ImportCodesRequest) (*kujiv1.ImportCodesResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	res, err := r.Codes().Import(ctx, req.GetList(), req.GetCodes())
	if err != nil {
		return nil, err
	}
	return &kujiv1.ImportCodesResponse{Added: res.Added, List: codeListProto(&res.List)}, nil
}

func (h adminService) GetCodes(ctx context.Context, req *kujiv1.GetCodesRequest) (*kujiv1.GetCodesResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	v, err := r.Codes().List(ctx, req.GetList())
	if err != nil {
		return nil, err
	}
	return &kujiv1.GetCodesResponse{List: codeListProto(&v)}, nil
}

func (h adminService) ExportCodes(ctx context.Context, req *kujiv1.ExportCodesRequest) (*kujiv1.ExportCodesResponse, error) {
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return nil, err
	}
	limit := req.GetLimit()
	switch {
	case limit > MaxPage:
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "limit", Message: fmt.Sprintf("is %d, want at most %d", limit, MaxPage)}
	case limit == 0:
		limit = DefaultPage
	}
	export := r.Codes().Given
	if req.GetRedeemed() {
		export = r.Codes().Used
	}
	v, some, err := export(ctx, req.GetList(), req.GetOffset(), int(limit))
	if err != nil {
		return nil, err
	}
	return &kujiv1.ExportCodesResponse{List: codeListProto(&v), Codes: each(some, func(g *kuji.GivenCode) *kujiv1.GivenCode {
		return &kujiv1.GivenCode{Code: g.Code.Code, Number: g.Code.Number, Player: g.Player, Position: g.Position, TimeUnixMs: g.Time}
	})}, nil
}

func codeListProto(v *kuji.CodesView) *kujiv1.CodeList {
	return &kujiv1.CodeList{List: v.List, Codes: v.Codes, Given: v.Given, Position: v.Position, Redeemed: v.Redeemed, Uses: v.Uses}
}
