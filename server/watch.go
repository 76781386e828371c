package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/kuji-dev/kuji"
)

const (
	// clockEvery is the time between two looks at the realms' clocks, and at what the log left out.
	clockEvery = time.Minute
	// windowEvery is the time between two looks at how full the realms' idempotency windows are.
	windowEvery = 5 * time.Second
)

// Watch checks the realms' clocks and windows, now and regularly, until stop is called. Serve calls
// it. A program that only uses ServeHTTP should call it too.
func (s *Server) Watch() (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	w := &watcher{s.realms, s.journal.log, map[string]windowSaid{}}
	w.checkClocks()
	w.checkWindows()
	go func() {
		clock, window := time.NewTicker(clockEvery), time.NewTicker(windowEvery)
		defer clock.Stop()
		defer window.Stop()
		for {
			select {
			case <-clock.C:
				w.checkClocks()
				s.journal.sayLeftOut()
			case <-window.C:
				w.checkWindows()
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}

// The server warns once of a window that is fuller than windowWarn percent, until it calms.
const (
	windowWarn = 80
	windowCalm = 70
)

// watcher looks at realms.
type watcher struct {
	realms *realms
	log    *slog.Logger
	said   map[string]windowSaid // about realms' windows, by name
}

type windowSaid struct {
	filling bool
	refused uint64
}

// checkWindows warns of idempotency windows that fill up, and says when ids are refused.
func (t *watcher) checkWindows() {
	for _, r := range t.realms.sorted() {
		w, st := t.said[r.Name()], r.Stats()
		full := st.YoungRequestIDs * 100 / max(1, st.RequestIDLimit)
		if full >= windowWarn && !w.filling {
			t.logWindow("a realm's idempotency window fills up: at its limit, new request ids are refused", r, &st)
		}
		if st.RefusedIDs > w.refused {
			t.logWindow("a realm's idempotency window is full: new request ids are refused", r, &st)
		}
		t.said[r.Name()] = windowSaid{full >= windowWarn || w.filling && full >= windowCalm, st.RefusedIDs}
	}
}

func (t *watcher) logWindow(text string, r *kuji.Realm, st *kuji.Stats) {
	t.log.Warn(text+"; raise idempotency.count in its catalog, or shorten the age", "realm", r.Name(), "ids", st.YoungRequestIDs, "limit", st.RequestIDLimit,
		"refused", st.RefusedIDs)
}

// checkClocks warns of realms whose time is not the machine's.
func (t *watcher) checkClocks() {
	for _, r := range t.realms.sorted() {
		v := r.Stats().Clock
		if v.Drifts() {
			t.log.Warn("a realm's time is not the machine's: make sure that the machine's is right, then set the realm's clock",
				"realm", r.Name(), "time", time.UnixMilli(v.Time).UTC(), "machine", time.UnixMilli(v.Wall).UTC(), "drift", v.Drift())
		}
		if v.RefusesIDs() {
			t.log.Warn("a realm refuses new request ids as too old: its clock and those of clients were ahead; wait, or put a catalog with ids: any in force meanwhile",
				"realm", r.Name(), "until", time.UnixMilli(v.IDsFrom).UTC(), "machine", time.UnixMilli(v.Wall).UTC())
		}
	}
}
