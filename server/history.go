package server

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/feeds"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// History answers what happened in realms, from databases that follow their feeds. Calls may be
// concurrent. Requests are checked, except for names; their limit is at most 1000.
type History interface {
	// Follow begins to follow a realm, if that is not done yet, and returns at once.
	Follow(r *kuji.Realm)
	// Events returns the newest events that a request asks for, and an answer without them.
	Events(ctx context.Context, realm string, req *kujiv1.GetHistoryRequest) ([]kuji.Record, *kujiv1.GetHistoryResponse, error)
	// Players returns players after an id, sorted.
	Players(ctx context.Context, realm string, req *kujiv1.ListPlayersRequest) (*kujiv1.ListPlayersResponse, error)
	// Holders returns who holds an item, after a player.
	Holders(ctx context.Context, realm string, req *kujiv1.ListHoldersRequest) (*kujiv1.ListHoldersResponse, error)
	// Wait waits until every event of a realm up to a position is there.
	Wait(ctx context.Context, realm string, position uint64) error
	// State returns what the history has of a realm, without the lag; nil if it has nothing yet.
	State(realm string) *kujiv1.HistoryState
	// Down returns why a realm that is followed is not kept up to date now; nil if it is.
	Down(realm string) error
}

// historyReads is how many reads of histories are carried out at a time.
const historyReads = 8

// past answers from the history.
type past struct {
	history History // nil: the server keeps none
}

// check refuses a request that cannot be answered. With fresh, the history then has all that was
// acknowledged.
func (h past) check(ctx context.Context, req interface {
	GetFresh() bool
	GetLimit() uint32
}) error {
	if h.history == nil {
		return &kuji.Error{Code: kuji.CodeConflict, Message: "this server keeps no history: see --history of kuji serve"}
	}
	if r := realmOf(ctx); req.GetFresh() {
		if err := h.history.Wait(ctx, r.Name(), r.Stats().LastEvent); err != nil {
			return historyError(r.Name(), err)
		}
	}
	_, err := pageLimit("limit", req.GetLimit(), 0, MaxHistoryPage)
	return err
}

// historyError translates an error of a history: with a reason of its own, since the realm works
// without it, and without the database's place, which is for the log.
func historyError(realm string, err error) error {
	var how string
	switch kuji.CodeOf(err) {
	case kuji.CodeFailed:
		how = "cannot be read now"
	case kuji.CodeOverloaded:
		how = "is not open yet"
	case kuji.CodeCorrupt:
		how = "is damaged, and the server builds it again from the log"
	default:
		return err
	}
	text := fmt.Sprintf("the history of realm %q %s; the realm goes on: ask again later", realm, how)
	return contract.Refused(connect.CodeUnavailable, kujiv1.Reason_REASON_HISTORY, errors.New(text))
}

func (h past) GetHistory(ctx context.Context, req *kujiv1.GetHistoryRequest) (*kujiv1.GetHistoryResponse, error) {
	if err := h.check(ctx, req); err != nil {
		return nil, err
	}
	if req.Before != nil && req.GetBefore().GetPosition() == 0 {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "before.position", Message: "is 0, want a position from 1 on"}
	}
	events, out, err := h.history.Events(ctx, realmOf(ctx).Name(), req)
	want := feeds.Filter{Player: req.GetPlayer(), Pool: req.GetPool(), Bare: accessOf(ctx).Player != ""}
	for i := range events {
		if want.Keep(&events[i]) {
			out.Events = append(out.Events, message.Event(&events[i]))
		}
	}
	return answered(ctx, out, err)
}

func (h past) ListPlayers(ctx context.Context, req *kujiv1.ListPlayersRequest) (*kujiv1.ListPlayersResponse, error) {
	if err := h.check(ctx, req); err != nil {
		return nil, err
	}
	out, err := h.history.Players(ctx, realmOf(ctx).Name(), req)
	return answered(ctx, out, err)
}

func (h past) ListHolders(ctx context.Context, req *kujiv1.ListHoldersRequest) (*kujiv1.ListHoldersResponse, error) {
	if err := h.check(ctx, req); err != nil {
		return nil, err
	}
	out, err := h.history.Holders(ctx, realmOf(ctx).Name(), req)
	return answered(ctx, out, err)
}

// answered returns an answer with the lag of the history, or why there is no answer.
func answered[M interface{ GetState() *kujiv1.HistoryState }](ctx context.Context, out M, err error) (M, error) {
	r := realmOf(ctx)
	if err != nil {
		return out, historyError(r.Name(), err)
	}
	out.GetState().Lag = lag(r.Stats().LastEvent, out.GetState())
	return out, nil
}

// lag returns by how many positions a history is behind the realm's last event.
func lag(last uint64, h *kujiv1.HistoryState) uint64 { return last - min(last, h.GetPosition()) }
