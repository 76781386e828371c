package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/feeds"
)

// events sends streams of events, and backups.
type events struct {
	shares  *shares
	feeds   *feeds.Feeds
	journal *journal
	routes  *routes
}

// open checks a request for a stream. It returns the call and the realm.
func (h *events) open(ctx context.Context, req interface {
	proto.Message
	GetRealm() string
}) (*call, *kuji.Realm, error) {
	c := callOf(ctx)
	c.about(req)
	if err := h.shares.hold(ctx, req); err != nil {
		return nil, nil, err
	}
	if err := c.access.Permit(req); err != nil {
		return nil, nil, err
	}
	r, err := h.shares.realms.get(req.GetRealm())
	return c, r, err
}

func (h *events) StreamEvents(ctx context.Context, req *kujiv1.StreamEventsRequest, out *connect.ServerStream[kujiv1.StreamEventsResponse]) error {
	return h.stream(ctx, req, out.Send)
}

// stream sends what a request asks for, until it ends.
func (h *events) stream(ctx context.Context, req *kujiv1.StreamEventsRequest, send func(*kujiv1.StreamEventsResponse) error) error {
	c, r, err := h.open(ctx, req)
	if err != nil {
		return err
	}
	to := &feeds.Client{Writer: &c.answer, Access: c.access, Role: c.endpoint.role, Sent: func(events int) {
		c.messages++
		c.units += int64(events)
	}}
	return h.feeds.Events(ctx, r, to, req, send)
}

func (h *events) Backup(ctx context.Context, req *kujiv1.BackupRequest, out *connect.ServerStream[kujiv1.BackupResponse]) error {
	c, r, err := h.open(ctx, req)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := h.feeds.Backup(ctx, r, &c.answer, req.GetFromCursor(), out.Send); err != nil {
		return err
	}
	h.shares.realms.backedUp(r, began)
	return nil
}

// serve answers a browser that asks for events.
func (h *events) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "want GET", http.StatusMethodNotAllowed)
		return
	}
	out := feeds.NewWriter(w)
	req, err := feeds.Asked(r)
	if err == nil {
		err = h.stream(r.Context(), req, out.Send)
	}
	i := interceptor{journal: h.journal}
	if err = i.finish(r.Context(), req, err); err == nil {
		return
	}
	ce, _ := errors.AsType[*connect.Error](err)
	if !out.Begun {
		if err := h.routes.errors.Write(w, r, ce); err != nil {
			h.journal.log.Debug("writing an error failed", "error", err)
		}
		return
	}
	out.End(ce) // the client may be gone
}
