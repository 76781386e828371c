package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func poolCommand(a *app) *cobra.Command {
	return read(a, &cobra.Command{Use: "pool POOL", Short: "Show a pool with its current stock and odds"}, &kujiv1.GetPoolRequest{}, getPool,
		func(w io.Writer, resp *kujiv1.GetPoolResponse) { printPool(w, resp.GetPool()) })
}

// getPool reads a pool with all entries. Each page shows when it was read, the head when the first was.
func getPool(c *api, ctx context.Context, req *kujiv1.GetPoolRequest) (*kujiv1.GetPoolResponse, error) {
	var all *kujiv1.GetPoolResponse
	for {
		req.EntryOffset, req.EntryLimit = uint32(len(all.GetPool().GetEntries())), 10_000
		page, err := c.GetPool(ctx, req)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = page
		} else {
			all.Pool.Entries = append(all.Pool.Entries, page.GetPool().GetEntries()...)
		}
		if len(page.GetPool().GetEntries()) == 0 || len(all.GetPool().GetEntries()) >= int(all.GetPool().GetEntryCount()) {
			return all, nil
		}
	}
}

func printPool(w io.Writer, p *kujiv1.Pool) {
	fprintf(w, "pool\t%s\n", p.GetId())
	fprintf(w, "mode\t%s\n", contract.Word(p.GetMode()))
	for i, price := range p.GetPrices() {
		fprintf(w, "%s\t%s\n", choose(i == 0, "price", "or"), itemsText(price.GetItems()))
	}
	printRules(w, p)
	if p.GetTotalWeight() == 0 {
		fprintf(w, "state\tsold out\n")
	}
	heads := "\nENTRY\tODDS\tLEFT\tDRAWN\tREWARD"
	if slices.ContainsFunc(p.GetEntries(), func(e *kujiv1.Entry) bool { return entryText(e, p.GetWeightScale()) != "" }) {
		heads += "\tRULES"
	}
	rows(w, heads, p.GetEntries(), func(e *kujiv1.Entry) []any {
		row := []any{e.GetId(), percent(e.GetWeight(), p.GetTotalWeight()), leftOfStock(e), e.GetDrawn(), rewardText(e.GetReward())}
		if rules := entryText(e, p.GetWeightScale()); rules != "" {
			row = append(row, rules)
		}
		return row
	})
}

func leftOfStock(e *kujiv1.Entry) string {
	return choose(e.Left == nil, "unlimited", whole(e.GetLeft()))
}

// printRules writes a line for each rule of a pool.
func printRules(w io.Writer, p *kujiv1.Pool) {
	row := func(name, text string) {
		if text != "" {
			fprintf(w, "%s\t%s\n", name, text)
		}
	}
	row("internal", when(p.GetInternal(), "drawn from only through other pools"))
	row("memoryless", when(p.GetMemoryless(), "no odds depend on the player"))
	for _, b := range p.GetBundles() {
		row(fmt.Sprintf("%d draws", b.GetDraws()), itemsText(b.GetItems()))
	}
	if p.GetFree() != nil {
		row("free", limitText(p.GetFree()))
	}
	for _, r := range p.GetRedeem() {
		row("redeem", redeemText(r))
	}
	for _, l := range p.GetLimits() {
		row("limit", limitText(l))
	}
	row("when", conditionText(p.GetWhen()))
	r := p.GetRolls()
	row("rolls", when(r.GetMax() > 1, rangeText(r.GetMin(), r.GetMax())+" entries a draw"+when(r.GetDistinct(), ", none twice")))
	for _, t := range p.GetPity() {
		row("pity", poolTrackText(t))
	}
	for _, g := range p.GetGuarantees() {
		row("guarantee", fmt.Sprintf("%d of %s in %d draws", g.GetAtLeast(), strings.Join(g.GetOf(), ", "), g.GetDraws()))
	}
	row("last", when(p.GetLast() != nil, rewardText(p.GetLast())))
	row("refill", when(p.GetRefill() > 0, fmt.Sprintf("%d times", p.GetRefill())))
	for _, b := range p.GetBudgets() {
		row("budget", budgetText(b))
	}
}

func rewardText(r *kujiv1.Reward) string {
	parts := slices.Concat(
		each(r.GetItems(), func(q *kujiv1.RewardItem) string { return q.GetItem() + "=" + rangeText(q.GetMin(), q.GetMax()) }),
		each(r.GetCodes(), func(list string) string { return "code of " + list }))
	for _, in := range r.GetDraws() {
		parts = append(parts, "pool "+in.GetPool()+when(in.GetMax() != 1, " ×"+rangeText(in.GetMin(), in.GetMax())))
	}
	return cmp.Or(strings.Join(parts, " "), "nothing")
}

func rangeText[N uint32 | uint64](low, high N) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d-%d", low, high)
}

func budgetText(b *kujiv1.Budget) string {
	text := ", and no more"
	if at := b.GetResetsUnixMs(); at != 0 {
		text = fmt.Sprintf(" this %s, full again at %s", contract.Word(b.GetPer()), timeText(at))
	}
	return fmt.Sprintf("%s: %d of %d left%s%s", b.GetItem(), b.GetLeft(), b.GetLimit(), text, when(b.GetShare() != "", ", shared as "+b.GetShare()))
}

func redeemText(r *kujiv1.RedeemTerms) string {
	return "a code of " + r.GetList() + when(r.GetTimes() > 1, fmt.Sprintf(", %d draws each", r.GetTimes())) +
		when(r.GetUses() > 1, fmt.Sprintf(", for %d players each", r.GetUses())) +
		when(r.GetUntilUnixMs() != 0, ", until "+timeText(r.GetUntilUnixMs()))
}

// conditionText returns a condition in words, "" for none.
func conditionText(c *kujiv1.Condition) string {
	parts := []string{when(len(c.GetHolds()) > 0, "holds "+itemsText(c.GetHolds())), when(len(c.GetLacks()) > 0, "lacks "+strings.Join(c.GetLacks(), " "))}
	for _, t := range c.GetPity() {
		parts = append(parts, fmt.Sprintf("pity %s at %d", t.GetTrack(), t.GetDraws()))
	}
	return joined(parts, ", ")
}

func poolTrackText(t *kujiv1.Track) string {
	text := t.GetName()
	if len(t.GetOf()) != 1 || t.GetOf()[0] != t.GetName() {
		text += " (" + strings.Join(t.GetOf(), ", ") + ")"
	}
	by := each(t.GetRisingBy(), func(n uint64) string { return decimalText(n, t.GetRisingScale()) })
	rules := joined([]string{
		when(t.GetCertain() > 0, fmt.Sprintf("certain by draw %d", t.GetCertain())),
		when(t.GetRisingFrom() > 0, fmt.Sprintf("rising from draw %d by %s points%s", t.GetRisingFrom(), strings.Join(by, ", "), when(!t.GetRisingTable(), " a draw"))),
		when(t.GetShare() != "", "counted as "+t.GetShare()),
	}, ", ")
	return text + ": " + cmp.Or(rules, "counted only")
}

// entryText returns an entry's rules in words, "" if there are none.
func entryText(e *kujiv1.Entry, scale uint64) string {
	parts := []string{when(e.GetGroup() != "", "group "+e.GetGroup()), when(e.GetUnique(), "unique"), when(e.GetWhen() != nil, "when "+conditionText(e.GetWhen()))}
	if l := e.GetLuck(); l != nil {
		steps := each(l.GetSteps(), func(s *kujiv1.LuckStep) string {
			return fmt.Sprintf("%s from %d", decimalText(s.GetWeight(), scale), s.GetFrom())
		})
		by := choose(l.GetTrack() != "", "pity "+l.GetTrack(), "item "+l.GetItem())
		parts = append(parts, "luck by "+by+": weight "+strings.Join(steps, ", "))
	}
	if m := e.GetMoments(); m != nil {
		parts = append(parts, fmt.Sprintf("%d of %d moments have come, %d wait", m.GetCome(), m.GetCount(), m.GetWaiting())+
			when(m.GetNextUnixMs() != 0, ", the next at "+timeText(m.GetNextUnixMs())))
	}
	return joined(append(parts, when(e.GetOverBudget(), "over budget")), "; ")
}

// decimalText writes n/scale exactly; scale is a power of ten.
func decimalText(n, scale uint64) string {
	scale = max(scale, 1)
	whole := strconv.FormatUint(n/scale, 10)
	if n%scale == 0 {
		return whole
	}
	digits := len(strconv.FormatUint(scale, 10)) - 1
	return whole + "." + strings.TrimRight(fmt.Sprintf("%0*d", digits, n%scale), "0")
}

// percent writes part/total for a person; it is never computed with.
func percent(part, total uint64) string {
	if total == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(part)/float64(total), 'f', 4, 64) + "%"
}
