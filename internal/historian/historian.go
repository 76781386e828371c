package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/history"
	"github.com/kuji-dev/kuji/server"
)

// historian keeps the histories of a server's realms. One that fails is tried again, and never keeps a
// realm from anything.
type historian struct {
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
	done chan struct{} // closed when it is no more; the same

	mu  sync.Mutex
	db  *history.DB // nil: not open yet
	err error       // why it is not followed
	// unreadable says that the last read failed, and that the log says so.
	unreadable bool
}

// Pauses between attempts to follow a realm.
const (
	firstHistoryPause = time.Second
	lastHistoryPause  = time.Minute
)

// historyWords are the values of --history that are not a URL.
const (
	historySQLite = "sqlite"
	historyOff    = "off"
)

// checkHistory checks --history and --history-age.
func checkHistory(where string, age time.Duration) error {
	switch {
	case age < 0:
		return usageError{fmt.Errorf("--history-age %v: expected 0s or more", age)}
	case age > 0 && where == historyOff:
		return usageError{errors.New("--history-age: expected --history other than off with it")}
	}
	if where == historySQLite || where == historyOff || history.IsURL(where) {
		return nil
	}
	return usageError{errors.New("--history: expected sqlite, off or the URL of a PostgreSQL database, postgres://…")} // it may be one with a password
}

// historian returns what keeps the histories as --history and --history-age say; nil if nothing does.
func (f *serveFlags) historian(log *slog.Logger) *historian {
	if f.history == historyOff {
		return nil
	}
	h := &historian{log: log, realms: map[string]*chronicle{}, target: func(string) string { return f.history }}
	if f.history == historySQLite {
		h.target = func(realm string) string { return filepath.Join(f.data, "history", realm+".db") }
	}
	h.o.Age = f.historyAge
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

// attach makes a server's options use the histories.
func (h *historian) attach(o server.Options) server.Options {
	if h != nil {
		o.History = h
	}
	return o
}

// Close ends all histories.
func (h *historian) Close() error {
	if h == nil {
		return nil
	}
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

// Follow implements server.History. A realm that was opened again is followed when its last life is over.
func (h *historian) Follow(r *kuji.Realm) {
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
func (h *historian) keep(r *kuji.Realm, c *chronicle) {
	for wait := firstHistoryPause; ; wait = min(2*wait, lastHistoryPause) {
		begun := time.Now()
		err := c.follow(h.ctx, h.target(r.Name()), h.o, r)
		if h.ctx.Err() != nil || kuji.CodeOf(err) == kuji.CodeClosed || kuji.CodeOf(err) == kuji.CodeNotLeader {
			return
		}
		if time.Since(begun) > lastHistoryPause {
			wait = firstHistoryPause
		}
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		text := "the history is not kept; the realm goes on"
		if _, damaged := errors.AsType[*history.DamagedError](err); damaged {
			text = "the history is damaged and is built again from the log; the realm goes on"
		}
		h.log.Error(text, "realm", r.Name(), "error", err, "again_in", wait)
		pause(h.ctx, wait)
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
	return c.db.Run(ctx, r.Events)
}

// of returns the history of a realm, once it is known to be that.
func (h *historian) of(realm string) (*history.DB, error) {
	h.mu.Lock()
	c := h.realms[realm]
	h.mu.Unlock()
	if c == nil {
		return nil, &kuji.Error{Code: kuji.CodeClosed, Message: "the history is closed"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db == nil || !c.db.Following() {
		if kuji.CodeOf(c.err) == kuji.CodeConflict {
			return nil, c.err
		}
		return nil, &kuji.Error{Code: kuji.CodeOverloaded, Message: fmt.Sprintf("the history of realm %q is not open yet: try again later", realm), Err: c.err}
	}
	return c.db, nil
}

// reading calls f with the history of a realm. The log says when the first read fails, and when one
// succeeds again.
func (h *historian) reading(realm string, f func(db *history.DB) error) error {
	db, err := h.of(realm)
	if err != nil {
		return err
	}
	err = f(db)
	code := kuji.CodeOf(err)
	if code == kuji.CodeCanceled {
		return err
	}
	failed := code == kuji.CodeFailed || code == kuji.CodeCorrupt
	h.mu.Lock()
	c := h.realms[realm]
	h.mu.Unlock()
	c.mu.Lock()
	changed := c.unreadable != failed
	c.unreadable = failed
	c.mu.Unlock()
	switch {
	case changed && failed:
		h.log.Error("the history cannot be read; the realm goes on", "realm", realm, "error", err)
	case changed:
		h.log.Info("the history can be read again", "realm", realm)
	}
	return err
}

// Events implements server.History.
func (h *historian) Events(ctx context.Context, realm string, q server.HistoryQuery) (out server.HistoryPage, err error) {
	err = h.reading(realm, func(db *history.DB) error {
		p, err := db.Events(ctx, history.Query{Player: q.Player, Pool: q.Pool, Item: q.Item, Before: history.Place(q.Before), Limit: q.Limit})
		out = server.HistoryPage{Events: p.Events, More: p.More, Before: server.HistoryPlace(p.Before), State: server.HistoryState(p.State)}
		return err
	})
	return out, err
}

// Players implements server.History.
func (h *historian) Players(ctx context.Context, realm, after string, limit int) (out server.HistoryPlayers, err error) {
	err = h.reading(realm, func(db *history.DB) error {
		players, more, st, err := db.Players(ctx, after, limit)
		out = server.HistoryPlayers{Players: players, More: more, State: server.HistoryState(st)}
		return err
	})
	return out, err
}

// Holders implements server.History.
func (h *historian) Holders(ctx context.Context, realm, item, after string, limit int) (out server.HistoryHolders, err error) {
	err = h.reading(realm, func(db *history.DB) error {
		holders, more, st, err := db.Holders(ctx, item, after, limit)
		for _, one := range holders {
			out.Holders = append(out.Holders, server.HistoryHolder(one))
		}
		out.More, out.State = more, server.HistoryState(st)
		return err
	})
	return out, err
}

// Wait implements server.History.
func (h *historian) Wait(ctx context.Context, realm string, position uint64) error {
	db, err := h.of(realm)
	if err != nil {
		return err
	}
	return db.Wait(ctx, position)
}

// State implements server.History.
func (h *historian) State(realm string) (server.HistoryState, bool) {
	db, err := h.of(realm)
	if err != nil {
		return server.HistoryState{}, false
	}
	return server.HistoryState(db.State()), true
}

// Down implements server.History.
func (h *historian) Down(realm string) error {
	h.mu.Lock()
	c := h.realms[realm]
	h.mu.Unlock()
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
