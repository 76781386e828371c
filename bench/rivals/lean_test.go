package rivals

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Lean clients keep what a server costs apart from what its usual client
// costs: a connection, a request put together in one buffer and sent by one
// write, an answer read through one buffer, and no more of it looked at than
// says what was drawn. Redis and Kuji get the same kind, so that both rows are
// about servers.

// wire is a lean client's connection.
type wire struct {
	conn net.Conn
	r    *bufio.Reader
	out  []byte // the request
	body []byte // of the answer
}

func dialWire(tb testing.TB, address string) *wire {
	tb.Helper()
	conn, err := net.Dial("tcp", address)
	must(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	return &wire{conn: conn, r: bufio.NewReader(conn)}
}

// send writes the request.
func (w *wire) send() error {
	_, err := w.conn.Write(w.out)
	return err
}

// line reads a line without its end.
func (w *wire) line() ([]byte, error) {
	line, err := w.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// read reads a body of n bytes.
func (w *wire) read(n int) (err error) {
	if n > cap(w.body) {
		w.body = make([]byte, n)
	}
	w.body = w.body[:n]
	_, err = io.ReadFull(w.r, w.body)
	return err
}

// leanRedis makes draws by EVALSHA.
type leanRedis struct {
	*wire
	hash string
}

func (l leanRedis) draw(_ context.Context, ids, players []string) error {
	for i := range ids {
		if err := l.command("EVALSHA", l.hash, "1", "pool", ids[i], players[i]); err != nil {
			return err
		}
		line, err := l.line()
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(bytes.TrimPrefix(line, []byte("$"))))
		if err != nil || n <= 0 { // an error, or nothing was given
			return fmt.Errorf("Redis answered %q", line)
		}
		if err := l.read(n + len("\r\n")); err != nil {
			return err
		}
	}
	return nil
}

// command sends a command of Redis.
func (w *wire) command(words ...string) error {
	w.out = append(strconv.AppendInt(append(w.out[:0], '*'), int64(len(words)), 10), "\r\n"...)
	for _, word := range words {
		w.out = append(strconv.AppendInt(append(w.out, '$'), int64(len(word)), 10), "\r\n"...)
		w.out = append(append(w.out, word...), "\r\n"...)
	}
	return w.send()
}

// leanDraw makes draws in Kuji over the Redis protocol.
type leanDraw struct{ *wire }

func (l leanDraw) draw(_ context.Context, ids, players []string) error {
	for i := range ids {
		if err := l.command("DRAW", players[i], "pool", "ID", ids[i]); err != nil {
			return err
		}
		var first [4]string // the map's size, and status: ok
		if err := l.values(1, &first); err != nil {
			return err
		}
		if first[1] != "status" || first[2] != "ok" {
			return fmt.Errorf("a draw ended with %q", first)
		}
	}
	return nil
}

// values reads n values and those in them, and keeps the first of the lines.
func (w *wire) values(n int, first *[4]string) error {
	for seen := 0; n > 0; n-- {
		line, err := w.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return errors.New("an empty line")
		}
		switch size, err := strconv.Atoi(string(line[1:])); {
		case line[0] == '*' && err == nil:
			n += size
		case line[0] == '$' && err == nil:
			if err := w.read(size + len("\r\n")); err != nil {
				return err
			}
			line = w.body[:size]
		}
		if seen < len(first) {
			first[seen] = string(line)
			seen++
		}
	}
	return nil
}

// leanHTTP makes draws by unary calls of the Connect protocol over a kept
// HTTP/1.1 connection.
type leanHTTP struct {
	*wire
	codec, host string
	message     []byte
}

func openHTTP(tb testing.TB, address, codec string) connection {
	u, err := url.Parse(address)
	must(tb, err)
	return &leanHTTP{wire: dialWire(tb, u.Host), codec: codec, host: u.Host}
}

func (l *leanHTTP) draw(_ context.Context, ids, players []string) error {
	for i := range ids {
		l.encode(ids[i], players[i])
		if err := l.send(); err != nil {
			return err
		}
		if err := l.receive(); err != nil {
			return err
		}
	}
	return nil
}

// encode puts a request together. What it is given needs no escapes in JSON.
func (l *leanHTTP) encode(id, player string) {
	m := l.message[:0]
	if l.codec == "json" {
		m = append(append(m, `{"requestId":"`...), id...)
		m = append(append(m, `","player":"`...), player...)
		m = append(m, `","pool":"pool"}`...)
	} else {
		for _, f := range [...]struct {
			number protowire.Number
			value  string
		}{{2, id}, {3, player}, {4, "pool"}} {
			m = protowire.AppendString(protowire.AppendTag(m, f.number, protowire.BytesType), f.value)
		}
	}
	l.message = m
	l.out = append(append(l.out[:0], "POST /kuji.v1.RewardService/Draw HTTP/1.1\r\nHost: "...), l.host...)
	l.out = append(append(l.out, "\r\nContent-Type: application/"...), l.codec...)
	l.out = strconv.AppendInt(append(l.out, "\r\nContent-Length: "...), int64(len(m)), 10)
	l.out = append(append(l.out, "\r\n\r\n"...), m...)
}

// receive reads an answer and checks that it is a draw that was made.
func (l *leanHTTP) receive() error {
	status, err := l.line()
	if err != nil {
		return err
	}
	ok := bytes.Equal(status, []byte("HTTP/1.1 200 OK"))
	length := -1
	for {
		line, err := l.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			break
		}
		if v, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(v)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("an answer without its length")
	}
	if err := l.read(length); err != nil {
		return err
	}
	if !ok || !l.made() {
		return fmt.Errorf("a draw ended with %q", l.body)
	}
	return nil
}

// made reports whether the answer says that a draw was made.
func (l *leanHTTP) made() bool {
	if l.codec == "json" {
		return bytes.Contains(l.body, []byte(`"STATUS_OK"`))
	}
	// DrawResponse.result, of which status comes first.
	number, kind, n := protowire.ConsumeTag(l.body)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return false
	}
	result, n := protowire.ConsumeBytes(l.body[n:])
	return n > 0 && bytes.HasPrefix(result, []byte{1 << 3, 1})
}
