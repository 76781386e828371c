// Package historian keeps the histories of a server's realms: it follows each realm with a
// database, and answers the server from it. It retries a history that failed, and never delays its
// realm. Package history knows what a history is, and how it is read and written.
package historian

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/history"
	"github.com/kuji-dev/kuji/internal/step"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Historian is a server.History of all realms of a server.
type Historian struct {
	target func(realm string) string
	o      history.Options
	log    *slog.Logger
	ctx    context.Context
	end    context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	realms map[string]*chronicle
}

// chronicle is the history of a realm.
type chronicle struct {
	of   *kuji.Realm   // that is followed, or was; the historian's mu guards it
	done chan struct{} // closed when it is followed no more; the historian's mu guards it too

	mu  sync.Mutex
	db  *history.DB // nil: not open yet
	err error       // why it is not followed
	// unreadable says that the last read failed, and that the log says so.
	unreadable bool
}

// New returns a historian that keeps nothing yet. target returns where [history.Open] finds a realm's history.
func New(log *slog.Logger, target func(realm string) string, o history.Options) *Historian {
	h := &Historian{log: log, target: target, o: o, realms: map[string]*chronicle{}}
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

// Pauses between attempts to follow a realm.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Close ends all histories.
func (h *Historian) Close() error {
	h.mu.Lock()
	h.end() // no more are begun
	h.mu.Unlock()
	h.work.Wait()
	var all []error
	for _, c := range h.realms {
		if c.db != nil {
			all = append(all, c.db.Close())
		}
	}
	return errors.Join(all...)
}

// Follow implements [server.History]. A realm that was opened again is followed when its last life is over.
func (h *Historian) Follow(r *kuji.Realm) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.realms[r.Name()]
	if c == nil {
		c = &chronicle{}
		h.realms[r.Name()] = c
	}
	if c.of == r || h.ctx.Err() != nil {
		return
	}
	before, done := c.done, make(chan struct{})
	c.of, c.done = r, done
	h.work.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		h.keep(r, c)
	})
}

// keep follows a realm until the historian or the realm is closed.
func (h *Historian) keep(r *kuji.Realm, c *chronicle) {
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		begun := time.Now()
		err := c.follow(h.ctx, h.target(r.Name()), h.o, r)
		if h.ctx.Err() != nil || kuji.CodeOf(err) == kuji.CodeClosed || kuji.CodeOf(err) == kuji.CodeNotLeader {
			return
		}
		if time.Since(begun) > lastPause {
			wait = firstPause
		}
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		text := "the history is not kept; the realm goes on"
		if _, damaged := errors.AsType[*history.DamagedError](err); damaged {
			text = "the history is damaged and is built again from the log; the realm goes on"
		}
		h.log.Error(text, "realm", r.Name(), "error", err, "again_in", wait)
		step.Pause(h.ctx, wait)
	}
}

func (c *chronicle) follow(ctx context.Context, target string, o history.Options, r *kuji.Realm) error {
	if c.db == nil { // only this goroutine sets it
		db, err := history.Open(ctx, target, r.Name(), o)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.db = db
		c.mu.Unlock()
	}
	return c.db.Run(ctx, r.Feed().Events)
}

// of returns the history of a realm; nil if it has none.
func (h *Historian) of(realm string) *chronicle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.realms[realm]
}

// known returns the database, once it is known to be that of the realm. c may be nil.
func (c *chronicle) known(realm string) (*history.DB, error) {
	if c == nil {
		return nil, &kuji.Error{Code: kuji.CodeClosed, Message: "the history is closed"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.db != nil && c.db.Following():
		return c.db, nil
	case kuji.CodeOf(c.err) == kuji.CodeConflict:
		return nil, c.err
	}
	return nil, &kuji.Error{Code: kuji.CodeOverloaded, Message: fmt.Sprintf("the history of realm %q is not open yet: try again later", realm), Err: c.err}
}

// reading calls f with a realm's history. It logs the first read that fails, and the first that succeeds again.
func (h *Historian) reading(realm string, f func(db *history.DB) error) error {
	c := h.of(realm)
	db, err := c.known(realm)
	if err != nil {
		return err
	}
	err = f(db)
	code := kuji.CodeOf(err)
	failed := code == kuji.CodeFailed || code == kuji.CodeCorrupt
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case code == kuji.CodeCanceled, c.unreadable == failed:
		return err
	case failed:
		h.log.Error("the history cannot be read; the realm goes on", "realm", realm, "error", err)
	default:
		h.log.Info("the history can be read again", "realm", realm)
	}
	c.unreadable = failed
	return err
}

// Events implements [server.History].
func (h *Historian) Events(ctx context.Context, realm string, req *kujiv1.GetHistoryRequest) (events []kuji.Record, out *kujiv1.GetHistoryResponse, err error) {
	before := history.Place{Position: req.GetBefore().GetPosition(), Index: int(req.GetBefore().GetIndex())}
	err = h.reading(realm, func(db *history.DB) error {
		p, err := db.Events(ctx, history.Query{Player: req.GetPlayer(), Pool: req.GetPool(), Item: req.GetItem(), Before: before, Limit: int(req.GetLimit())})
		events, out = p.Events, &kujiv1.GetHistoryResponse{State: stateOf(p.State)}
		if p.More {
			out.Before = &kujiv1.EventPlace{Position: p.Before.Position, Index: uint32(p.Before.Index)}
		}
		return err
	})
	return events, out, err
}

// Players implements [server.History].
func (h *Historian) Players(ctx context.Context, realm string, req *kujiv1.ListPlayersRequest) (out *kujiv1.ListPlayersResponse, err error) {
	err = h.reading(realm, func(db *history.DB) error {
		players, more, st, err := db.Players(ctx, req.GetAfter(), int(req.GetLimit()))
		out = &kujiv1.ListPlayersResponse{Players: players, More: more, State: stateOf(st)}
		return err
	})
	return out, err
}

// Holders implements [server.History].
func (h *Historian) Holders(ctx context.Context, realm string, req *kujiv1.ListHoldersRequest) (out *kujiv1.ListHoldersResponse, err error) {
	err = h.reading(realm, func(db *history.DB) error {
		holders, more, st, err := db.Holders(ctx, req.GetItem(), req.GetAfter(), int(req.GetLimit()))
		out = &kujiv1.ListHoldersResponse{More: more, State: stateOf(st)}
		for _, one := range holders {
			out.Holders = append(out.Holders, &kujiv1.Holder{Player: one.Player, Quantity: one.Quantity})
		}
		return err
	})
	return out, err
}

func stateOf(st history.State) *kujiv1.HistoryState {
	return &kujiv1.HistoryState{Position: st.Position, CompleteFrom: st.CompleteFrom,
		KeptFrom: st.KeptFrom, KeptFromUnixMs: st.KeptFromTime, ProvenFrom: st.ProvenFrom}
}

// Wait implements [server.History].
func (h *Historian) Wait(ctx context.Context, realm string, position uint64) error {
	db, err := h.of(realm).known(realm)
	if err != nil {
		return err
	}
	return db.Wait(ctx, position)
}

// State implements [server.History].
func (h *Historian) State(realm string) *kujiv1.HistoryState {
	db, err := h.of(realm).known(realm)
	if err != nil {
		return nil
	}
	return stateOf(db.State())
}

// Down implements [server.History].
func (h *Historian) Down(realm string) error {
	c := h.of(realm)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db == nil {
		return c.err
	}
	err := c.db.Down()
	if code := kuji.CodeOf(err); code == kuji.CodeNotLeader || code == kuji.CodeClosed {
		return nil // another node keeps it
	}
	return err
}
