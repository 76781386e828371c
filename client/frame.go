package client

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// wholeMessages hands messages to the transport as one piece. Twice the pieces are twice the system
// calls, for the receiver too. Connect's client writes the head of a stream's message, five bytes,
// apart from the rest. HTTP/1.1 sends the header of a call apart from its body, unless it knows that
// the body is in memory.
type wholeMessages struct{ http.RoundTripper }

// smallBody is the largest body of a call that goes with its header, in bytes: it has room in the
// transport's buffer.
const smallBody = 3 << 10

// RoundTrip implements [http.RoundTripper].
func (w wholeMessages) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.ContentLength == 0 || r.ContentLength > smallBody {
		return w.RoundTripper.RoundTrip(r)
	}
	r = r.WithContext(r.Context()) // a copy: the caller's must stay as it is
	if r.ContentLength < 0 {
		r.Body = &messageBody{ReadCloser: r.Body}
		return w.RoundTripper.RoundTrip(r)
	}
	data := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, data)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading a body of %d bytes: %w", r.ContentLength, err)
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	r.Body, _ = r.GetBody()
	return w.RoundTripper.RoundTrip(r)
}

// messageHead is the flags and the length before each message of a stream.
const messageHead = 5

// messageBody reads a body of messages, a whole one at a time where it fits.
type messageBody struct {
	io.ReadCloser
	left int // of the message that is being read
}

func (b *messageBody) Read(p []byte) (n int, err error) {
	if b.left == 0 {
		if len(p) < messageHead {
			return 0, io.ErrShortBuffer
		}
		if n, err = io.ReadFull(b.ReadCloser, p[:messageHead]); err != nil {
			return 0, err
		}
		b.left = int(binary.BigEndian.Uint32(p[1:messageHead]))
	}
	m, err := io.ReadFull(b.ReadCloser, p[n:min(len(p), n+b.left)])
	if b.left -= m; b.left > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n + m, err
}
