package message

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Draws is one batch of a stream. Its memory is reused for one batch after another.
type Draws struct {
	Request  kujiv1.StreamDrawsRequest
	draws    []kuji.Draw
	Requests []kuji.Request // pointers into draws
	Results  []kuji.Result
	Named    bool // every draw has a request id
	outcomes int64
	Size     int64 // in memory, with its results and its answer
}

// keptBatch is the largest batch whose memory is kept for the next, in bytes.
const keptBatch = 4 << 20

// Clear empties the batch. It keeps the memory of lists, not of what they refer to.
func (b *Draws) Clear() {
	m := &b.Request
	players, ids := m.Players, m.RequestIds
	proto.Reset(m)
	if b.Size > keptBatch {
		b.draws, b.Requests, b.Results = nil, nil, nil
		return
	}
	clear(players)
	clear(ids)
	m.Players, m.RequestIds = players[:0], ids[:0]
	clear(b.draws)
	clear(b.Results)
}

// Build makes the engine's requests from the request's columns.
func (b *Draws) Build() error {
	m := &b.Request
	n := len(m.GetPlayerIndexes())
	if n == 0 {
		n = len(m.GetPlayers())
	}
	for _, column := range []struct {
		field string
		got   int // one for each draw, or none
	}{
		{"player_indexes", len(m.GetPlayerIndexes())},
		{"pool_indexes", len(m.GetPoolIndexes())},
		{"counts", len(m.GetCounts())},
		{"request_ids", len(m.GetRequestIds())},
	} {
		if column.got != 0 && column.got != n {
			return badColumn(column.field, "%d values for %d draws, want one for each or none", column.got, n)
		}
	}
	if n == 0 {
		return badColumn("players", "0 draws, want 1 to %d", kuji.MaxBatch)
	}
	if len(m.GetPoolIndexes()) == 0 && len(m.GetPools()) != 1 {
		return badColumn("pools", "%d pools without pool_indexes, want 1", len(m.GetPools()))
	}
	b.grow(n)
	if err := b.fill(); err != nil {
		return err
	}
	b.Size = int64(proto.Size(m)) + int64(n)*drawBytes + b.outcomes*sharedBytes
	return nil
}

// grow makes room for n draws.
func (b *Draws) grow(n int) {
	if cap(b.draws) < n {
		b.draws = make([]kuji.Draw, n)
		b.Requests = make([]kuji.Request, n)
		b.Results = make([]kuji.Result, n)
		for i := range b.Requests {
			b.Requests[i] = &b.draws[i]
		}
	}
	b.draws, b.Requests, b.Results = b.draws[:n], b.Requests[:n], b.Results[:n]
}

// fill fills in the draws.
func (b *Draws) fill() error {
	players, playerAt := b.Request.GetPlayers(), b.Request.GetPlayerIndexes()
	pools, poolAt := b.Request.GetPools(), b.Request.GetPoolIndexes()
	counts, ids := b.Request.GetCounts(), b.Request.GetRequestIds()
	b.Named = len(ids) > 0
	b.outcomes = 0
	at := func(column []uint32, i int, otherwise uint32) uint32 {
		if len(column) == 0 {
			return otherwise
		}
		return column[i]
	}
	for i := range b.draws {
		player, pool := at(playerAt, i, uint32(i)), at(poolAt, i, 0)
		if uint64(player) >= uint64(len(players)) {
			return badColumn("player_indexes", "draw %d: %d, want less than the %d players", i, player, len(players))
		}
		if uint64(pool) >= uint64(len(pools)) {
			return badColumn("pool_indexes", "draw %d: %d, want less than the %d pools", i, pool, len(pools))
		}
		d := &b.draws[i]
		*d = kuji.Draw{Player: players[player], Pool: pools[pool], Count: count(max(1, at(counts, i, 1))), Pay: b.Request.GetPay()}
		if len(ids) > 0 {
			d.ID = ids[i]
		}
		b.outcomes += asked(uint32(d.Count))
		b.Named = b.Named && d.ID != ""
	}
	if b.outcomes > contract.MaxBatchOutcomes {
		return badColumn("counts", "%d outcomes in all, want at most %d", b.outcomes, contract.MaxBatchOutcomes)
	}
	return nil
}

func badColumn(field, format string, args ...any) error {
	return &kuji.Error{Code: kuji.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Response makes the answer to the batch from its results.
func (b *Draws) Response() *kujiv1.StreamDrawsResponse { return DrawsResponse(b.draws, b.Results) }

// DrawsResponse makes the answer to a batch of draws from their results.
func DrawsResponse(draws []kuji.Draw, results []kuji.Result) *kujiv1.StreamDrawsResponse {
	t := newTables()
	out := &kujiv1.StreamDrawsResponse{OutcomeIndexes: make([]uint32, 0, len(results))}
	var first *kuji.Result // of the newest run
	plain := true          // every draw has one outcome
	for i := range results {
		res := &results[i]
		if first != nil && follows(first, res, int(out.Runs[len(out.Runs)-1].Draws)) {
			out.Runs[len(out.Runs)-1].Draws++
		} else {
			first = res
			out.Runs = append(out.Runs, run(t, res))
		}
		out.OutcomeIndexes = t.addOutcomes(out.OutcomeIndexes, res.Outcomes)
		plain = plain && (res.Status != kuji.OK || regular(res.Outcomes, draws[i].Count))
	}
	for i := range results {
		for _, c := range results[i].Claims() {
			out.Claims = append(out.Claims, &kujiv1.DrawClaim{Draw: uint32(i), Claimed: claimed(&c)})
		}
		if res := &results[i]; !plain && res.Status == kuji.OK {
			out.OutcomeCounts = append(out.OutcomeCounts, uint32(len(res.Outcomes)))
			out.OutcomeDraws = drawsOf(out.OutcomeDraws, res.Outcomes)
		}
	}
	out.Outcomes, out.Receipts = t.all(), t.receipts
	return out
}

// follows reports whether a result continues a run of n draws.
func follows(first, res *kuji.Result, n int) bool {
	a, b := &first.Receipt, &res.Receipt
	return res.Err == nil && first.Status == res.Status && first.Replayed == res.Replayed && first.Subject == res.Subject &&
		slices.Equal(first.Paid, res.Paid) && equalLimits(first.Limit, res.Limit) && slices.Equal(first.Lacks, res.Lacks) && slices.Equal(first.Beyond(), res.Beyond()) &&
		a.Position == b.Position && a.CatalogVersion == b.CatalogVersion && b.Index == a.Index+n
}

func equalLimits(a, b *kuji.Limit) bool { return a == b || a != nil && b != nil && *a == *b }

// run makes a run of one draw.
func run(t *tables, res *kuji.Result) *kujiv1.DrawRun {
	out := &kujiv1.DrawRun{Draws: 1, Status: Status(res.Status), Subject: res.Subject, Replayed: res.Replayed}
	if res.Status == kuji.Refused {
		out.Error = Refusal(res.Err)
		return out
	}
	out.Paid, out.Limit, out.Lacks = Stacks(res.Paid), Limit(res.Limit), Each(res.Lacks, lack)
	out.Beyond = Each(res.Beyond(), beyond)
	out.Receipt, out.Index = t.receipt(&res.Receipt), uint32(res.Receipt.Index)
	return out
}
