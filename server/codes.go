package server

import (
	"context"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// codes imports, shows and exports lists of codes.
type codes struct{}

func (codes) ImportCodes(ctx context.Context, req *kujiv1.ImportCodesRequest) (*kujiv1.ImportCodesResponse, error) {
	res, err := realmOf(ctx).Codes().Import(ctx, req.GetList(), req.GetCodes())
	return &kujiv1.ImportCodesResponse{Added: res.Added, List: codeList(&res.List)}, err
}

func (codes) GetCodes(ctx context.Context, req *kujiv1.GetCodesRequest) (*kujiv1.GetCodesResponse, error) {
	v, err := realmOf(ctx).Codes().List(ctx, req.GetList())
	return &kujiv1.GetCodesResponse{List: codeList(&v)}, err
}

func (codes) ExportCodes(ctx context.Context, req *kujiv1.ExportCodesRequest) (*kujiv1.ExportCodesResponse, error) {
	limit, err := pageLimit("limit", req.GetLimit(), DefaultPage, MaxPage)
	if err != nil {
		return nil, err
	}
	all := realmOf(ctx).Codes()
	export := all.Given
	if req.GetRedeemed() {
		export = all.Used
	}
	v, some, err := export(ctx, req.GetList(), req.GetOffset(), limit)
	return &kujiv1.ExportCodesResponse{List: codeList(&v), Codes: message.Each(some, func(g *kuji.GivenCode) *kujiv1.GivenCode {
		return &kujiv1.GivenCode{Code: g.Code.Code, Number: g.Code.Number, Player: g.Player, Position: g.Position, TimeUnixMs: g.Time}
	})}, err
}

func codeList(v *kuji.CodesView) *kujiv1.CodeList {
	return &kujiv1.CodeList{List: v.List, Codes: v.Codes, Given: v.Given, Position: v.Position, Redeemed: v.Redeemed, Uses: v.Uses}
}
