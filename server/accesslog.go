package server

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/kuji-dev/kuji/server/access"
)

// The access log has one line of JSON for each call. A call adds its line to a buffer, which one
// goroutine writes, so no call waits for the log's disk. If that is too slow, or fails, lines are
// left out and counted. Requests without a key are easy to send, so their lines are limited: see
// throttle.

// accessBuffer is how many bytes of lines can wait to be written.
const accessBuffer = 1 << 20

// AccessLog writes a line for each call. Several servers can share one.
type AccessLog struct {
	w       io.Writer
	log     *slog.Logger
	wake    chan struct{} // there is something to write, or to end
	done    chan struct{} // closed when nothing will be written any more
	leftOut leftOut

	mu     sync.Mutex
	lines  bytes.Buffer // that wait
	write  slog.Handler // into lines
	closed bool

	strangers throttle
}

// NewAccessLog returns an access log that writes to w, one Write at a time, and reports failures to
// log. Close it after the servers that use it.
func NewAccessLog(w io.Writer, log *slog.Logger) *AccessLog {
	a := &AccessLog{w: w, log: log, wake: make(chan struct{}, 1), done: make(chan struct{}), strangers: newThrottle()}
	a.write = slog.NewJSONHandler(&a.lines, &slog.HandlerOptions{ReplaceAttr: accessAttr})
	go a.run()
	return a
}

// accessAttr writes the time in microseconds of UTC, and neither level nor message.
func accessAttr(_ []string, attr slog.Attr) slog.Attr {
	switch attr.Key {
	case slog.TimeKey:
		return slog.String(slog.TimeKey, attr.Value.Time().UTC().Format("2006-01-02T15:04:05.000000Z"))
	case slog.LevelKey, slog.MessageKey:
		return slog.Attr{}
	}
	return attr
}

// Close writes the rest, and gives up when ctx ends. It leaves the writer open.
func (a *AccessLog) Close(ctx context.Context) error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.rouse()
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("server: the last lines of the access log are not written: %w", ctx.Err())
	}
}

// rouse wakes the writer.
func (a *AccessLog) rouse() {
	select {
	case a.wake <- struct{}{}:
	default: // it is about to be
	}
}

// LeftOut returns how many lines were left out so far.
func (a *AccessLog) LeftOut() uint64 { return a.leftOut.total() }

// add adds a line, or counts it as left out.
func (a *AccessLog) add(at time.Time, attrs ...slog.Attr) {
	defer a.rouse()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.lines.Len() >= accessBuffer {
		a.leftOut.add(1)
		return
	}
	if n := a.leftOut.flush(); n > 0 {
		a.line(time.Now(), slog.Uint64("left_out", n))
	}
	a.line(at, attrs...)
}

func (a *AccessLog) line(at time.Time, attrs ...slog.Attr) {
	record := slog.NewRecord(at, slog.LevelInfo, "", 0)
	record.AddAttrs(attrs...)
	_ = a.write.Handle(context.Background(), record) // cannot fail: into memory
}

// run writes lines until the log is closed.
func (a *AccessLog) run() {
	defer close(a.done)
	failures := newThrottle()
	for range a.wake {
		a.mu.Lock()
		lines, closed := bytes.Clone(a.lines.Bytes()), a.closed
		a.lines.Reset()
		a.mu.Unlock()
		if err := write(a.w, lines); err != nil {
			a.leftOut.add(uint64(bytes.Count(lines, []byte("\n"))))
			if _, ok := failures.take(); ok {
				a.log.Error("the access log cannot be written: calls are missing in it", "error", err)
			}
		}
		if closed {
			return
		}
	}
}

// write writes lines, if there are any.
func write(w io.Writer, lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	n, err := w.Write(lines)
	if err == nil && n < len(lines) {
		err = io.ErrShortWrite
	}
	return err
}

// call adds the line of a call.
func (a *AccessLog) call(c *call) {
	if c.key == "" && c.access == access.Passerby {
		if _, ok := a.strangers.take(); !ok {
			a.leftOut.add(1)
			return
		}
	}
	took := time.Since(c.start)
	attrs := make([]slog.Attr, 0, 12)
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	text("method", c.method)
	text("realm", short(c.realm))
	text("key", c.key)
	text("peer", c.peer)
	if !c.redis() {
		attrs = append(attrs, slog.Int("http", c.answer.code()))
	}
	if c.endpoint != nil || c.failed != nil || c.redis() {
		text("code", c.label())
	}
	text("status", c.status)
	if c.endpoint != nil && c.endpoint.stream {
		attrs = append(attrs, slog.Int64("messages", c.messages), slog.Int64(c.endpoint.unit(), c.units))
	}
	attrs = append(attrs, slog.Float64("seconds", took.Round(time.Microsecond).Seconds()),
		slog.Int64("request_bytes", c.received), slog.Int64("response_bytes", c.answer.bytes))
	a.add(c.start, attrs...)
}

// answer is where the answer to a call goes. It drops everything once another server is to answer.
type answer struct {
	http.ResponseWriter
	c      *call
	bytes  int64
	status int // 0: not written yet
}

// WriteHeader implements [http.ResponseWriter].
func (w *answer) WriteHeader(status int) {
	if w.c.elsewhere != "" {
		return
	}
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *answer) Write(p []byte) (int, error) {
	if w.c.elsewhere != "" {
		return len(p), nil
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush implements [http.Flusher], which Connect asks for.
func (w *answer) Flush() { _ = w.FlushError() } // the client may be gone

// FlushError flushes for an [http.ResponseController].
func (w *answer) FlushError() error {
	if w.c.elsewhere != "" {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// code returns the HTTP status of the answer.
func (w *answer) code() int { return cmp.Or(w.status, http.StatusOK) }

// streamBody is the body of a stream of draws. It is kept until it is known which server answers.
type streamBody struct {
	io.ReadCloser
	c       *call
	kept    []byte
	at      int // what is read next, of kept
	decided bool
}

// Read implements [io.Reader].
func (b *streamBody) Read(p []byte) (int, error) {
	if b.at < len(b.kept) {
		n := copy(p, b.kept[b.at:])
		b.at += n
		return n, nil
	}
	n, err := b.ReadCloser.Read(p)
	b.c.received += int64(n)
	if b.decided {
		b.kept, b.at = nil, 0
	} else {
		b.kept = append(b.kept, p[:n]...)
		b.at += n
	}
	return n, err
}

// Close closes the body when the server that answers is known. Before, another reader may follow.
func (b *streamBody) Close() error {
	if !b.decided {
		return nil
	}
	return b.ReadCloser.Close()
}
