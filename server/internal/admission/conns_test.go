package admission

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
)

// pieces is a connection on which pieces arrive, one with each read.
type pieces struct {
	net.Conn
	all   [][]byte
	reads int
}

func (p *pieces) Read(dst []byte) (int, error) {
	p.reads++
	if len(p.all) == 0 {
		return 0, io.EOF
	}
	n := copy(dst, p.all[0])
	if p.all[0] = p.all[0][n:]; len(p.all[0]) == 0 {
		p.all = p.all[1:]
	}
	return n, nil
}

// TestReadAhead: what is read is what arrived, in whatever sizes it arrives and is asked for, and
// the end comes after it.
func TestReadAhead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var want, got []byte
		under := &pieces{}
		for range random.IntN(8) {
			piece := make([]byte, 1+random.IntN(2*readAhead))
			for i := range piece {
				piece[i] = byte(random.Uint32())
			}
			want, under.all = append(want, piece...), append(under.all, piece)
		}
		c := &Conn{Conn: under}
		for {
			p := make([]byte, 1+random.IntN(2*readAhead))
			n, err := c.Read(p)
			if got = append(got, p[:n]...); err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				break
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes were read, not the %d that arrived", len(got), len(want))
		}
	}
}

// TestReadOnce: a small frame of HTTP/2, its head and then its rest, is one read. A read of one
// byte, which waits for the end of a client of HTTP/1.1, takes no more than that.
func TestReadOnce(t *testing.T) {
	frame := bytes.Repeat([]byte("x"), 100)
	under := &pieces{all: [][]byte{frame, frame}}
	c := &Conn{Conn: under}
	for _, part := range []int{9, len(frame) - 9} {
		if n, err := io.ReadFull(c, make([]byte, part)); err != nil {
			t.Fatalf("%d of %d bytes: %v", n, part, err)
		}
	}
	if under.reads != 1 {
		t.Errorf("a frame took %d reads, want 1", under.reads)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil || len(under.all[0]) != len(frame)-1 {
		t.Errorf("a read of one byte left %d bytes on the connection, want %d; error %v", len(under.all[0]), len(frame)-1, err)
	}
}
