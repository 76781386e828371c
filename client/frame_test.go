package client

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestMessageBody: what is read is what was there, a message at a time, however
// it comes in, and a body that is cut in a message does not end well.
func TestMessageBody(t *testing.T) {
	messages := []string{"\x00\x00\x00\x00\x03abc", "\x00\x00\x00\x00\x00", "\x01\x00\x00\x01\x00" + strings.Repeat("x", 256)}
	all := strings.Join(messages, "")
	for name, in := range map[string]io.Reader{"whole": strings.NewReader(all), "by bytes": iotest.OneByteReader(strings.NewReader(all))} {
		b := &messageBody{ReadCloser: io.NopCloser(in)}
		p := make([]byte, 1024)
		for i, want := range messages {
			if n, err := b.Read(p); string(p[:n]) != want || err != nil {
				t.Errorf("%s: message %d: %q, %v", name, i, p[:n], err)
			}
		}
		if n, err := b.Read(p); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: at the end: %d, %v", name, n, err)
		}
	}
	var got bytes.Buffer
	b := &messageBody{ReadCloser: io.NopCloser(strings.NewReader(all))}
	if _, err := io.CopyBuffer(&got, struct{ io.Reader }{b}, make([]byte, 7)); err != nil || got.String() != all {
		t.Errorf("by pieces: %d bytes, %v", got.Len(), err)
	}
	for cut := range len(all) {
		_, err := io.Copy(io.Discard, &messageBody{ReadCloser: io.NopCloser(strings.NewReader(all[:cut]))})
		whole := cut == 0 || cut == len(messages[0]) || cut == len(messages[0])+len(messages[1])
		if (err == nil) != whole {
			t.Errorf("cut at %d of %d: %v", cut, len(all), err)
		}
	}
}
