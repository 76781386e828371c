// Package feeds sends streams out of a realm: its events as they happen, and backups. A slow reader
// delays no other. What old events look like, and which ones a key may see, other rooms decide.
package feeds

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// A stream of events, in short:
//
//	the reader:  take records from the realm's feed, leave out what was not asked for,
//	             send those of a position together
//	the beat:    every so often say how far the reader has come, and end the stream if its
//	             key is no longer good
//
// The reader waits while the client takes nothing. Nothing waits for the reader.

const (
	// eventsBeat is the time between two signs of life on a stream of events.
	eventsBeat = 10 * time.Second
	// eventsAtOnce is the most events in a message.
	eventsAtOnce = 256
)

// eventStream is one StreamEvents call.
type eventStream struct {
	access.Pass
	feeds  *Feeds
	client *Client
	req    *kujiv1.StreamEventsRequest
	send   func(*kujiv1.StreamEventsResponse) error
	want   Filter
	turn   readTurn
	ends   admission.Ends

	mu   sync.Mutex // held while a message is sent
	next uint64     // the position to continue from, after all messages so far
}

var (
	errFeedDraining = &kuji.Error{Code: kuji.CodeClosed, Message: "the server is shutting down: go on elsewhere, from the last position"}
	errFeedRevoked  = contract.Refused(connect.CodeUnauthenticated, kujiv1.Reason_REASON_UNAUTHENTICATED, errors.New("the key is no longer valid for this stream"))
)

// Feeds is what the streams of a server share.
type Feeds struct {
	Gate         *admission.Gate
	Keys         *access.Keys    // nil: a server without keys
	Stopping     context.Context // ends when streams must end
	WriteTimeout time.Duration   // that a client has to take a message
	readers      readerPlaces
}

// Client is who a stream goes to.
type Client struct {
	Writer http.ResponseWriter
	Access *access.Access
	Role   kujiv1.Role // that the client must keep
	Sent   func(events int)
}

// Events sends what a request asks for, until the stream ends.
func (f *Feeds) Events(ctx context.Context, r *kuji.Realm, c *Client, req *kujiv1.StreamEventsRequest, send func(*kujiv1.StreamEventsResponse) error) error {
	places, who := f.Readers(r.Name()), c.Access.Who
	if refusal := places.Take(who, 1); refusal != nil {
		return refusal
	}
	defer places.Give(who, 1)
	from := req.GetFrom()
	if req.From == nil {
		from = r.Stats().Position + 1
	} else if next := r.Stats().Position + 1; from > next { // before the client is told that it is connected
		return &kuji.Error{Code: kuji.CodeInvalid, Field: "from", Message: fmt.Sprintf("position %d; the next one is %d", from, next)}
	}
	st := &eventStream{
		Pass: access.NewPass(f.Keys, c.Access), feeds: f, client: c, req: req, send: send, next: max(from, 1),
		want: Filter{Player: req.GetPlayer(), Pool: req.GetPool(), Bare: c.Access.Player != ""},
		turn: readTurn{turns: f.Gate.Reads, who: who},
	}
	if st.want.Player != "" {
		if v, err := r.Player(kuji.Stale(ctx), st.want.Player); err == nil {
			st.want.Own = v.ID
		}
	}
	return st.run(ctx, r)
}

// run serves the stream to its end.
func (st *eventStream) run(ctx context.Context, r *kuji.Realm) error {
	if err := st.ends.Open(st.client.Writer, st.feeds.WriteTimeout); err != nil {
		return err
	}
	defer st.ends.Close()
	reading, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(st.feeds.Stopping, func() { end(errFeedDraining) })()
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
		if !st.StillMay(st.client.Role) || st.Permit(st.req) != nil {
			end(errFeedRevoked)
			return
		}
		if err := st.say(nil, 0); err != nil {
			end(err)
			return
		}
	}
}

// say sends a message. next is the position to continue from after it; 0: as before.
func (st *eventStream) say(events []*kujiv1.Event, next uint64) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if next > 0 {
		st.next = next
	}
	err := st.ends.Send(func() error { return st.send(&kujiv1.StreamEventsResponse{Events: events, Next: st.next}) })
	if err == nil {
		st.client.Sent(len(events))
	}
	return err
}

// came notes how far the reader has come when there is nothing to send.
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
	q := kuji.EventsQuery{From: st.next, Player: st.want.Player, Pool: st.want.Pool, Pace: pace}
	for rec, err := range r.Feed().Query(ctx, q) {
		if err != nil {
			return err
		}
		if st.want.Keep(&rec) {
			events = append(events, message.Event(&rec))
		}
		if len(events) >= eventsAtOnce && !rec.Last {
			if err := send(rec.Position); err != nil {
				return err
			}
		}
	}
	return nil
}

// Filter says which events a stream is about.
type Filter struct {
	Player, Pool string // "": all
	Own          string // the player's own name, if Player is another one
	Bare         bool   // without who asked and why
}

// is reports whether a name is one that the wanted player is asked for by, or has in events.
func (f *Filter) is(id string) bool { return id == f.Player || f.Own != "" && id == f.Own }

// keepRound is Keep for a record about a round.
func (f *Filter) keepRound(rec *kuji.Record) bool {
	if f.Player != "" && rec.Round != nil {
		own := *rec.Round
		own.Winners = slices.DeleteFunc(slices.Clone(own.Winners), func(w kuji.WinnerView) bool { return !f.is(w.Player) })
		rec.Round = &own
	}
	return f.Pool == "" && (f.Player == "" || f.is(rec.Player) || len(rec.Entrants)+len(rec.Claims)+len(rec.Changes)+len(rec.Beyond) > 0)
}

// keepEnded is Keep for a record that ends holds.
func (f *Filter) keepEnded(rec *kuji.Record) bool {
	if f.Player == "" {
		return f.Pool == ""
	}
	if slices.ContainsFunc(rec.Freed, func(of kuji.Freed) bool { return !f.is(of.Player) }) || len(rec.Freed) == 0 {
		rec.Outcomes, rec.Given = nil, nil // they do not say whose they are
	}
	rec.Freed = slices.DeleteFunc(rec.Freed, func(of kuji.Freed) bool { return !f.is(of.Player) })
	if rec.Due != nil {
		var own []string
		for _, of := range rec.Freed {
			if of.Hold != "" {
				own = append(own, of.Hold)
			}
		}
		rec.Due = &kuji.Due{Holds: own}
	}
	return f.Pool == "" && len(rec.Freed)+len(rec.Claims)+len(rec.Changes)+len(rec.Beyond) > 0
}

// keepParts removes parts of a hold that are about other members than those that are wanted.
func (f *Filter) keepParts(rec *kuji.Record) {
	if rec.Hold == nil {
		return
	}
	own := *rec.Hold
	own.Parts = nil
	for i := range min(len(rec.Members), len(rec.Hold.Parts)) {
		if f.names(&rec.Members[i]) {
			own.Parts = append(own.Parts, rec.Hold.Parts[i])
		}
	}
	rec.Hold = &own
}

// names reports whether a record that has no members names the player and the pool.
func (f *Filter) names(rec *kuji.Record) bool {
	return (f.Player == "" || f.is(rec.Player) || f.is(rec.To)) && (f.Pool == "" || rec.Pool == f.Pool)
}

// Keep reports whether a record is wanted. It removes parts that are not, such as other members.
func (f *Filter) Keep(rec *kuji.Record) bool {
	if f.Bare {
		rec.By, rec.Reason, rec.Metadata, rec.ProposedBy, rec.ProposedWhy = "", "", "", "", ""
	}
	if f.Player != "" {
		rec.Changes = slices.DeleteFunc(rec.Changes, func(c kuji.BalanceChange) bool { return !f.is(c.Player) })
		rec.Claims = slices.DeleteFunc(rec.Claims, func(c kuji.Claimed) bool { return c.Player != "" && !f.is(c.Player) })
		rec.Beyond = slices.DeleteFunc(rec.Beyond, func(b kuji.Beyond) bool { return b.Player != "" && !f.is(b.Player) })
		rec.Entrants = slices.DeleteFunc(rec.Entrants, func(id string) bool { return !f.is(id) })
	}
	if rec.Round != nil || rec.Due != nil && rec.Due.Round != 0 {
		return f.keepRound(rec)
	}
	if rec.Kind == "confirm" || rec.Kind == "cancel" || rec.Due != nil && len(rec.Due.Holds) > 0 {
		return f.keepEnded(rec)
	}
	if rec.Due != nil && f.Player != "" {
		if rec.Due.Counter != "" { // ranks are paid
			return f.Pool == "" && len(rec.Claims) > 0
		}
		own := slices.DeleteFunc(slices.Clone(rec.Due.Players), func(id string) bool { return !f.is(id) })
		if len(own) == 0 {
			return false
		}
		rec.Due = &kuji.Due{Swept: rec.Due.Swept, Players: own}
		return f.Pool == ""
	}
	if len(rec.Members) == 0 {
		return f.names(rec)
	}
	if f.Player != "" || f.Pool != "" {
		f.keepParts(rec)
		all := len(rec.Members)
		rec.Members = slices.DeleteFunc(rec.Members, func(m kuji.Record) bool { return !f.Keep(&m) })
		if f.Pool != "" && len(rec.Members) < all { // neither a change nor a claim names its member
			rec.Changes, rec.Claims, rec.Beyond = nil, nil, nil
		}
		rec.Subject, rec.Limit, rec.Lacks = "", nil, nil // of a member, which says it too
	}
	return len(rec.Members) > 0
}
