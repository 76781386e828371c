package server

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// drawAnswer writes a StreamDrawsResponse. Its memory is used again.
type drawAnswer struct {
	statuses [math.MaxUint8 + 1]int // how many draws ended how

	runs     []byte // encoded, each with its tag
	outcomes []byte // likewise
	receipts []byte // likewise
	indexes  []byte // packed
	one      []byte // the message being written

	outcomeCount uint32
	receiptCount uint32
	// An outcome is found again by its address, as long as the engine gives the
	// same one for the same entry, and else by its entry's id.
	byAddress map[*kuji.Outcome]uint32
	byEntry   map[string]*kuji.Outcome
	byReceipt map[receiptKey]uint32
}

// Numbers of the fields of StreamDrawsResponse and of what it holds.
const (
	fieldRuns           = 1
	fieldOutcomeIndexes = 2
	fieldOutcomes       = 3
	fieldReceipts       = 4

	fieldRunDraws    = 1
	fieldRunStatus   = 2
	fieldRunSubject  = 3
	fieldRunReplayed = 4
	fieldRunReceipt  = 5
	fieldRunIndex    = 6
	fieldRunError    = 7

	fieldOutcomeEntry = 1
	fieldOutcomeItems = 2
	fieldOutcomeVia   = 3

	fieldStackItem     = 1
	fieldStackQuantity = 2
)

// run is a DrawRun that is still growing.
type run struct {
	first *kuji.Result
	draws int
}

// follows reports whether res is one more of the run.
func (r *run) follows(res *kuji.Result) bool {
	f := r.first
	if f == nil || f.Status != res.Status || f.Replayed != res.Replayed || f.Subject != res.Subject || res.Err != nil {
		return false
	}
	a, b := &f.Receipt, &res.Receipt
	return a.Position == b.Position && a.CatalogVersion == b.CatalogVersion && b.Index == a.Index+r.draws
}

// appendAnswer appends the StreamDrawsResponse to a batch whose results are
// there. It also counts them by status.
func (a *drawAnswer) appendAnswer(dst []byte, results []kuji.Result) ([]byte, error) {
	a.clear()
	var open run
	for i := range results {
		res := &results[i]
		a.statuses[res.Status]++
		if open.follows(res) {
			open.draws++
		} else {
			if err := a.addRun(&open); err != nil {
				return nil, err
			}
			open = run{first: res, draws: 1}
		}
		for j := range res.Outcomes {
			a.indexes = protowire.AppendVarint(a.indexes, uint64(a.outcome(&res.Outcomes[j])))
		}
	}
	if err := a.addRun(&open); err != nil {
		return nil, err
	}
	dst = append(dst, a.runs...)
	if len(a.indexes) > 0 {
		dst = protowire.AppendTag(dst, fieldOutcomeIndexes, protowire.BytesType)
		dst = protowire.AppendBytes(dst, a.indexes)
	}
	dst = append(dst, a.outcomes...)
	return append(dst, a.receipts...), nil
}

func (a *drawAnswer) clear() {
	clear(a.statuses[:])
	if cap(a.runs)+cap(a.outcomes)+cap(a.indexes) > maxKept {
		*a = drawAnswer{}
	}
	a.runs, a.outcomes, a.receipts, a.indexes = a.runs[:0], a.outcomes[:0], a.receipts[:0], a.indexes[:0]
	a.outcomeCount, a.receiptCount = 0, 0
	if a.byAddress == nil {
		a.byAddress = make(map[*kuji.Outcome]uint32)
		a.byEntry = make(map[string]*kuji.Outcome)
		a.byReceipt = make(map[receiptKey]uint32)
	}
	clear(a.byAddress)
	clear(a.byEntry)
	clear(a.byReceipt)
}

// addRun writes a run, unless it is empty.
func (a *drawAnswer) addRun(r *run) error {
	if r.draws == 0 {
		return nil
	}
	res := r.first
	m := appendUint(a.one[:0], fieldRunDraws, uint64(r.draws))
	m = appendUint(m, fieldRunStatus, uint64(statusProto(res.Status)))
	m = appendString(m, fieldRunSubject, res.Subject)
	if res.Replayed {
		m = appendUint(m, fieldRunReplayed, 1)
	}
	if res.Status == kuji.Refused {
		detail, err := proto.Marshal(refusalOf(res.Err))
		if err != nil {
			return err
		}
		m = protowire.AppendTag(m, fieldRunError, protowire.BytesType)
		m = protowire.AppendBytes(m, detail)
	} else {
		place, err := a.receipt(&res.Receipt)
		if err != nil {
			return err
		}
		m = protowire.AppendTag(m, fieldRunReceipt, protowire.VarintType) // present even when 0
		m = protowire.AppendVarint(m, uint64(place))
		m = appendUint(m, fieldRunIndex, uint64(res.Receipt.Index))
	}
	a.one = m
	a.runs = protowire.AppendTag(a.runs, fieldRuns, protowire.BytesType)
	a.runs = protowire.AppendBytes(a.runs, m)
	return nil
}

// receipt returns a receipt's place among the receipts, which it is added to
// unless it stands there.
func (a *drawAnswer) receipt(r *kuji.Receipt) (uint32, error) {
	key := receiptKey{r.Position, r.CatalogVersion}
	if place, ok := a.byReceipt[key]; ok {
		return place, nil
	}
	var m kujiv1.Receipt
	fillReceipt(&m, r, r.Commitment[:])
	m.Index = 0
	raw, err := proto.Marshal(&m)
	if err != nil {
		return 0, err
	}
	a.receipts = protowire.AppendTag(a.receipts, fieldReceipts, protowire.BytesType)
	a.receipts = protowire.AppendBytes(a.receipts, raw)
	place := a.receiptCount
	a.byReceipt[key] = place
	a.receiptCount++
	return place, nil
}

// outcome returns an outcome's place among the outcomes, which it is added to
// unless an equal one is found there.
func (a *drawAnswer) outcome(o *kuji.Outcome) uint32 {
	if place, ok := a.byAddress[o]; ok {
		return place
	}
	if known := a.byEntry[o.Entry]; known != nil && equalOutcomes(known, o) {
		return a.byAddress[known]
	}
	a.outcomes = protowire.AppendTag(a.outcomes, fieldOutcomes, protowire.BytesType)
	m := appendOutcome(a.one[:0], o)
	a.one = m
	a.outcomes = protowire.AppendBytes(a.outcomes, m)
	place := a.outcomeCount
	a.byAddress[o] = place
	a.byEntry[o.Entry] = o
	a.outcomeCount++
	return place
}

func equalOutcomes(x, y *kuji.Outcome) bool {
	if x.Entry != y.Entry || len(x.Items) != len(y.Items) || len(x.Via) != len(y.Via) {
		return false
	}
	for i := range x.Items {
		if x.Items[i] != y.Items[i] {
			return false
		}
	}
	for i := range x.Via {
		if x.Via[i] != y.Via[i] {
			return false
		}
	}
	return true
}

// appendUint appends a number field, which proto3 leaves out when it is 0.
func appendUint(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

// appendString appends a string field, which proto3 leaves out when it is empty.
func appendString(dst []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, num, protowire.BytesType), s)
}

// stackSize is the size of a Stack's message.
func stackSize(s kuji.Stack) int {
	n := 0
	if s.Item != "" {
		n += protowire.SizeTag(fieldStackItem) + protowire.SizeBytes(len(s.Item))
	}
	if s.Quantity != 0 {
		n += protowire.SizeTag(fieldStackQuantity) + protowire.SizeVarint(s.Quantity)
	}
	return n
}

// message is the answer as the message that it is.
func (b *drawBatch) message() (*kujiv1.StreamDrawsResponse, error) {
	raw, err := b.appendAnswer(nil, b.results)
	if err != nil {
		return nil, err
	}
	m := new(kujiv1.StreamDrawsResponse)
	return m, proto.Unmarshal(raw, m)
}
