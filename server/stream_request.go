package server

import (
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// drawBatch is one batch of a stream on its way. It is a StreamDrawsRequest
// when it is received and the StreamDrawsResponse to it when it is sent: the
// codecs read and write it as the one and the other, but without a message for
// each draw. Its memory is used for one batch after the other; the strings of
// a request lie in one piece, which is all that is allocated for a batch.
type drawBatch struct {
	arrived time.Time

	// The request's columns, as StreamDrawsRequest explains them.
	realm      string
	players    []string
	playerAt   []uint32
	pools      []string
	poolAt     []uint32
	counts     []uint32
	requestIDs []string
	excess     error // a column is longer than a batch may be

	// What the engine gets and gives.
	draws   []kuji.Draw
	reqs    []kuji.Request // pointers into draws
	results []kuji.Result
	commit  kuji.Commit
	named   bool // every draw has a request id
	bytes   int  // of the request
	bulk    bool // it holds a place among the large requests

	drawAnswer
}

// Numbers of StreamDrawsRequest's fields.
const (
	fieldRealm         = 1
	fieldPlayers       = 2
	fieldPlayerIndexes = 3
	fieldPools         = 4
	fieldPoolIndexes   = 5
	fieldCounts        = 6
	fieldRequestIDs    = 7
)

// reset empties b for the next request.
func (b *drawBatch) reset() {
	b.realm, b.excess, b.bytes = "", nil, 0
	b.players, b.playerAt = b.players[:0], b.playerAt[:0]
	b.pools, b.poolAt = b.pools[:0], b.poolAt[:0]
	b.counts, b.requestIDs = b.counts[:0], b.requestIDs[:0]
}

// unmarshal reads a StreamDrawsRequest, as proto.Unmarshal would.
func (b *drawBatch) unmarshal(data []byte) error {
	b.reset()
	b.bytes = len(data)
	text := string(data)
	for at := 0; at < len(data); {
		num, typ, n := protowire.ConsumeTag(data[at:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		if num > protowire.MaxValidNumber {
			return fmt.Errorf("field number %d, want at most %d", num, protowire.MaxValidNumber)
		}
		at += n
		var err error
		switch list, column := b.list(num), b.column(num); {
		case typ == protowire.BytesType && (list != nil || num == fieldRealm):
			var one string
			if one, n, err = consumeString(data, text, at); err != nil {
				return err
			}
			if list == nil {
				b.realm = one
			} else if len(*list) < kuji.MaxBatch {
				*list = append(*list, one)
			} else {
				b.excess = tooMany(num)
			}
		case column != nil && (typ == protowire.BytesType || typ == protowire.VarintType):
			if n, err = b.consumeNumbers(column, num, typ, data[at:]); err != nil {
				return err
			}
		default:
			if n = protowire.ConsumeFieldValue(num, typ, data[at:]); n < 0 {
				return protowire.ParseError(n)
			}
		}
		at += n
	}
	return nil
}

// list returns where strings of a field go, nil when it is no list of strings.
func (b *drawBatch) list(num protowire.Number) *[]string {
	switch num {
	case fieldPlayers:
		return &b.players
	case fieldPools:
		return &b.pools
	case fieldRequestIDs:
		return &b.requestIDs
	}
	return nil
}

// column returns where numbers of a field go, nil when it is no list of numbers.
func (b *drawBatch) column(num protowire.Number) *[]uint32 {
	switch num {
	case fieldPlayerIndexes:
		return &b.playerAt
	case fieldPoolIndexes:
		return &b.poolAt
	case fieldCounts:
		return &b.counts
	}
	return nil
}

var drawsRequest = (*kujiv1.StreamDrawsRequest)(nil).ProtoReflect().Descriptor()

// tooMany says that a field has more values than a batch may have draws. The
// others are not kept.
func tooMany(num protowire.Number) error {
	return badColumn(string(drawsRequest.Fields().ByNumber(num).Name()), "more than %d of them, the most draws in a batch", kuji.MaxBatch)
}

// consumeString returns the string at a place of data, which text is a copy
// of, and how long it is with its length before it.
func consumeString(data []byte, text string, at int) (s string, n int, err error) {
	raw, n := protowire.ConsumeBytes(data[at:])
	if n < 0 {
		return "", n, protowire.ParseError(n)
	}
	s = text[at+n-len(raw) : at+n]
	if !utf8.ValidString(s) {
		return "", n, fmt.Errorf("%.100q is not valid UTF-8", s)
	}
	return s, n, nil
}

// consumeNumbers appends the number, or the packed numbers, at the start of
// data to a column, and returns how many bytes they take.
func (b *drawBatch) consumeNumbers(column *[]uint32, num protowire.Number, typ protowire.Type, data []byte) (n int, err error) {
	packed := data
	if typ == protowire.BytesType {
		if packed, n = protowire.ConsumeBytes(data); n < 0 {
			return n, protowire.ParseError(n)
		}
	}
	for len(packed) > 0 {
		v, m := protowire.ConsumeVarint(packed)
		if m < 0 {
			return m, protowire.ParseError(m)
		}
		if len(*column) < kuji.MaxBatch {
			*column = append(*column, uint32(v))
		} else {
			b.excess = tooMany(num)
		}
		if typ == protowire.VarintType {
			return m, nil
		}
		packed = packed[m:]
	}
	if typ == protowire.VarintType {
		return 0, io.ErrUnexpectedEOF
	}
	return n, nil
}

// build makes the engine's requests out of the columns.
func (b *drawBatch) build() error {
	if b.excess != nil {
		return b.excess
	}
	n := len(b.playerAt)
	if n == 0 {
		n = len(b.players)
	}
	if n == 0 {
		return badColumn("players", "0 draws, want 1 to %d", kuji.MaxBatch)
	}
	for _, column := range []struct {
		field string
		got   int
	}{{"pool_indexes", len(b.poolAt)}, {"counts", len(b.counts)}, {"request_ids", len(b.requestIDs)}} {
		if column.got != n && column.got != 0 {
			return badColumn(column.field, "%d of them for %d draws, want one for each or none", column.got, n)
		}
	}
	if len(b.poolAt) == 0 && len(b.pools) != 1 {
		return badColumn("pools", "%d of them without pool_indexes, want 1", len(b.pools))
	}
	b.size(n)
	return b.fill()
}

// fill fills in the draws.
func (b *drawBatch) fill() error {
	b.named = len(b.requestIDs) > 0
	outcomes := 0
	for i := range b.draws {
		d := &b.draws[i]
		*d = kuji.Draw{Count: 1}
		player, pool := i, 0
		if len(b.playerAt) > 0 {
			if player = int(b.playerAt[i]); uint(player) >= uint(len(b.players)) {
				return badColumn("player_indexes", "draw %d: %d, want less than the %d players", i, b.playerAt[i], len(b.players))
			}
		}
		if len(b.poolAt) > 0 {
			if pool = int(b.poolAt[i]); uint(pool) >= uint(len(b.pools)) {
				return badColumn("pool_indexes", "draw %d: %d, want less than the %d pools", i, b.poolAt[i], len(b.pools))
			}
		}
		d.Player, d.Pool = b.players[player], b.pools[pool]
		if len(b.counts) > 0 && b.counts[i] > 0 {
			d.Count = countOf(b.counts[i])
		}
		if d.Count <= kuji.MaxDrawCount { // others are refused one by one
			outcomes += d.Count
		}
		if len(b.requestIDs) > 0 {
			d.ID = b.requestIDs[i]
		}
		b.named = b.named && d.ID != ""
	}
	if outcomes > MaxBatchOutcomes {
		return badColumn("counts", "%d outcomes in all, want at most %d", outcomes, MaxBatchOutcomes)
	}
	return nil
}

func badColumn(field, format string, args ...any) error {
	return &kuji.Error{Code: kuji.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// size makes room for n draws.
func (b *drawBatch) size(n int) {
	if cap(b.draws) < n {
		b.draws = make([]kuji.Draw, n)
		b.reqs = make([]kuji.Request, n)
		b.results = make([]kuji.Result, n)
		for i := range b.reqs {
			b.reqs[i] = &b.draws[i]
		}
	}
	b.draws, b.reqs, b.results = b.draws[:n], b.reqs[:n], b.results[:n]
}

// fromMessage reads a decoded message, by way of the one reader that checks.
func (b *drawBatch) fromMessage(m *kujiv1.StreamDrawsRequest) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return b.unmarshal(raw)
}
