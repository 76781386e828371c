package server

import (
	"context"
	"time"

	"github.com/kuji-dev/kuji"
)

const (
	// clockEvery is the time between two looks at the realms' clocks, and at what the log left out.
	clockEvery = time.Minute
	// windowEvery is the time between two looks at how full the realms' idempotency windows are.
	windowEvery = 5 * time.Second
)

// Watch looks at the realms' clocks and windows, now and every so often, until stop is called. Serve
// does it; a program that calls ServeHTTP on its own does it, too.
func (s *Server) Watch() (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	windows := windows{}
	s.checkClocks()
	s.checkWindows(windows)
	go func() {
		clock, window := time.NewTicker(clockEvery), time.NewTicker(windowEvery)
		defer clock.Stop()
		defer window.Stop()
		for {
			select {
			case <-clock.C:
				s.checkClocks()
				s.sayLeftOut()
			case <-window.C:
				s.checkWindows(windows)
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}

// The server warns of an idempotency window that is fuller than windowWarn percent, once until it
// has been emptier than windowCalm.
const (
	windowWarn = 80
	windowCalm = 70
)

// windows is what the server has said of realms' windows, by name.
type windows map[string]*windowSaid

type windowSaid struct {
	filling bool
	refused uint64
}

// checkWindows warns of idempotency windows that fill up, and says when new request ids are refused.
func (s *Server) checkWindows(said windows) {
	for _, r := range s.realms.sorted() {
		w := said[r.Name()]
		if w == nil {
			w = &windowSaid{}
			said[r.Name()] = w
		}
		st := r.Stats()
		full := st.YoungRequestIDs * 100 / max(1, st.RequestIDLimit)
		if full >= windowWarn && !w.filling {
			s.logWindow("a realm's idempotency window fills up: at its limit, new request ids are refused", r, &st)
		}
		if st.RefusedIDs > w.refused {
			s.logWindow("a realm's idempotency window is full: new request ids are refused", r, &st)
		}
		w.filling = full >= windowWarn || w.filling && full >= windowCalm
		w.refused = st.RefusedIDs
	}
}

func (s *Server) logWindow(text string, r *kuji.Realm, st *kuji.Stats) {
	s.log.Warn(text+"; raise idempotency.count in its catalog, or shorten the age", "realm", r.Name(), "ids", st.YoungRequestIDs, "limit", st.RequestIDLimit,
		"refused", st.RefusedIDs)
}
