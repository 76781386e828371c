package redis

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
)

// inbox is what has arrived on a connection.
type inbox struct {
	s       *Server
	nc      net.Conn
	client  *Client
	first   [Buffer]byte
	buf     []byte        // first, or larger
	taken   int64         // of Gate.Memory, for a larger one
	payer   access.Caller // who took it
	from    int           // buf[from:scanned] is whole commands
	scanned int
	to      int // buf[scanned:to] is the beginning of another
	whole   int // how many commands are whole
	words   [][]byte
	broken  error     // why the bytes after the whole commands are no command
	began   time.Time // when the next command began to arrive; zero: it has not
}

// receive waits for a whole command, and takes all that have arrived with it. If they fill the
// buffer and it ends within another command, receive waits for more of that, if it may grow.
func (in *inbox) receive() error {
	in.compact()
	for {
		in.scan()
		full := in.to == len(in.buf)
		if in.broken != nil || in.whole > 0 && (!full || in.scanned == in.to || in.whole == kuji.MaxBatch) {
			return nil
		}
		var err error
		if full {
			err = in.grow()
		}
		if err == nil {
			err = in.read()
		}
		switch {
		case err != nil && in.whole > 0:
			return nil
		case err != nil:
			return err
		}
	}
}

// scan finds the whole commands.
func (in *inbox) scan() {
	limit := in.s.Limits.RequestBytes
	if in.client.Access == nil {
		limit = Buffer
	}
	for in.broken == nil && in.whole < kuji.MaxBatch && in.scanned < in.to {
		words, n, err := ParseCommand(in.buf[in.scanned:in.to], limit, in.words)
		if err != nil {
			in.broken = err
			return
		}
		if n == 0 {
			return
		}
		in.words = words
		in.scanned += n
		in.whole++
		in.began = time.Time{}
	}
}

// read reads once. A client may be idle between commands, not within one.
func (in *inbox) read() error {
	l := &in.s.Limits
	now := time.Now()
	until := now.Add(l.IdleTimeout)
	if in.scanned < in.to {
		if in.began.IsZero() {
			in.began = now
		}
		if until = in.began.Add(l.ReadTimeout); in.client.Access == nil {
			until = in.began.Add(l.HeaderTimeout)
		}
	}
	if err := in.nc.SetReadDeadline(until); err != nil {
		return err
	}
	if in.s.Stopping.Err() != nil { // shutdown may have set its deadline before
		return in.s.Stopping.Err()
	}
	n, err := in.nc.Read(in.buf[in.to:])
	in.to += n
	switch {
	case n > 0:
		return nil
	case in.scanned < in.to && errors.Is(err, os.ErrDeadlineExceeded) && in.s.Stopping.Err() == nil:
		return &kuji.Error{Code: kuji.CodeInvalid, Field: "protocol", Message: fmt.Sprintf("the command is incomplete: %d bytes arrived in time", in.to-in.scanned)}
	}
	return err
}

// compact makes room for what comes next, and gives back what the last pipeline needed in addition.
func (in *inbox) compact() {
	if in.whole > 0 || in.from == 0 {
		return
	}
	rest := in.buf[in.from:in.to]
	to := in.buf
	if len(rest) <= len(in.first)/2 {
		to = in.first[:]
	}
	n := copy(to, rest)
	in.from, in.scanned, in.to = 0, 0, n
	if len(to) == len(in.first) {
		in.shrink()
	}
}

// shrink gives back what a larger buffer took.
func (in *inbox) shrink() {
	if in.taken > 0 {
		in.s.Gate.Memory.Give(in.payer, in.taken)
	}
	in.taken, in.buf = 0, in.first[:]
}

// errFull is why a buffer grows no further.
var errFull = errors.New("the buffer is as large as it may be")

// grow makes the buffer twice as large.
func (in *inbox) grow() error {
	size := min(2*len(in.buf), max(in.s.Limits.BatchBytes, in.s.Limits.RequestBytes))
	if in.client.Access == nil || size <= len(in.buf) {
		return errFull // there is a whole command then: scan refuses one that does not fit
	}
	if in.taken == 0 {
		in.payer = in.client.Access.Who
	}
	// There must be room for the request as well: see enter.
	if refusal := in.s.Gate.Memory.Take(in.payer, int64(size)-in.taken+admission.RequestCost); refusal != nil {
		return refusal
	}
	in.s.Gate.Memory.Give(in.payer, admission.RequestCost)
	in.taken = int64(size)
	buf := make([]byte, size)
	copy(buf, in.buf[:in.to])
	in.buf = buf
	return nil
}
