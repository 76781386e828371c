package client

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Events yields each event that req asks for once, in order, as they come, and goes on after a break. A
// message without events says how far the feed has come. It ends with an error when the context ends, the
// server refuses the feed, or no message came for the client's timeout.
func (c *Client) Events(ctx context.Context, req *kujiv1.StreamEventsRequest) iter.Seq2[*kujiv1.StreamEventsResponse, error] {
	return func(yield func(*kujiv1.StreamEventsResponse, error) bool) {
		f := &feed{c: c, req: proto.CloneOf(req)}
		t := tries{Client: c, ctx: ctx, what: "the feed broke off"}
		for {
			t.at = c.servers.at.Load()
			came, err := f.follow(ctx, yield)
			if came {
				t.began, t.pause = time.Time{}, 0
			}
			if errors.Is(err, errEnough) {
				return
			}
			if err = t.again(ctx, err); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// errEnough says that the reader wants no more.
var errEnough = errors.New("the reader has enough")

// feed is a feed through all its streams.
type feed struct {
	c   *Client
	req *kujiv1.StreamEventsRequest
	// The last event that the reader has: after a break it may come again.
	position uint64
	index    uint32
}

// follow yields what one stream brings. came is true if that was anything.
func (f *feed) follow(ctx context.Context, yield func(*kujiv1.StreamEventsResponse, error) bool) (came bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil) // before Close, which would read on
	if f.c.options.Silence > 0 {
		silence := time.AfterFunc(f.c.options.Silence, func() { cancel(errSilent) })
		defer silence.Stop()
		inner := yield
		yield = func(m *kujiv1.StreamEventsResponse, err error) bool {
			silence.Stop() // the reader may take its time
			defer silence.Reset(f.c.options.Silence)
			return inner(m, err)
		}
	}
	s, err := f.c.StreamEvents(ctx, f.req)
	if err != nil {
		return false, cmp.Or(silent(ctx), err)
	}
	for s.Receive() {
		came = true
		msg := s.Msg()
		for len(msg.GetEvents()) > 0 && f.has(msg.GetEvents()[0]) {
			msg.Events = msg.GetEvents()[1:]
		}
		if n := len(msg.GetEvents()); n > 0 {
			f.position, f.index = msg.GetEvents()[n-1].GetPosition(), msg.GetEvents()[n-1].GetIndex()
		}
		f.req.From = proto.Uint64(msg.GetNext())
		if !yield(msg, nil) {
			return true, errEnough
		}
	}
	if err := cmp.Or(silent(ctx), s.Err()); err != nil {
		return came, err
	}
	return came, connect.NewError(connect.CodeUnavailable, errors.New("the server ended the feed"))
}

// silent returns [errSilent] if that has ended the stream.
func silent(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, errSilent) {
		return err
	}
	return nil
}

// has reports whether the reader has an event.
func (f *feed) has(e *kujiv1.Event) bool {
	return e.GetPosition() < f.position || e.GetPosition() == f.position && e.GetIndex() <= f.index
}
