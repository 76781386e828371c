package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/kuji-dev/kuji/server/access"
)

// The access log has one line of JSON for each call. A call adds its line to a buffer, and one
// goroutine writes the buffer. So no call waits for the log's disk or its reader. If they are too
// slow, or fail, lines are left out and counted. Strangers need no key to send requests, so their
// lines are limited: see throttle.

// accessBuffer is how many bytes of lines can wait to be written.
const accessBuffer = 1 << 20

// AccessLog writes a line for each call. Several servers can share one.
type AccessLog struct {
	w    io.Writer
	log  *slog.Logger
	wake chan struct{} // there is something to write, or to end
	done chan struct{} // closed when nothing will be written any more

	mu      sync.Mutex
	lines   []byte // that wait
	closed  bool
	leftOut uint64 // lines since the last that was written
	missing uint64 // lines, in all

	strangers throttle
}

// NewAccessLog returns an access log that writes to w, several lines in each Write, one Write at a
// time. It reports failures to log. Close it after the servers that use it.
func NewAccessLog(w io.Writer, log *slog.Logger) *AccessLog {
	a := &AccessLog{w: w, log: log, wake: make(chan struct{}, 1), done: make(chan struct{}), strangers: newThrottle()}
	go a.run()
	return a
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
func (a *AccessLog) LeftOut() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missing
}

// add adds a line, or counts it as left out.
func (a *AccessLog) add(line func(to []byte) []byte) {
	a.mu.Lock()
	switch {
	case a.closed || len(a.lines) >= accessBuffer:
		a.miss(1)
	case a.leftOut > 0:
		a.lines = append(a.lines, `{"time":`...)
		a.lines = appendTime(a.lines, time.Now())
		a.lines = append(a.lines, `,"left_out":`...)
		a.lines = append(strconv.AppendUint(a.lines, a.leftOut, 10), "}\n"...)
		a.leftOut = 0
		fallthrough
	default:
		a.lines = line(a.lines)
	}
	a.mu.Unlock()
	a.rouse()
}

// miss counts lines that are left out. The caller holds mu.
func (a *AccessLog) miss(n uint64) {
	a.leftOut += n
	a.missing += n
}

// missed counts a line that is left out.
func (a *AccessLog) missed() {
	a.mu.Lock()
	a.miss(1)
	a.mu.Unlock()
}

// run writes lines until the log is closed.
func (a *AccessLog) run() {
	defer close(a.done)
	failures := newThrottle()
	var spare []byte
	for range a.wake {
		a.mu.Lock()
		lines, closed := a.lines, a.closed
		a.lines = spare[:0]
		a.mu.Unlock()
		if err := write(a.w, lines); err != nil {
			a.mu.Lock()
			a.miss(count(lines))
			a.mu.Unlock()
			if _, ok := failures.take(); ok {
				a.log.Error("the access log cannot be written: calls are missing in it", "error", err)
			}
		}
		spare = lines
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

// count returns the number of lines.
func count(lines []byte) (n uint64) {
	for _, b := range lines {
		if b == '\n' {
			n++
		}
	}
	return n
}

// call adds the line of a call, answered with an HTTP status, if it came over HTTP, and so many
// bytes.
func (a *AccessLog) call(c *call, status int, answered int64) {
	if c.key == "" && c.access == access.Passerby {
		if _, ok := a.strangers.take(); !ok {
			a.missed()
			return
		}
	}
	took := time.Since(c.start)
	a.add(func(to []byte) []byte {
		to = append(to, `{"time":`...)
		to = appendTime(to, c.start)
		to = appendText(to, "method", c.method)
		if c.realm != "" {
			to = appendText(to, "realm", short(c.realm))
		}
		if c.key != "" {
			to = appendText(to, "key", c.key)
		}
		to = appendText(to, "peer", c.peer)
		if !c.redis() {
			to = appendNumber(to, "http", int64(status))
		}
		if c.endpoint != nil || c.failed != nil || c.redis() {
			to = appendText(to, "code", c.label())
		}
		if c.status != "" {
			to = appendText(to, "status", c.status)
		}
		if c.endpoint != nil && c.endpoint.streams != nil {
			to = appendNumber(to, "messages", c.messages)
			to = appendNumber(to, c.endpoint.unit(), c.units)
		}
		to = append(to, `,"seconds":`...)
		to = strconv.AppendFloat(to, took.Seconds(), 'f', 6, 64)
		to = appendNumber(to, "request_bytes", c.received)
		to = appendNumber(to, "response_bytes", answered)
		return append(to, "}\n"...)
	})
}

func appendTime(to []byte, t time.Time) []byte {
	to = append(to, '"')
	to = t.UTC().AppendFormat(to, "2006-01-02T15:04:05.000000Z")
	return append(to, '"')
}

func appendNumber(to []byte, name string, n int64) []byte {
	to = append(append(append(to, `,"`...), name...), `":`...)
	return strconv.AppendInt(to, n, 10)
}

// appendText appends a member with a text. Only realms and names of keys can need escapes.
func appendText(to []byte, name, text string) []byte {
	to = append(append(append(to, `,"`...), name...), `":`...)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			quoted, err := json.Marshal(text)
			if err != nil { // never: a string
				quoted = []byte(`""`)
			}
			return append(to, quoted...)
		}
	}
	return append(append(append(to, '"'), text...), '"')
}

// countedWriter counts the bytes of an answer, and keeps its status.
type countedWriter struct {
	http.ResponseWriter
	bytes  int64
	status int // 0: not written yet
}

// WriteHeader implements [http.ResponseWriter].
func (w *countedWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *countedWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush implements [http.Flusher], which Connect asks for.
func (w *countedWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() } // the client may be gone

// Unwrap is for [http.ResponseController].
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// code returns the HTTP status of the answer.
func (w *countedWriter) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// countedBody counts what has been read of a request's body.
type countedBody struct {
	io.ReadCloser
	bytes *int64
}

// Read implements [io.Reader].
func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	*b.bytes += int64(n)
	return n, err
}
