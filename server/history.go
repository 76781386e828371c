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

// History answers what happened in realms, from databases that follow their feeds. Its methods may
// be called concurrently. The limit of a page is at most 1000; 0 means 100.
type History interface {
	// Follow begins to follow a realm, if that is not done yet, and returns at once.
	Follow(r *kuji.Realm)
	// Events returns the newest events that a query asks for, with balances in their changes.
	Events(ctx context.Context, realm string, q HistoryQuery) (HistoryPage, error)
	// Players returns players after an id, sorted.
	Players(ctx context.Context, realm, after string, limit int) (HistoryPlayers, error)
	// Holders returns who holds an item, after a player.
	Holders(ctx context.Context, realm, item, after string, limit int) (HistoryHolders, error)
	// Wait waits until every event of a realm up to a position is there.
	Wait(ctx context.Context, realm string, position uint64) error
	// State returns what the history has of a realm. ok is false if it has nothing yet.
	State(realm string) (st HistoryState, ok bool)
	// Down returns why a realm that is followed is not kept up to date now; nil if it is.
	Down(realm string) error
}

// HistoryPlace is the place of an event in a realm's log.
type HistoryPlace struct {
	Position uint64
	Index    int
}

// HistoryQuery asks for events about a player, a pool or an item, or an item of a player.
type HistoryQuery struct {
	Player, Pool, Item string
	Before             HistoryPlace // zero: the newest
	Limit              int
}

// HistoryState says what a history knows.
type HistoryState struct {
	Position     uint64 // it has every event up to here
	CompleteFrom uint64 // it has had every event from this position on
	KeptFrom     uint64 // it keeps events from this position on; 0: it has removed none
	KeptFromTime int64  // the time of the oldest that is kept, in Unix milliseconds
	ProvenFrom   uint64 // from this position on every event is known to be as the log has it; 0: all are
}

// HistoryPage is some events, the newest first.
type HistoryPage struct {
	Events []kuji.Record
	More   bool // there may be older ones, before Before
	Before HistoryPlace
	State  HistoryState
}

// HistoryPlayers is some players. More says that others follow.
type HistoryPlayers struct {
	Players []string
	More    bool
	State   HistoryState
}

// HistoryHolder is a player who holds an item.
type HistoryHolder struct {
	Player   string
	Quantity uint64 // from 1
}

// HistoryHolders is some players who hold an item. More says that others follow.
type HistoryHolders struct {
	Holders []HistoryHolder
	More    bool
	State   HistoryState
}

// historyReads is how many reads of histories are carried out at a time.
const historyReads = 8

// past answers from the history.
type past struct {
	history History // nil: the server keeps none
}

// of returns the realm that a request is about, and how much it asks for. If the request says
// fresh, the history then has all that the realm has acknowledged.
func (h past) of(ctx context.Context, req interface {
	GetRealm() string
	GetFresh() bool
	GetLimit() uint32
}) (*kuji.Realm, int, error) {
	r := realmOf(ctx)
	if h.history == nil {
		return nil, 0, &kuji.Error{Code: kuji.CodeConflict, Message: "this server keeps no history: see --history of kuji serve"}
	}
	if req.GetFresh() {
		if err := h.history.Wait(ctx, r.Name(), r.Stats().LastEvent); err != nil {
			return nil, 0, historyError(r.Name(), err)
		}
	}
	limit, err := pageLimit("limit", req.GetLimit(), 0, MaxHistoryPage)
	return r, limit, err
}

// historyError translates an error of a history. The realm works without its history, so the error
// has a reason of its own. It does not say where the database is: that is for the log.
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
	r, limit, err := h.of(ctx, req)
	if err != nil {
		return nil, err
	}
	q := HistoryQuery{Player: req.GetPlayer(), Pool: req.GetPool(), Item: req.GetItem(), Limit: limit}
	if b := req.GetBefore(); b != nil {
		if b.GetPosition() == 0 {
			return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "before.position", Message: "is 0, want a position from 1 on"}
		}
		q.Before = HistoryPlace{b.GetPosition(), int(b.GetIndex())}
	}
	page, err := h.history.Events(ctx, r.Name(), q)
	if err != nil {
		return nil, historyError(r.Name(), err)
	}
	want := feeds.Filter{Player: q.Player, Pool: q.Pool, Bare: accessOf(ctx).Player != ""}
	out := &kujiv1.GetHistoryResponse{State: historyState(r, page.State)}
	for i := range page.Events {
		if want.Keep(&page.Events[i]) {
			out.Events = append(out.Events, message.Event(&page.Events[i]))
		}
	}
	if page.More {
		out.Before = &kujiv1.EventPlace{Position: page.Before.Position, Index: uint32(page.Before.Index)}
	}
	return out, nil
}

func (h past) ListPlayers(ctx context.Context, req *kujiv1.ListPlayersRequest) (*kujiv1.ListPlayersResponse, error) {
	r, limit, err := h.of(ctx, req)
	if err != nil {
		return nil, err
	}
	page, err := h.history.Players(ctx, r.Name(), req.GetAfter(), limit)
	if err != nil {
		return nil, historyError(r.Name(), err)
	}
	return &kujiv1.ListPlayersResponse{Players: page.Players, More: page.More, State: historyState(r, page.State)}, nil
}

func (h past) ListHolders(ctx context.Context, req *kujiv1.ListHoldersRequest) (*kujiv1.ListHoldersResponse, error) {
	r, limit, err := h.of(ctx, req)
	if err != nil {
		return nil, err
	}
	page, err := h.history.Holders(ctx, r.Name(), req.GetItem(), req.GetAfter(), limit)
	if err != nil {
		return nil, historyError(r.Name(), err)
	}
	return &kujiv1.ListHoldersResponse{More: page.More, State: historyState(r, page.State), Holders: message.Each(page.Holders, func(h *HistoryHolder) *kujiv1.Holder {
		return &kujiv1.Holder{Player: h.Player, Quantity: h.Quantity}
	})}, nil
}

// historyState returns how far a history has come, and its lag.
func historyState(r *kuji.Realm, st HistoryState) *kujiv1.HistoryState {
	out := &kujiv1.HistoryState{Position: st.Position, CompleteFrom: st.CompleteFrom, KeptFrom: st.KeptFrom, KeptFromUnixMs: st.KeptFromTime, ProvenFrom: st.ProvenFrom}
	if last := r.Stats().LastEvent; last > st.Position {
		out.Lag = last - st.Position
	}
	return out
}
