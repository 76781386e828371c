package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// The direct path answers the request that there are most of, a Draw, where it
// comes as most clients send it: as one small message of the Connect protocol,
// JSON or binary, uncompressed. Connect's own way of reading, reflecting and
// writing takes more of the processor than the draw; here the message is read
// into a draw and the result written without either.
//
// It must not be told from the other way, but by the clock. It takes what it
// understands completely and leaves the rest, unread or with what it has read
// put back, to Connect's handler: other methods, protocols, encodings and
// versions, bodies of unknown size, messages with anything unusual in them.
// Whoever it refuses gets what Connect would have written. Guards and metrics are
// before it and around it: see Server.ServeHTTP.

const (
	// maxDirect is the largest message that is read directly, in bytes: four
	// ids of full length, and room around them.
	maxDirect = 1 << 10
	// maxDirectKept is the most memory for an answer that is kept, in bytes.
	maxDirectKept = 64 << 10
)

// direct is what one call works with. It is used again.
type direct struct {
	draw  kuji.Draw
	realm string
	in    [maxDirect]byte
	out   []byte // the answer
}

var directs = sync.Pool{New: func() any { return new(direct) }}

// Values of headers, shared by all answers: nobody may write to them.
var (
	directJSON     = []string{"application/json"}
	directProto    = []string{"application/proto"}
	directAccept   = []string{"gzip"} // what requests may be compressed with
	connectVersion = "1"
)

// serveDirect answers a Draw whose body has at most maxDirect bytes, or returns
// false and leaves the request to Connect's handler, with the body that it is
// to get, nil for the request's.
func (s *Server) serveDirect(w http.ResponseWriter, r *http.Request, c *call) (served bool, body io.ReadCloser) {
	ctx, cancel, json, ok := directRequest(r)
	if !ok {
		return false, nil
	}
	if cancel != nil {
		defer cancel()
	}
	d := directs.Get().(*direct)
	defer d.release()
	in, err := readDirect(r, d.in[:r.ContentLength])
	if err != nil || !d.decode(in, json) {
		return false, &putBack{read: bytes.Clone(in), err: err, ReadCloser: r.Body}
	}
	c.reached = true
	h := w.Header()
	h["Content-Type"], h["Accept-Encoding"] = directJSON, directAccept
	if !json {
		h["Content-Type"] = directProto
	}
	if err := s.drawDirect(ctx, d, json, c.endpoint.procedure); err != nil {
		ce := s.connectError(err, &kujiv1.DrawRequest{RequestId: d.draw.ID})
		c.code = ce.Code()
		if err := s.errors.Write(w, r, ce); err != nil {
			s.log.Debug("writing an error failed", "error", err)
		}
		return true, nil
	}
	_, _ = w.Write(d.out) // the client may be gone: nobody is left to tell
	return true, nil
}

// directRequest reports whether a request's header is one that the direct path
// knows, whether the message is JSON, and the context of the call. cancel is nil
// when there is nothing to cancel.
func directRequest(r *http.Request) (ctx context.Context, cancel context.CancelFunc, json, ok bool) {
	h := r.Header
	contentType := h["Content-Type"]
	switch {
	case r.Method != http.MethodPost, len(contentType) != 1, len(h["Content-Encoding"]) > 0:
		return nil, nil, false, false
	case contentType[0] == directJSON[0]:
		json = true
	case contentType[0] != directProto[0]:
		return nil, nil, false, false
	}
	if v := h["Connect-Protocol-Version"]; len(v) > 0 && v[0] != connectVersion {
		return nil, nil, false, false
	}
	ctx = r.Context()
	if v := h["Connect-Timeout-Ms"]; len(v) > 0 {
		if len(v[0]) > 10 { // as many digits as the protocol has
			return nil, nil, false, false
		}
		ms, err := strconv.ParseUint(v[0], 10, 64)
		if err != nil {
			return nil, nil, false, false
		}
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	}
	return ctx, cancel, json, true
}

// readDirect fills buf with the body. With an error, it returns what came
// before.
func readDirect(r *http.Request, buf []byte) ([]byte, error) {
	for n := 0; ; {
		m, err := r.Body.Read(buf[n:])
		n += m
		if n == len(buf) && (err == nil || err == io.EOF) { //nolint:errorlint // readers return it as it is
			return buf, nil
		}
		if err != nil {
			return buf[:n], err
		}
	}
}

// putBack is a body of which a part has been read.
type putBack struct {
	read []byte
	err  error // that reading ended with, if it did
	io.ReadCloser
}

func (p *putBack) Read(b []byte) (int, error) {
	switch {
	case len(p.read) > 0:
		n := copy(b, p.read)
		p.read = p.read[n:]
		return n, nil
	case p.err != nil:
		return 0, p.err
	}
	return p.ReadCloser.Read(b)
}

// drawDirect makes the draw and puts its answer into d.out.
func (s *Server) drawDirect(ctx context.Context, d *direct, json bool, procedure string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = (&interceptor{s}).recovered(procedure, p)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	res, err := s.carryOut(ctx, d.realm, &d.draw)
	if err != nil {
		return err
	}
	if res.Status != kuji.OK {
		return &statusError{res.Status, resultProto(&res)}
	}
	var whole bool
	if json {
		d.out, whole = appendDrawJSON(d.out[:0], &res)
	} else {
		d.out, whole = appendDrawProto(d.out[:0], &res)
	}
	if whole {
		return nil
	}
	m := &kujiv1.DrawResponse{Result: resultProto(&res)}
	if json {
		d.out, err = jsonCodec{}.MarshalAppend(d.out[:0], m)
	} else {
		d.out, err = protoCodec{}.MarshalAppend(d.out[:0], m)
	}
	if err != nil {
		return connect.NewError(connect.CodeInternal, fmt.Errorf("marshal message: %w", err))
	}
	return nil
}

func (d *direct) release() {
	d.draw, d.realm = kuji.Draw{}, ""
	if cap(d.out) > maxDirectKept {
		d.out = nil
	}
	directs.Put(d)
}
