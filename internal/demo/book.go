package demo

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// record is one acknowledged command: what was asked and a digest of what was
// answered, receipt included.
type record struct {
	command  *kujiv1.Command
	digest   [16]byte
	position uint64
}

// ledger is what one client was told: the other side's book. It uses nothing
// that the server computes, so that the two can be compared.
type ledger struct {
	realm    string
	records  []record
	balances counts[int64]  // by player and item: from start, grants, prices and outcomes acknowledged
	drawn    counts[uint64] // by pool and entry
	outcomes uint64         // single draws acknowledged
	refusals uint64         // acknowledged with a status other than ok
	// beforeCrash is the highest position acknowledged before the crash.
	beforeCrash uint64
	latencies   []float64
	streaks
}

// counts are numbers by two names.
type counts[N int64 | uint64] map[string]map[string]N

// of returns the numbers with a first name, to be read and changed.
func (c counts[N]) of(first string) map[string]N {
	if c[first] == nil {
		c[first] = map[string]N{}
	}
	return c[first]
}

func (c counts[N]) merge(other counts[N]) {
	for first, numbers := range other {
		sums := c.of(first)
		for second, n := range numbers {
			sums[second] += n
		}
	}
}

// newLedger returns an empty book of a realm with these pools.
func newLedger(realm string, pools []catalog.Pool) *ledger {
	return &ledger{realm: realm, balances: counts[int64]{}, drawn: counts[uint64]{}, streaks: newStreaks(pools)}
}

// meet books what a player holds when first seen.
func (l *ledger) meet(player string, start []*kujiv1.Stack) {
	if l.balances[player] == nil {
		l.balances.of(player)
		l.add(player, start, 1)
	}
}

func (l *ledger) add(player string, items []*kujiv1.Stack, sign int64) {
	for _, s := range items {
		l.balances[player][s.GetItem()] += sign * int64(s.GetQuantity())
	}
}

// acknowledge books the answer to one command. prices are the pool's, for a
// single draw: one of them must have been paid.
func (l *ledger) acknowledge(cmd *kujiv1.Command, result *kujiv1.Result, prices [][]*kujiv1.Stack) error {
	digest, err := digestOf(result)
	if err != nil {
		return err
	}
	position := result.GetReceipt().GetPosition()
	l.records = append(l.records, record{cmd, digest, position})
	if result.GetStatus() != kujiv1.Status_STATUS_OK {
		l.refusals++
		return nil
	}
	switch {
	case cmd.GetGrant() != nil:
		l.add(cmd.GetGrant().GetPlayer(), cmd.GetGrant().GetItems(), 1)
	case cmd.GetDraw() != nil:
		draw := cmd.GetDraw()
		if !isPrice(result.GetPaid(), prices) {
			return brokenf("request %s: a draw from %s cost %s, which is none of its prices", cmd.GetRequestId(), draw.GetPool(), costText(result.GetPaid()))
		}
		l.add(draw.GetPlayer(), result.GetPaid(), -1)
		for _, o := range result.GetOutcomes() {
			l.add(draw.GetPlayer(), o.GetItems(), 1)
			l.bookDrawn(draw.GetPlayer(), draw.GetPool(), o.GetEntry())
			for _, via := range o.GetVia() {
				pool, entry, _ := strings.Cut(via, "/")
				l.bookDrawn(draw.GetPlayer(), pool, entry)
			}
			l.outcomes++
		}
	}
	return nil
}

func costText(paid []*kujiv1.Stack) string {
	text := ""
	for _, s := range paid {
		text += fmt.Sprintf(" %s=%d", s.GetItem(), s.GetQuantity())
	}
	return cmp.Or(strings.TrimSpace(text), "nothing")
}

// isPrice reports whether paid is one of the prices, or nothing if the pool has none.
func isPrice(paid []*kujiv1.Stack, prices [][]*kujiv1.Stack) bool {
	if len(prices) == 0 {
		return len(paid) == 0
	}
	return slices.ContainsFunc(prices, func(price []*kujiv1.Stack) bool {
		return slices.EqualFunc(paid, price, func(a, b *kujiv1.Stack) bool { return proto.Equal(a, b) })
	})
}

// bookDrawn books that a player drew an entry.
func (l *ledger) bookDrawn(player, pool, entry string) {
	l.drawn.of(pool)[entry]++
	l.see(player, pool, entry)
}

// merge adds what another client of the same realm was told.
func (l *ledger) merge(other *ledger) {
	l.records = append(l.records, other.records...)
	l.balances.merge(other.balances)
	l.drawn.merge(other.drawn)
	l.streaks.merge(&other.streaks)
	l.outcomes += other.outcomes
	l.refusals += other.refusals
	l.beforeCrash = max(l.beforeCrash, other.beforeCrash)
	l.latencies = append(l.latencies, other.latencies...)
}

// digestOf fingerprints an answer; that it is a repetition does not count.
func digestOf(result *kujiv1.Result) (digest [16]byte, err error) {
	first := proto.CloneOf(result)
	first.Replayed = false
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(first)
	if err != nil {
		return digest, err
	}
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16]), nil
}

// expand writes the result of a batch as a unary call would have answered it.
func expand(r *kujiv1.BatchResult, resp *kujiv1.BatchResponse) (*kujiv1.Result, error) {
	if r.GetStatus() == kujiv1.Status_STATUS_REFUSED {
		why := r.GetError().GetReason().String()
		for _, v := range r.GetError().GetViolations() {
			why += ": " + v.GetDescription()
		}
		return nil, fmt.Errorf("refused: %s", why)
	}
	out := &kujiv1.Result{Status: r.GetStatus(), Subject: r.GetSubject(), Members: r.GetMembers(), Replayed: r.GetReplayed(), Paid: r.GetPaid(),
		Limit: r.GetLimit(), Lacks: r.GetLacks()}
	draws := r.GetOutcomeDraws()
	if len(draws) > 0 && len(draws) != len(r.GetOutcomes()) {
		return nil, fmt.Errorf("%d draws of %d outcomes", len(draws), len(r.GetOutcomes()))
	}
	for i, at := range r.GetOutcomes() {
		if int(at) >= len(resp.GetOutcomes()) {
			return nil, fmt.Errorf("outcome %d of %d", at, len(resp.GetOutcomes()))
		}
		o := proto.CloneOf(resp.GetOutcomes()[at])
		if o.Draw = uint32(i); len(draws) > 0 {
			o.Draw = draws[i]
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	if r.Receipt == nil || int(r.GetReceipt()) >= len(resp.GetReceipts()) {
		return nil, fmt.Errorf("receipt %d of %d", r.GetReceipt(), len(resp.GetReceipts()))
	}
	out.Receipt = proto.CloneOf(resp.GetReceipts()[r.GetReceipt()])
	out.Receipt.Index = r.GetIndex()
	return out, nil
}

// checkAgain compares the answer to a repeated command with the first one.
func checkAgain(rec record, again *kujiv1.Result) error {
	id := rec.command.GetRequestId()
	if !again.GetReplayed() {
		return fmt.Errorf("request %s was acknowledged at position %d and then forgotten: sent again, it happened a second time", id, rec.position)
	}
	digest, err := digestOf(again)
	if err != nil {
		return err
	}
	if digest != rec.digest {
		return fmt.Errorf("request %s was acknowledged at position %d and is answered differently now: %s at position %d",
			id, rec.position, contract.Word(again.GetStatus()), again.GetReceipt().GetPosition())
	}
	return nil
}

// checkPlayer compares what a player holds with what was acknowledged.
func checkPlayer(player string, want map[string]int64, got []*kujiv1.Stack) error {
	left := map[string]int64{}
	for item, n := range want {
		if n != 0 {
			left[item] = n
		}
	}
	var wrong []string
	for _, s := range got {
		if left[s.GetItem()] != int64(s.GetQuantity()) {
			wrong = append(wrong, fmt.Sprintf("%s is %d, acknowledged %d", s.GetItem(), s.GetQuantity(), left[s.GetItem()]))
		}
		delete(left, s.GetItem())
	}
	for item, n := range left {
		wrong = append(wrong, fmt.Sprintf("%s is 0, acknowledged %d", item, n))
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("player %s: %s", player, strings.Join(wrong, "; "))
	}
	return nil
}

// checkPool compares a pool with what was acknowledged and with the stock that
// the catalog gave it; stock holds the limited entries only.
func checkPool(pool *kujiv1.Pool, stock, acknowledged map[string]uint64) error {
	var wrong []error
	seen := map[string]bool{}
	for _, e := range pool.GetEntries() {
		seen[e.GetId()] = true
		name := pool.GetId() + "/" + e.GetId()
		if e.GetDrawn() != acknowledged[e.GetId()] {
			wrong = append(wrong, fmt.Errorf("%s: drawn %d times, acknowledged %d times", name, e.GetDrawn(), acknowledged[e.GetId()]))
		}
		limit, limited := stock[e.GetId()]
		switch {
		case limited && e.Left == nil:
			wrong = append(wrong, fmt.Errorf("%s: unlimited, the catalog says %d", name, limit))
		case !limited && e.Left != nil:
			wrong = append(wrong, fmt.Errorf("%s: %d left, the catalog says unlimited", name, e.GetLeft()))
		case limited && (e.GetDrawn() > limit || e.GetLeft() != limit-e.GetDrawn()):
			wrong = append(wrong, fmt.Errorf("%s: %d drawn and %d left of %d", name, e.GetDrawn(), e.GetLeft(), limit))
		}
	}
	for entry := range stock {
		if !seen[entry] {
			wrong = append(wrong, fmt.Errorf("%s/%s: gone", pool.GetId(), entry))
		}
	}
	return errors.Join(wrong...)
}

// maxSigma is how far, in standard deviations, a frequency may be from its
// odds. Chance alone passes six about twice in a thousand million.
const maxSigma = 6

// Odds is how often an entry was wanted and seen.
type Odds struct {
	Entry  string  `json:"entry"`
	Wanted float64 `json:"wanted"` // a probability
	Seen   float64 `json:"seen"`   // a frequency
	Drawn  uint64  `json:"drawn"`
}

// oddsOf compares frequencies with weights, for a pool without limited stock, by
// the draws that no track had changed.
func oddsOf(pool *kujiv1.Pool, drawn map[string]uint64) ([]Odds, error) {
	var weights, draws uint64
	for _, e := range pool.GetEntries() {
		weights += e.GetCatalogWeight()
		draws += drawn[e.GetId()]
	}
	if weights == 0 || draws == 0 {
		return nil, fmt.Errorf("pool %s: %d draws on a total weight of %d: nothing to compare", pool.GetId(), draws, weights)
	}
	var table []Odds
	var wrong []error
	for _, e := range pool.GetEntries() {
		p := float64(e.GetCatalogWeight()) / float64(weights)
		o := Odds{e.GetId(), p, float64(drawn[e.GetId()]) / float64(draws), drawn[e.GetId()]}
		table = append(table, o)
		// One draw more or less is not a deviation; for rare entries that
		// matters.
		deviation := math.Abs(float64(o.Drawn)-p*float64(draws)) - 1
		if sigma := math.Sqrt(p * (1 - p) * float64(draws)); deviation > maxSigma*sigma {
			wrong = append(wrong, fmt.Errorf("%s/%s: %.4f%% of %d draws, odds are %.4f%%: chance cannot explain that",
				pool.GetId(), o.Entry, 100*o.Seen, draws, 100*o.Wanted))
		}
	}
	return table, errors.Join(wrong...)
}

// audit compares a log, event by event, with the book of what was acknowledged.
type audit struct {
	realm string
	open  map[string]record // acknowledged and not yet seen in the log
	seen  map[string]uint64 // position in the log, by request id
	wrong []error
}

func newAudit(book *ledger) *audit {
	a := &audit{realm: book.realm, open: make(map[string]record, len(book.records)), seen: make(map[string]uint64, len(book.records))}
	for _, rec := range book.records {
		a.open[rec.command.GetRequestId()] = rec
	}
	if len(a.open) != len(book.records) {
		a.wrong = append(a.wrong, fmt.Errorf("realm %s: %d requests under %d ids", book.realm, len(book.records), len(a.open)))
	}
	return a
}

// see takes the next event of the log.
func (a *audit) see(ev kuji.Record) {
	if ev.ID == "" {
		return // catalogs have none
	}
	if first, twice := a.seen[ev.ID]; twice {
		a.wrong = append(a.wrong, fmt.Errorf("realm %s: request %s is in the log twice, at positions %d and %d", a.realm, ev.ID, first, ev.Position))
		return
	}
	a.seen[ev.ID] = ev.Position
	rec, ok := a.open[ev.ID]
	delete(a.open, ev.ID)
	switch {
	case !ok:
		a.wrong = append(a.wrong, fmt.Errorf("realm %s: request %s at position %d was never acknowledged", a.realm, ev.ID, ev.Position))
	case rec.position != ev.Position:
		a.wrong = append(a.wrong, fmt.Errorf("realm %s: request %s is at position %d, acknowledged at %d", a.realm, ev.ID, ev.Position, rec.position))
	}
}

// finish returns everything that was wrong.
func (a *audit) finish() []error {
	for id, rec := range a.open {
		a.wrong = append(a.wrong, fmt.Errorf("realm %s: request %s, acknowledged at position %d, is not in the log", a.realm, id, rec.position))
	}
	return a.wrong
}
