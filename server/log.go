package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// The server logs each request that it refuses and each slow one. Both can be many, so the lines of
// each kind are limited. The next line of the kind says how many were left out, and so does the log
// every minute and at the end. A metric counts them all.

const (
	// logBurst is how many lines of a kind the log takes at once.
	logBurst = 100
	// logEach is the time in which it takes another one, from then on.
	logEach = time.Second
)

// leftOut counts lines that a log leaves out.
type leftOut struct{ since, all atomic.Uint64 }

func (l *leftOut) add(n uint64) {
	l.since.Add(n)
	l.all.Add(n)
}

// flush returns how many lines were left out since the last call.
func (l *leftOut) flush() uint64 { return l.since.Swap(0) }

// total returns how many lines were left out.
func (l *leftOut) total() uint64 { return l.all.Load() }

// throttle limits the lines of one kind.
type throttle struct {
	now func() time.Time
	*rate.Limiter
	*leftOut
}

func newThrottle() throttle {
	return throttle{time.Now, rate.NewLimiter(rate.Every(logEach), logBurst), &leftOut{}}
}

// take reports whether there is room for a line, and how many were left out since the last one.
func (t *throttle) take() (leftOut uint64, ok bool) {
	if !t.AllowN(t.now(), 1) {
		t.add(1)
		return 0, false
	}
	return t.flush(), true
}

// journal writes about calls: into the server's log and the access log.
type journal struct {
	log      *slog.Logger
	slowFrom time.Duration // how long a slow request takes; 0: none is slow
	access   *AccessLog    // nil: there is none
	cluster  bool          // other servers take over what this one fails to do

	slowest  slowest
	slow     throttle
	refusals throttle
	failures rate.Sometimes // lines about failed realms
}

// failedEvery is the least time between two lines about failed realms: each call gets the error.
const failedEvery = 10 * time.Second

// answer translates an error for a client, and logs what an operator must know.
func (j *journal) answer(err error, request any) *connect.Error {
	ke, ok := errors.AsType[*kuji.Error](err)
	if ce, is := errors.AsType[*connect.Error](err); is {
		return ce
	}
	ce := message.Error(err, request, j.cluster)
	switch {
	case ok && message.Machine(ke):
		j.failures.Do(func() { j.log.Error("a realm has stopped", "error", ke) })
	case ce.Code() == connect.CodeInternal && !ok && !errors.Is(err, message.ErrPanic):
		j.log.Error("unexpected error", "error", err)
	}
	return ce
}

func (j *journal) panicked(procedure string, p any) {
	j.log.Error("panic while answering", "procedure", procedure, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// call logs a call that was refused or slow, and each one in the access log.
func (j *journal) call(c *call) {
	if c.handedOver() {
		return
	}
	if j.access != nil {
		j.access.call(c)
	}
	j.slowest.note(c)
	if j.isSlow(c.took) {
		j.logSlow(c, c.realm, c.label(), c.took)
	}
	if c.failed != nil || c.ended && !c.reached {
		j.logRefused(c)
	}
}

func (j *journal) isSlow(took time.Duration) bool {
	return j.slowFrom > 0 && took >= j.slowFrom && j.log.Enabled(context.Background(), slog.LevelWarn)
}

// logSlow logs a call, or a batch of a stream, that took long.
func (j *journal) logSlow(c *call, realm, code string, took time.Duration) {
	j.write(slog.LevelWarn, "slow request", &j.slow, c, realm, code, slog.Float64("seconds", took.Seconds()))
}

// logRefused logs a call that was not carried out, unless its client gave up, or has answers.
func (j *journal) logRefused(c *call) {
	if c.code == connect.CodeCanceled || c.code == connect.CodeDeadlineExceeded || c.messages > 0 || !j.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	var attrs []slog.Attr
	if c.failed != nil && (c.endpoint != nil || c.redis() && c.method != noRedis) { // otherwise it quotes what a client made up
		attrs = append(attrs, slog.String("error", short(c.failed.Message())))
	}
	if c.failed != nil {
		if fault, ok := errors.AsType[*access.Fault](c.failed); ok {
			attrs = append(attrs, slog.String("why", short(fault.Why)))
		}
	}
	j.write(slog.LevelInfo, "request refused", &j.refusals, c, c.realm, c.label(), attrs...)
}

// write writes a line about a call, if there is room for another one of its kind.
func (j *journal) write(level slog.Level, text string, kind *throttle, c *call, realm, code string, more ...slog.Attr) {
	leftOut, ok := kind.take()
	if !ok {
		return
	}
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
	j.log.LogAttrs(context.Background(), level, text, append(attrs, more...)...)
}

// The methods of Redis commands begin with redisMethods. noRedis is that of an unknown command.
const (
	redisMethods = "redis/"
	noRedis      = redisMethods + "none"
)

// methodOf returns the name of what is called: never a text that a client made up.
func methodOf(e *endpoint, path string) string {
	switch {
	case e != nil:
		return e.procedure[1:]
	case isHealthPath(path), path == metricsPath:
		return path
	case path == "/", strings.HasPrefix(path, ConsolePath):
		return "pages"
	}
	return "none"
}

// short returns at most the first 300 bytes of a text that a client influences.
func short(text string) string {
	const most = 300
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "") // a cut can halve a character, and messages refuse that
}

// sayLeftOut logs how many lines were left out since the last one of their kind.
func (j *journal) sayLeftOut() {
	for kind, t := range map[string]*throttle{"slow request": &j.slow, "request refused": &j.refusals} {
		if n := t.flush(); n > 0 {
			j.log.Warn("lines were left out of this log: there were too many", "line", kind, "left_out", n)
		}
	}
}
