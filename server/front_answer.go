package server

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// frontAnswer is the [http.ResponseWriter] of the front. It collects an answer
// of up to frontWhole bytes, which is written at once; a larger one it writes in
// chunks, as net/http does.
type frontAnswer struct {
	conn    io.Writer
	closing func() bool // whether answers are to be the last

	header http.Header
	status int
	body   []byte // collected
	out    []byte // to be written next
	keys   []string
	begun  bool  // in chunks
	last   bool  // the header says that the connection ends
	err    error // of the first write that failed
}

func (a *frontAnswer) init(conn io.Writer, closing func() bool) {
	a.conn, a.closing, a.header = conn, closing, make(http.Header)
}

func (a *frontAnswer) reset() {
	clear(a.header)
	a.status, a.begun, a.last, a.err = 0, false, false, nil
	a.body, a.out = a.body[:0], a.out[:0]
}

// release gives up memory that only few answers need.
func (a *frontAnswer) release() {
	if cap(a.body)+cap(a.out) > frontKept {
		a.body, a.out = nil, nil
	}
}

func (a *frontAnswer) Header() http.Header { return a.header }

func (a *frontAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *frontAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if !a.begun && len(a.body)+len(p) <= frontWhole {
		a.body = append(a.body, p...)
		return len(p), nil
	}
	if !a.begun {
		a.begun = true
		a.head()
		a.chunk(a.body)
	}
	a.chunk(p)
	if a.err != nil {
		return 0, a.err
	}
	return len(p), nil
}

// chunk writes what is to be written next, and p behind it as a chunk.
func (a *frontAnswer) chunk(p []byte) {
	if len(p) == 0 { // which would be the last
		return
	}
	a.out = append(strconv.AppendInt(a.out, int64(len(p)), 16), "\r\n"...)
	a.flush(a.out)
	a.flush(p)
	a.out = append(a.out[:0], "\r\n"...)
}

func (a *frontAnswer) flush(p []byte) {
	if a.err == nil {
		_, a.err = a.conn.Write(p)
	}
}

// finish writes what has not been written.
func (a *frontAnswer) finish() error {
	if a.begun {
		a.out = append(a.out, "0\r\n\r\n"...)
	} else {
		a.WriteHeader(http.StatusOK)
		a.head()
		a.out = append(a.out, a.body...)
	}
	a.flush(a.out)
	return a.err
}

// head makes the header as net/http would write it, but that the length of what
// is collected is always known.
func (a *frontAnswer) head() {
	a.last = a.closing()
	out := strconv.AppendInt(append(a.out, "HTTP/1.1 "...), int64(a.status), 10)
	out = append(append(append(out, ' '), http.StatusText(a.status)...), "\r\n"...)
	a.keys = a.keys[:0]
	for key := range a.header {
		a.keys = append(a.keys, key)
	}
	slices.Sort(a.keys)
	for _, key := range a.keys {
		for _, value := range a.header[key] {
			out = append(append(append(out, key...), ": "...), value...)
			out = append(out, "\r\n"...)
		}
	}
	out = time.Now().UTC().AppendFormat(append(out, "Date: "...), http.TimeFormat)
	if !a.begun {
		out = strconv.AppendInt(append(out, "\r\nContent-Length: "...), int64(len(a.body)), 10)
	}
	if a.last {
		out = append(out, "\r\nConnection: close"...)
	}
	if a.begun {
		out = append(out, "\r\nTransfer-Encoding: chunked"...)
	}
	a.out = append(out, "\r\n\r\n"...)
}
