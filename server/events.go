package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// A stream of events, in short:
//
//	the reader:  take records from the realm's feed, leave out what was not asked for,
//	             send those of a position together
//	the beat:    every so often say how far the reader has come, and end the stream if its
//	             key is no longer good
//
// The reader waits while the client takes nothing. Nobody waits for the reader.

const (
	// eventsBeat is the time between two signs of life on a stream of events.
	eventsBeat = 10 * time.Second
	// eventsAtOnce is the most events in a message.
	eventsAtOnce = 256
)

// eventStream is one StreamEvents call.
type eventStream struct {
	pass
	call *call
	req  *kujiv1.StreamEventsRequest
	send func(*kujiv1.StreamEventsResponse) error
	want filter
	turn readTurn
	ends streamEnds
	late watch

	mu   sync.Mutex // held while a message is sent
	next uint64     // from where a reader goes on who has all that was sent
}

var (
	errFeedDraining = &kuji.Error{Code: kuji.CodeClosed, Message: "the server is shutting down: go on elsewhere, from the last position"}
	errFeedRevoked  = refused(connect.CodeUnauthenticated, kujiv1.Reason_REASON_UNAUTHENTICATED, errors.New("the key is no longer valid for this stream"))
)

func (h rewardService) StreamEvents(ctx context.Context, req *kujiv1.StreamEventsRequest, out *connect.ServerStream[kujiv1.StreamEventsResponse]) error {
	return h.s.streamEvents(ctx, req, out.Send)
}

// streamEvents sends what a request asks for, until it ends.
func (s *Server) streamEvents(ctx context.Context, req *kujiv1.StreamEventsRequest, send func(*kujiv1.StreamEventsResponse) error) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok || c.w == nil {
		return errors.New("the stream did not come through ServeHTTP")
	}
	c.about(req)
	if err := s.hold(ctx, req); err != nil {
		return err
	}
	if err := c.access.permit(req); err != nil {
		return err
	}
	r, err := s.realms.get(s.engine, req.GetRealm())
	if err != nil {
		return err
	}
	places, who := s.readers.of(r.Name(), s.o.Keys != nil), c.access.who
	if !places.take(who, 1) {
		return s.overloaded(who, places, "readers of the realm's feed are connected")
	}
	defer places.give(who, 1)
	from := req.GetFrom()
	if req.From == nil {
		from = r.Stats().Position + 1
	} else if next := r.Stats().Position + 1; from > next { // before the client is told that it is connected
		return &kuji.Error{Code: kuji.CodeInvalid, Field: "from", Message: fmt.Sprintf("position %d; the next one is %d", from, next)}
	}
	st := &eventStream{
		pass: newPass(s, c.access), call: c, req: req, send: send, next: max(from, 1),
		want: filter{player: req.GetPlayer(), pool: req.GetPool(), bare: c.access.player != ""},
		turn: readTurn{turns: s.reads, who: who},
	}
	return st.run(ctx, r)
}

// run serves the stream to its end.
func (st *eventStream) run(ctx context.Context, r *kuji.Realm) error {
	s := st.s
	if err := st.ends.open(st.call.w); err != nil {
		return fmt.Errorf("setting the timeouts of a stream: %w", err)
	}
	defer st.ends.close()
	st.late.start(s.o.Limits.WriteTimeout, st.ends.stopWriting)
	defer st.late.stop()
	reading, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.stopping, func() { end(errFeedDraining) })()
	if err := st.say(nil, st.next); err != nil { // so that the client knows at once that it is connected
		return err
	}
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		st.beat(reading, end)
	}()
	err := st.read(reading, r)
	cause := context.Cause(reading) // why the feed was ended, if it was
	end(nil)
	<-beating
	if reading.Err() != nil && cause != nil {
		return cause
	}
	return err
}

// beat sends signs of life until ctx ends.
func (st *eventStream) beat(ctx context.Context, end context.CancelCauseFunc) {
	beats := time.NewTicker(eventsBeat)
	defer beats.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beats.C:
		}
		if !st.stillAllowed(st.call.endpoint.role) || st.access.permit(st.req) != nil {
			end(errFeedRevoked)
			return
		}
		if err := st.say(nil, 0); err != nil {
			end(err)
			return
		}
	}
}

// say sends a message. next is where a reader goes on who has it; 0: where it was.
func (st *eventStream) say(events []*kujiv1.Event, next uint64) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if next > 0 {
		st.next = next
	}
	st.late.arm()
	defer st.late.disarm()
	err := st.send(&kujiv1.StreamEventsResponse{Events: events, Next: st.next})
	if err == nil {
		st.call.messages++
		st.call.units += int64(len(events))
	}
	return err
}

// came notes how far the reader has come without anything to send.
func (st *eventStream) came(next uint64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.next = next
}

// read sends what comes from the feed.
func (st *eventStream) read(ctx context.Context, r *kuji.Realm) error {
	defer st.turn.end()
	var events []*kujiv1.Event
	send := func(next uint64) error {
		if len(events) == 0 {
			st.came(next)
			return nil
		}
		st.turn.end() // the client may take its time
		err := st.say(events, next)
		events = nil
		return err
	}
	pace := func(ctx context.Context, at kuji.FeedPlace) error { // of a batch, everything was yielded
		if err := send(at.Next); err != nil {
			return err
		}
		return st.turn.pace(ctx, at)
	}
	q := kuji.EventsQuery{From: st.next, Player: st.want.player, Pool: st.want.pool, Pace: pace}
	for rec, err := range r.Feed().Query(ctx, q) {
		if err != nil {
			return err
		}
		if st.want.keep(&rec) {
			events = append(events, eventProto(&rec))
		}
		if len(events) >= eventsAtOnce && !rec.Last {
			if err := send(rec.Position); err != nil {
				return err
			}
		}
	}
	return nil
}

// filter says which events a stream is about.
type filter struct {
	player, pool string // "": all
	bare         bool   // without who asked and why
}

// keep reports whether a record is wanted. It takes out of it what is not: members of a group that
// are about others.
func (f *filter) keep(rec *kuji.Record) bool {
	if f.bare {
		rec.By, rec.Reason, rec.Metadata = "", "", ""
	}
	if f.player != "" {
		rec.Changes = slices.DeleteFunc(rec.Changes, func(c kuji.BalanceChange) bool { return c.Player != f.player })
	}
	if len(rec.Members) == 0 {
		return (f.player == "" || rec.Player == f.player || rec.To == f.player) && (f.pool == "" || rec.Pool == f.pool)
	}
	if f.player != "" || f.pool != "" {
		all := len(rec.Members)
		rec.Members = slices.DeleteFunc(rec.Members, func(m kuji.Record) bool { return !f.keep(&m) })
		if f.pool != "" && len(rec.Members) < all { // nobody knows whose changes they are
			rec.Changes = nil
		}
		rec.Subject, rec.Limit, rec.Lacks = "", nil, nil // of a member, which says it too
	}
	return len(rec.Members) > 0
}

func eventProto(rec *kuji.Record) *kujiv1.Event {
	m := &kujiv1.Event{
		Position: rec.Position, Index: uint32(rec.Index), TimeUnixMs: rec.Time, Kind: rec.Kind, RequestId: rec.ID,
		Status:  kujiv1.Status(kujiv1.Status_value["STATUS_"+strings.ToUpper(rec.Status)]),
		Subject: rec.Subject, Limit: limitProto(rec.Limit), Lacks: each(rec.Lacks, lackProto), CatalogVersion: rec.CatalogVersion, NewCatalogVersion: rec.NewCatalogVersion,
		Player: rec.Player, To: rec.To, Pool: rec.Pool, Count: uint32(rec.Count), List: rec.List, Number: rec.Number, Pay: rec.Pay,
		Items: stacksProto(rec.Items), Outcomes: each(rec.Outcomes, outcomeProto), Paid: stacksProto(rec.Paid),
		Track: rec.Track, Draws: rec.Draws, By: rec.By, Reason: rec.Reason, Metadata: rec.Metadata,
		Members: each(rec.Members, eventProto), Level: uint32(rec.Level), Bytes: uint32(rec.Bytes), Last: rec.Last,
		Changes: each(rec.Changes, func(c *kuji.BalanceChange) *kujiv1.BalanceChange {
			return &kujiv1.BalanceChange{Player: c.Player, Item: c.Item, Delta: c.Delta, Balance: c.Balance}
		}),
	}
	if c := rec.Clock; c != nil {
		m.Clock = &kujiv1.EventClock{ToUnixMs: c.To, By: c.By, Reason: c.Reason}
	}
	return m
}
