package redis

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kuji-dev/kuji"
)

// RESP is what Redis clients and the server send each other. A command is an array of bulk strings,
// such as *2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n. Commands in a line of plain text are refused, and with
// them HTTP, which a web page could make a browser send.
//
// https://redis.io/docs/latest/develop/reference/protocol-spec/

const (
	// maxWords is the most words in a command: a transfer of kuji.MaxStacks items has fewer.
	maxWords = 2*kuji.MaxStacks + 8
	// maxDigits is the most digits of a length.
	maxDigits = 9
)

// ParseCommand reads the command at the beginning of b into words, which share b's memory. n is its
// length in bytes, 0 if b ends before it does. It refuses one of more than limit bytes early.
func ParseCommand(b []byte, limit int, words [][]byte) (_ [][]byte, n int, err error) {
	words = words[:0]
	count, at, err := parseLength(b, 0, '*')
	if err != nil || at == 0 {
		return nil, 0, err
	}
	if count > maxWords {
		return nil, 0, badProtocol(0, "a command of %d words, want at most %d", count, maxWords)
	}
	for range count {
		size, next, err := parseLength(b, at, '$')
		if err != nil {
			return nil, 0, err
		}
		end := next + size + len("\r\n") // cannot overflow: see maxDigits
		switch {
		case next > 0 && end > limit, next == 0 && len(b) >= limit:
			return nil, 0, badProtocol(at, "a command of more than %d bytes, want at most that many", limit)
		case next == 0, end > len(b):
			return nil, 0, nil
		case b[end-2] != '\r' || b[end-1] != '\n':
			return nil, 0, badProtocol(end-2, "a bulk string of %d bytes that goes on, want its end: CR LF", size)
		}
		words = append(words, b[next:next+size])
		at = end
	}
	return words, at, nil
}

// parseLength reads a line of b: kind, digits, CR LF. next is where it ends, 0 if b ends before.
func parseLength(b []byte, at int, kind byte) (length, next int, err error) {
	if at == len(b) {
		return 0, 0, nil
	}
	if b[at] != kind {
		return 0, 0, badProtocol(at, "%q, want %q: commands are arrays of bulk strings", b[at], kind)
	}
	for i := at + 1; i < len(b); i++ {
		digits := i - at - 1
		switch c := b[i]; {
		case '0' <= c && c <= '9' && digits < maxDigits:
			length = 10*length + int(c-'0')
		case c == '\r' && digits > 0:
			if i+1 == len(b) {
				return 0, 0, nil
			}
			if b[i+1] != '\n' {
				return 0, 0, badProtocol(i+1, "%q, want LF after CR", b[i+1])
			}
			return length, i + 2, nil
		default:
			return 0, 0, badProtocol(i, "%q, want a length: 1 to %d digits, CR LF", c, maxDigits)
		}
	}
	return 0, 0, nil
}

func badProtocol(at int, format string, args ...any) error {
	return &kuji.Error{Code: kuji.CodeInvalid, Field: "protocol", Message: fmt.Sprintf("byte %d of the command: ", at) + fmt.Sprintf(format, args...)}
}

// resp writes answers in one version of the protocol.
type resp struct {
	version int // 2 or 3
	out     []byte
	sent    int64 // bytes that were in out before
}

// written returns how many bytes of answers there were so far, sent or not.
func (w *resp) written() int64 { return w.sent + int64(len(w.out)) }

// isMuch reports whether so many bytes of answers wait that they must be sent now.
func (w *resp) isMuch() bool { return len(w.out) >= answersAtOnce }

func (w *resp) head(kind byte, n int) {
	w.out = append(strconv.AppendInt(append(w.out, kind), int64(n), 10), '\r', '\n')
}

func (w *resp) List(n int) { w.head('*', n) }

// List and these are the methods of [contract.Writer]. An answer is a message of the API as a map.

// Key writes the name of a field.
func (w *resp) Key(name string) { w.Text(name) }

// End ends a list or a map, whose beginning says how long it is.
func (w *resp) End() {}

// Map begins a map.
func (w *resp) Map(n int) {
	if w.version == 2 {
		w.head('*', 2*n)
		return
	}
	w.head('%', n)
}

func (w *resp) simple(s string) { w.out = append(append(append(w.out, '+'), s...), '\r', '\n') }

func (w *resp) Text(s string) {
	w.head('$', len(s))
	w.out = append(append(w.out, s...), '\r', '\n')
}

func (w *resp) texts(all ...string) {
	for _, s := range all {
		w.Text(s)
	}
}

func (w *resp) Integer(n int64) {
	w.out = append(strconv.AppendInt(append(w.out, ':'), n, 10), '\r', '\n')
}

// Unsigned writes a number. One of more than 63 bits, which the protocol lacks, is a string.
func (w *resp) Unsigned(n uint64) {
	if n > math.MaxInt64 {
		w.Text(strconv.FormatUint(n, 10))
		return
	}
	w.Integer(int64(n))
}

func (w *resp) Bool(yes bool) {
	switch {
	case w.version == 2 && yes:
		w.Integer(1)
	case w.version == 2:
		w.Integer(0)
	case yes:
		w.out = append(w.out, "#t\r\n"...)
	default:
		w.out = append(w.out, "#f\r\n"...)
	}
}

func (w *resp) Double(x float64) {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if w.version == 2 {
		w.Text(text)
		return
	}
	w.out = append(append(append(w.out, ','), text...), '\r', '\n')
}

func (w *resp) null() {
	if w.version == 2 {
		w.out = append(w.out, "$-1\r\n"...)
		return
	}
	w.out = append(w.out, "_\r\n"...)
}

// maxErrorText is the longest text of an error, in bytes.
const maxErrorText = 1024

// fail writes an error: a word that programs look at, and a text on one line.
func (w *resp) fail(kind, text string) {
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	w.out = append(append(append(append(w.out, '-'), kind...), ' '), text...)
	line := w.out[len(w.out)-len(text):]
	for i := bytes.IndexAny(line, "\r\n"); i >= 0; i = bytes.IndexAny(line, "\r\n") {
		line[i] = ' '
	}
	w.out = append(w.out, '\r', '\n')
}
