package demo

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// record is one acknowledged command.
type record struct {
	command  *kujiv1.Command
	digest   [16]byte // of the answer, receipt included
	position uint64
	logged   uint64 // where the log has it; 0: not seen there
}

// book is what a realm's clients were told. It uses nothing that the server computes: the two are compared.
type book struct {
	realm  string
	start  []*kujiv1.Stack // what a player has at first
	prices []string        // of a draw, as texts: one of them must have been paid

	mu          sync.Mutex
	records     map[string]*record // by request id
	balances    counts[int64]      // by player and item: from start, grants, prices and outcomes acknowledged
	drawn       counts[uint64]     // by pool and entry
	outcomes    uint64             // single draws acknowledged
	refusals    uint64             // acknowledged with a status other than ok
	beforeCrash uint64             // the highest position acknowledged before the crash
	latencies   []float64          // of requests that were sent once, in milliseconds
	// What became of requests whose first answer was lost.
	interrupted, happened int
	longest               time.Duration // the longest that one of those took
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

// newBook returns an empty book of a realm, whose players draw from a pool.
func newBook(realm string, c *catalog.Catalog, pool string) *book {
	b := &book{
		realm: realm, start: stacksOf(c.Start), prices: []string{costText(nil)}, streaks: newStreaks(c.Pools),
		records: map[string]*record{}, balances: counts[int64]{}, drawn: counts[uint64]{},
	}
	for _, p := range c.Pools {
		if p.ID == pool && len(p.Price) > 0 {
			b.prices = nil
			for _, price := range p.Price {
				b.prices = append(b.prices, costText(stacksOf(price)))
			}
		}
	}
	return b
}

func stacksOf(stacks []catalog.Stack) []*kujiv1.Stack {
	out := make([]*kujiv1.Stack, len(stacks))
	for i, s := range stacks {
		out[i] = &kujiv1.Stack{Item: s.Item, Quantity: s.Quantity}
	}
	return out
}

func costText(paid []*kujiv1.Stack) string {
	text := ""
	for _, s := range paid {
		text += fmt.Sprintf(" %s=%d", s.GetItem(), s.GetQuantity())
	}
	return cmp.Or(strings.TrimSpace(text), "nothing")
}

// took notes how long an answer took, and whether its request was sent again. The caller holds mu.
func (b *book) took(d time.Duration, again bool, result *kujiv1.Result) {
	if !again {
		b.latencies = append(b.latencies, float64(d)/float64(time.Millisecond))
		return
	}
	b.interrupted++
	b.longest = max(b.longest, d)
	if result.GetReplayed() { // the server had carried it out before
		b.happened++
	}
}

// acknowledge books the answer to one command. The caller holds mu.
func (b *book) acknowledge(cmd *kujiv1.Command, result *kujiv1.Result) error {
	digest, err := digestOf(result)
	if err != nil {
		return err
	}
	b.records[cmd.GetRequestId()] = &record{command: cmd, digest: digest, position: result.GetReceipt().GetPosition()}
	if result.GetStatus() != kujiv1.Status_STATUS_OK {
		b.refusals++
		return nil // a refused command changes nothing: it makes no player known
	}
	switch {
	case cmd.GetGrant() != nil:
		b.add(cmd.GetGrant().GetPlayer(), cmd.GetGrant().GetItems(), 1)
	case cmd.GetDraw() != nil:
		player, pool := cmd.GetDraw().GetPlayer(), cmd.GetDraw().GetPool()
		if paid := costText(result.GetPaid()); !slices.Contains(b.prices, paid) {
			return brokenf("request %s: a draw from %s cost %s, which is none of its prices", cmd.GetRequestId(), pool, paid)
		}
		b.add(player, result.GetPaid(), -1)
		for _, o := range result.GetOutcomes() {
			b.add(player, o.GetItems(), 1)
			b.bookDrawn(player, pool, o.GetEntry())
			for _, via := range o.GetVia() {
				pool, entry, _ := strings.Cut(via, "/")
				b.bookDrawn(player, pool, entry)
			}
			b.outcomes++
		}
	}
	return nil
}

// add books items of a player's, who has the start before the first of them.
func (b *book) add(player string, items []*kujiv1.Stack, sign int64) {
	if b.balances[player] == nil {
		b.balances.of(player)
		b.add(player, b.start, 1)
	}
	for _, s := range items {
		b.balances[player][s.GetItem()] += sign * int64(s.GetQuantity())
	}
}

// bookDrawn books that a player drew an entry.
func (b *book) bookDrawn(player, pool, entry string) {
	b.drawn.of(pool)[entry]++
	b.see(player, pool, entry)
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
func (r *record) checkAgain(again *kujiv1.Result) error {
	id := r.command.GetRequestId()
	if !again.GetReplayed() {
		return fmt.Errorf("request %s was acknowledged at position %d and then forgotten: sent again, it happened a second time", id, r.position)
	}
	digest, err := digestOf(again)
	if err == nil && digest != r.digest {
		err = fmt.Errorf("request %s was acknowledged at position %d and is answered differently now: %s at position %d",
			id, r.position, contract.Word(again.GetStatus()), again.GetReceipt().GetPosition())
	}
	return err
}

// checkPlayer compares what a player holds with what was acknowledged.
func checkPlayer(player string, want map[string]int64, got []*kujiv1.Stack) error {
	has := map[string]int64{}
	for item := range want {
		has[item] = 0
	}
	for _, s := range got {
		has[s.GetItem()] = int64(s.GetQuantity())
	}
	var wrong []string
	for item, n := range has {
		if n != want[item] {
			wrong = append(wrong, fmt.Sprintf("%s is %d, acknowledged %d", item, n, want[item]))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("player %s: %s", player, strings.Join(wrong, "; "))
	}
	return nil
}

// checkPool compares a pool with what was acknowledged, and with the catalog's stock of its limited entries.
func checkPool(pool *kujiv1.Pool, stock, acknowledged map[string]uint64) error {
	var wrong []error
	seen := map[string]bool{}
	for _, e := range pool.GetEntries() {
		seen[e.GetId()] = true
		report := func(format string, args ...any) {
			wrong = append(wrong, fmt.Errorf("%s/%s: %s", pool.GetId(), e.GetId(), fmt.Sprintf(format, args...)))
		}
		if e.GetDrawn() != acknowledged[e.GetId()] {
			report("drawn %d times, acknowledged %d times", e.GetDrawn(), acknowledged[e.GetId()])
		}
		limit, limited := stock[e.GetId()]
		switch {
		case limited && e.Left == nil:
			report("unlimited, the catalog says %d", limit)
		case !limited && e.Left != nil:
			report("%d left, the catalog says unlimited", e.GetLeft())
		case limited && (e.GetDrawn() > limit || e.GetLeft() != limit-e.GetDrawn()):
			report("%d drawn and %d left of %d", e.GetDrawn(), e.GetLeft(), limit)
		}
	}
	for entry := range stock {
		if !seen[entry] {
			wrong = append(wrong, fmt.Errorf("%s/%s: gone", pool.GetId(), entry))
		}
	}
	return errors.Join(wrong...)
}

// maxSigma bounds how many standard deviations a frequency is off. Chance passes six twice in 10⁹.
const maxSigma = 6

// oddsOf compares frequencies with weights, without limited stock, in draws that no track had changed.
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
		deviation := math.Abs(float64(o.Drawn)-p*float64(draws)) - 1 // one draw more or less is none: it matters for rare entries
		if sigma := math.Sqrt(p * (1 - p) * float64(draws)); deviation > maxSigma*sigma {
			wrong = append(wrong, fmt.Errorf("%s/%s: %.4f%% of %d draws, odds are %.4f%%: chance cannot explain that",
				pool.GetId(), o.Entry, 100*o.Seen, draws, 100*o.Wanted))
		}
	}
	return table, errors.Join(wrong...)
}

// audit compares the next event of the log with the book.
func (b *book) audit(ev kuji.Record) error {
	rec := b.records[ev.ID]
	switch {
	case ev.ID == "": // catalogs have none
		return nil
	case rec == nil:
		return fmt.Errorf("realm %s: request %s at position %d was never acknowledged", b.realm, ev.ID, ev.Position)
	case rec.logged != 0:
		return fmt.Errorf("realm %s: request %s is in the log twice, at positions %d and %d", b.realm, ev.ID, rec.logged, ev.Position)
	}
	if rec.logged = ev.Position; rec.position != ev.Position {
		return fmt.Errorf("realm %s: request %s is at position %d, acknowledged at %d", b.realm, ev.ID, ev.Position, rec.position)
	}
	return nil
}

// missing returns an error for each acknowledged command that the log does not have.
func (b *book) missing() (wrong []error) {
	for id, rec := range b.records {
		if rec.logged == 0 {
			wrong = append(wrong, fmt.Errorf("realm %s: request %s, acknowledged at position %d, is not in the log", b.realm, id, rec.position))
		}
	}
	return wrong
}
