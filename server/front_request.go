package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

const drawProcedure = kujiv1connect.RewardServiceDrawProcedure

// frontLine is the only request line that the front knows.
const frontLine = "POST " + drawProcedure + " HTTP/1.1\r\n"

// frontHeaders are the headers that the front knows, each at most once: what
// common clients send. No other changes how a request is read, or asks for
// more than an answer.
var frontHeaders = []string{"Host", "Content-Length", "Content-Type", "Accept", "Accept-Encoding", "Authorization",
	"Connect-Protocol-Version", "Connect-Timeout-Ms", "User-Agent", "X-Api-Key"}

// frontRequest reads requests one after the other. Most of a connection have
// the same header, which is then not read again.
type frontRequest struct {
	http   http.Request
	max    int64  // the longest body
	header []byte // that http was made of
	body   frontBody
}

func (q *frontRequest) init(ctx context.Context, remote string, max int64) {
	q.max = max
	r := http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: drawProcedure}, RequestURI: drawProcedure,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: remote,
	}
	q.http = *r.WithContext(ctx)
}

// read reads the request at the beginning of data and returns its length; 0
// for anything but one of those that the front knows, whole. The request holds
// parts of data.
func (q *frontRequest) read(data []byte) int {
	if !bytes.HasPrefix(data, []byte(frontLine)) {
		return 0
	}
	end := bytes.Index(data, []byte("\r\n\r\n"))
	if end < 0 {
		return 0
	}
	header := data[len(frontLine) : end+len("\r\n")] // of no line, when there is none
	if end < len(frontLine) || (!bytes.Equal(header, q.header) && !q.readHeader(header)) {
		return 0
	}
	from := end + len("\r\n\r\n")
	to := from + int(q.http.ContentLength)
	if to > len(data) {
		return 0
	}
	q.body.left = data[from:to]
	q.http.Body = &q.body
	return to
}

// readHeader reads header lines, each with its end.
func (q *frontRequest) readHeader(data []byte) bool {
	all, h := data, make(http.Header)
	host, length := "", int64(0)
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\r\n"))
		data = rest
		rawName, rawValue, ok := bytes.Cut(line, []byte(":"))
		name, value := frontHeader(rawName), string(bytes.Trim(rawValue, " \t"))
		if !ok || name == "" || value == "" || h[name] != nil || !printable(value) {
			return false
		}
		h[name] = []string{value}
	}
	if v := h["Host"]; v != nil && plainHost(v[0]) {
		host = v[0]
	}
	if v := h["Content-Length"]; v != nil && len(v[0]) <= 4 && onlyDigits(v[0]) {
		length, _ = strconv.ParseInt(v[0], 10, 64) // of digits it is a number
	}
	if host == "" || length == 0 || length > q.max || !frontType(h["Content-Type"]) {
		return false
	}
	delete(h, "Host") // as net/http has it
	q.http.Header, q.http.Host, q.http.ContentLength = h, host, length
	q.header = append(q.header[:0], all...)
	return true
}

// frontHeader is the usual spelling of a header that the front knows, "" for
// others.
func frontHeader(name []byte) string {
	for _, known := range frontHeaders {
		if len(known) == len(name) && bytes.EqualFold(name, []byte(known)) {
			return known
		}
	}
	return ""
}

// frontType reports whether a request is of a type whose answers are a status,
// a header and a body. Those of gRPC have trailers, which only net/http writes.
func frontType(v []string) bool {
	return len(v) == 1 && (v[0] == directJSON[0] || v[0] == directProto[0])
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func onlyDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// plainHost reports whether a Host is letters, digits, and what stands between
// them in names, addresses and ports.
func plainHost(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == ':', c == '[', c == ']':
		default:
			return false
		}
	}
	return s != ""
}

// frontBody is a body that has been read.
type frontBody struct{ left []byte }

func (b *frontBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *frontBody) Close() error { return nil }
