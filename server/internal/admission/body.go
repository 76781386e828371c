package admission

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

	"github.com/kuji-dev/kuji/server/access"
)

const (
	// RequestCost is what a request takes besides a large body: goroutine, header, buffers, and the
	// first BodyStep bytes of its body. Measured with an idle stream of HTTP/2: 13 KB.
	RequestCost = 16 << 10
	// BodyStep is how much room a body has at first.
	BodyStep = 4 << 10
)

var firstSteps = sync.Pool{New: func() any { return new([BodyStep]byte) }}

// Body is the body of a request, received whole before the request is answered. Until then a
// request holds only the bytes that have arrived, so a slow client stops no other.
type Body struct {
	Data  []byte
	first *[BodyStep]byte // where Data began
	Who   access.Caller
	taken int64 // of Gate.Memory, without RequestCost
}

// Receive reads the body of a request. The rest of a body that it refuses stays with r: net/http
// reads it to its end or closes the connection.
func (g *Gate) Receive(b *Body, r *http.Request, limit int64) *connect.Error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	b.first = firstSteps.Get().(*[BodyStep]byte)
	b.Data = b.first[:0]
	for {
		if len(b.Data) == cap(b.Data) {
			if err := g.grow(b, limit); err != nil {
				return err
			}
		}
		n, err := r.Body.Read(b.Data[len(b.Data):cap(b.Data)])
		b.Data = b.Data[:len(b.Data)+n]
		switch {
		case int64(len(b.Data)) > limit:
			return tooLarge(limit)
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return connect.NewError(connect.CodeInvalidArgument,
				fmt.Errorf("the request's body is incomplete: %d bytes arrived in time, want all within %v", len(b.Data), g.ReadTimeout))
		case err != nil:
			return connect.NewError(connect.CodeInvalidArgument,
				fmt.Errorf("the request's body is broken after %d bytes: %w", len(b.Data), err))
		}
	}
}

// grow doubles the room, up to one byte more than the limit: with that byte a body is too large.
func (g *Gate) grow(b *Body, limit int64) *connect.Error {
	size := min(2*int64(cap(b.Data)), limit+1)
	if refusal := g.Memory.Take(b.Who, size-b.taken); refusal != nil {
		return refusal
	}
	b.taken = size
	data := make([]byte, len(b.Data), size)
	copy(data, b.Data)
	b.Data = data
	return nil
}

// Free gives back what the body took. Its data must not be read afterwards.
func (g *Gate) Free(b *Body) {
	if b.taken > 0 {
		g.Memory.Give(b.Who, b.taken)
	}
	if b.first != nil {
		firstSteps.Put(b.first)
	}
}

func tooLarge(limit int64) *connect.Error {
	return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the request's body is larger than %d bytes, the most for this RPC", limit))
}

// Kept returns the data for readers that outlive the call, so the memory of a small body leaves the
// pool.
func (b *Body) Kept() []byte {
	b.first = nil
	return b.Data
}

// Request returns r with the body that has arrived. r itself keeps the connection's body, which
// net/http needs to use the connection again.
func (b *Body) Request(r *http.Request) *http.Request {
	if b.first == nil {
		return r
	}
	to := *r
	to.Body = io.NopCloser(bytes.NewReader(b.Data))
	return &to
}

// Hurry gives the client of a refused request a moment to send the rest. net/http reads it before
// or after the answer, and closes the connection if it is missing or broken.
func (g *Gate) Hurry(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.HeaderTimeout)) // if supported
	}
}
