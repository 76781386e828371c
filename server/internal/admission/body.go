package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"connectrpc.com/connect"
)

const (
	// requestCost is what a request takes in addition to a large body: its goroutine, its header, its
	// connection's or stream's buffers, and the first bodyStep bytes of its body. Measured with an
	// idle stream of HTTP/2: 13 KB.
	requestCost = 16 << 10
	// bodyStep is how much room a body has at first.
	bodyStep = 4 << 10
)

var firstSteps = sync.Pool{New: func() any { return new([bodyStep]byte) }}

// body is the body of a request, received whole before anything is done about it. Until then a
// request holds the bytes that have arrived and nothing else: no slow client stops another.
type body struct {
	data  []byte
	first *[bodyStep]byte // where data began
	who   caller
	taken int64 // of Server.memory, without requestCost
}

// receive reads the body of a request. The rest of a body that it refuses stays with r, where
// net/http sees it: it reads that to its end, or closes the connection. It never takes that rest for
// another request.
func (s *Server) receive(b *body, r *http.Request, limit int64) *connect.Error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	b.first = firstSteps.Get().(*[bodyStep]byte)
	b.data = b.first[:0]
	for {
		if len(b.data) == cap(b.data) {
			if err := s.grow(b, limit); err != nil {
				return err
			}
		}
		n, err := r.Body.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		switch {
		case int64(len(b.data)) > limit:
			return tooLarge(limit)
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return connect.NewError(connect.CodeInvalidArgument,
				fmt.Errorf("the request's body is incomplete: %d bytes arrived in time, want all within %v", len(b.data), s.o.Limits.ReadTimeout))
		case err != nil:
			return connect.NewError(connect.CodeInvalidArgument,
				fmt.Errorf("the request's body is broken after %d bytes: %w", len(b.data), err))
		}
	}
}

// grow makes room for as many bytes again, and at most one more than the limit.
func (s *Server) grow(b *body, limit int64) *connect.Error {
	size := min(2*int64(cap(b.data)), limit+1)
	if !s.memory.take(b.who, size-b.taken) {
		return s.noMemory(b.who)
	}
	b.taken = size
	data := make([]byte, len(b.data), size)
	copy(data, b.data)
	b.data = data
	return nil
}

// free gives back what the body took. Nobody may read it afterwards.
func (s *Server) free(b *body) {
	if b.taken > 0 {
		s.memory.give(b.who, b.taken)
	}
	if b.first != nil {
		firstSteps.Put(b.first)
	}
}

func tooLarge(limit int64) *connect.Error {
	return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the request's body is larger than %d bytes, the most for this RPC", limit))
}

// received is r with a body that has arrived. r keeps its own: net/http looks there to see whether
// another request can follow on the connection.
func received(r *http.Request, b *body) *http.Request {
	if b.first == nil {
		return r
	}
	to := *r
	to.Body = io.NopCloser(bytes.NewReader(b.data))
	return &to
}

// endFramedTwice ends the connection of a request that may have said in two ways how long its body is,
// once it is answered (RFC 9112, 6.1). A proxy in front may have gone by the other way, and taken
// another client's request for a part of this body. net/http goes by the chunks and does not say
// whether there was a length too; in HTTP/1.0 it does not even say that there were chunks. So every
// connection ends that brings either.
func endFramedTwice(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0) {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// hurry gives the client of a request that is refused a moment to send the rest. net/http reads it
// before or behind the answer, and closes the connection if it does not come or is broken.
func (s *Server) hurry(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.o.Limits.HeaderTimeout)) // not supported: no connection
	}
}
