package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect"
)

// The server's log names each request that is refused and each one that is slow. Anybody can send
// requests that are refused, and a slow disk makes all of them slow. So there is a bound on lines of
// each kind, and what is left out is counted: the next line of the kind says how many, the log says it
// every minute and at the end, and a metric counts them all.

const (
	// logBurst is how many lines of a kind the log takes at once.
	logBurst = 100
	// logEach is the time in which it takes another one, from then on.
	logEach = time.Second
)

// throttle bounds the lines of one kind.
type throttle struct {
	now func() time.Time

	mu      sync.Mutex
	paid    time.Time // up to when the lines so far have used up what the log takes
	leftOut uint64    // lines since the last
	missing uint64    // lines in all
}

func newThrottle() throttle { return throttle{now: time.Now} }

// take reports whether there is room for a line, and how many were left out since the last. If there
// is none, the line is counted.
func (t *throttle) take() (leftOut uint64, ok bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if least := now.Add(-logBurst * logEach); t.paid.Before(least) {
		t.paid = least
	}
	if t.paid.After(now.Add(-logEach)) {
		t.leftOut++
		t.missing++
		return 0, false
	}
	t.paid = t.paid.Add(logEach)
	leftOut, t.leftOut = t.leftOut, 0
	return leftOut, true
}

// flush returns how many lines were left out since the last.
func (t *throttle) flush() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.leftOut
	t.leftOut = 0
	return n
}

// all returns how many lines were left out.
func (t *throttle) all() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.missing
}

// logCall logs a call that was refused or slow.
func (s *Server) logCall(c *call) {
	if c.handedOver() {
		return
	}
	if s.isSlow(c.took) {
		s.logSlow(c, c.realm, c.label(), c.took)
	}
	if c.failed != nil || c.ended && !c.reached {
		s.logRefused(c)
	}
}

func (s *Server) isSlow(took time.Duration) bool {
	return s.o.SlowRequests > 0 && took >= s.o.SlowRequests && s.log.Enabled(context.Background(), slog.LevelWarn)
}

// logSlow logs a call, or a batch of a stream, that took long.
func (s *Server) logSlow(c *call, realm, code string, took time.Duration) {
	leftOut, ok := s.slow.take()
	if !ok {
		return
	}
	attrs := append(c.attrs(realm, code, leftOut), slog.Float64("seconds", took.Seconds()))
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "slow request", attrs...)
}

// logRefused logs a call that was not carried out. What its client gave up is not worth a line, and a
// stream with answers was not refused, however it ended.
func (s *Server) logRefused(c *call) {
	if c.code == connect.CodeCanceled || c.code == connect.CodeDeadlineExceeded || c.messages > 0 || !s.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	leftOut, ok := s.refusals.take()
	if !ok {
		return
	}
	attrs := c.attrs(c.realm, c.label(), leftOut)
	if c.failed != nil && (c.endpoint != nil || c.redis() && c.method != noRedis) { // otherwise it quotes what somebody made up
		attrs = append(attrs, slog.String("error", short(c.failed.Message())))
	}
	if c.failed != nil {
		if fault, ok := errors.AsType[*tokenFault](c.failed); ok {
			attrs = append(attrs, slog.String("why", short(fault.why)))
		}
	}
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "request refused", attrs...)
}

// attrs returns what the log says of a call.
func (c *call) attrs(realm, code string, leftOut uint64) []slog.Attr {
	attrs := []slog.Attr{slog.String("method", c.method), slog.String("peer", c.peer), slog.String("code", code)}
	if realm != "" {
		attrs = append(attrs, slog.String("realm", short(realm)))
	}
	if c.key != "" {
		attrs = append(attrs, slog.String("key", c.key))
	}
	if leftOut > 0 {
		attrs = append(attrs, slog.Uint64("left_out", leftOut))
	}
	return attrs
}

// The methods of commands of the Redis protocol begin with redisMethods; noRedis is that of what is none.
const (
	redisMethods = "redis/"
	noRedis      = redisMethods + "none"
)

// methodOf returns the name of what is called: never what a client made up.
func methodOf(e *endpoint, path string) string {
	switch {
	case e != nil:
		return e.procedure[1:]
	case isHealthPath(path), path == metricsPath:
		return path
	}
	return "none"
}

// short returns at most the first 300 bytes of a text that a client had a part in.
func short(text string) string {
	const most = 300
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// sayLeftOut logs how many lines were left out since the last one of their kind.
func (s *Server) sayLeftOut() {
	for kind, t := range map[string]*throttle{"slow request": &s.slow, "request refused": &s.refusals} {
		if n := t.flush(); n > 0 {
			s.log.Warn("lines were left out of this log: there were too many", "line", kind, "left_out", n)
		}
	}
}
