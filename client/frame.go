package client

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
)

// wholeMessages hands each message of a stream to the transport with its head of five bytes, as one frame.
// Connect's client writes the two apart: twice the frames and system calls, for the receiver too.
type wholeMessages struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (w wholeMessages) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.ContentLength < 0 {
		r = r.WithContext(r.Context()) // a copy: the caller's must stay as it is
		r.Body = &messageBody{ReadCloser: r.Body}
	}
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
