package server

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// A Simulator tries a catalog on simulated players. It uses one core, and stops when ctx ends. An
// impossible request gets CodeInvalid with the field.
type Simulator func(ctx context.Context, c *catalog.Catalog, req *kujiv1.SimulateRequest) (*kujiv1.SimulateResponse, error)

// Bounds of a simulation by an RPC, which takes a core for some seconds.
const (
	defaultSimulatedPlayers = 1000
	defaultSimulatedDraws   = 100
	maxSimulatedDraws       = 1_000_000 // of all players
	maxSimulatedLists       = catalog.MaxRedeemLists
	maxSimulatedProgress    = 64
)

// Simulate tries a catalog on simulated players.
func (h catalogs) Simulate(ctx context.Context, req *kujiv1.SimulateRequest) (*kujiv1.SimulateResponse, error) {
	if h.simulator == nil {
		return nil, connect.NewError(connect.CodeUnimplemented, errors.New("this server has no simulations"))
	}
	if req.Players == 0 {
		req.Players = defaultSimulatedPlayers
	}
	req.Count = max(1, req.GetCount())
	if req.Draws == 0 {
		req.Draws = defaultSimulatedDraws * req.GetCount()
	}
	if all := uint64(req.GetPlayers()) * uint64(req.GetDraws()); all > maxSimulatedDraws {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "draws", Message: fmt.Sprintf("%d players with %d draws each are %d draws, want at most %d", req.GetPlayers(), req.GetDraws(), all, maxSimulatedDraws)}
	}
	c, err := h.simulated(ctx, req)
	if err != nil {
		return nil, err
	}
	return h.simulator(ctx, c, req)
}

// simulated returns the catalog of a simulation.
func (h catalogs) simulated(ctx context.Context, req *kujiv1.SimulateRequest) (*catalog.Catalog, error) {
	if len(req.GetYaml()) > 0 {
		return parse(ctx, req.GetYaml())
	}
	v, err := realmOf(ctx).Catalogs().InForce(ctx)
	if err == nil && v.Catalog == nil {
		err = noCatalog(realmOf(ctx))
	}
	return v.Catalog, err
}

// parse reads a catalog that a request has.
func parse(ctx context.Context, yaml []byte) (*catalog.Catalog, error) {
	c, err := catalog.ParseContext(ctx, yaml)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "yaml", Err: err}
	}
	return c, nil
}
