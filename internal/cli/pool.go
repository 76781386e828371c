package cli

import (
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

// getPool reads a pool with all its entries. A pool of several pages is not read at one moment: each page
// shows when it was read, the head when the first was.
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
		name := "price"
		if i > 0 {
			name = "or"
		}
		fprintf(w, "%s\t%s\n", name, itemsText(price.GetItems()))
	}
	printRules(w, p)
	if p.GetTotalWeight() == 0 {
		fprintf(w, "state\tsold out\n")
	}
	rules := markup("")
	if slices.ContainsFunc(p.GetEntries(), func(e *kujiv1.Entry) bool { return entryText(e, p.GetWeightScale()) != "" }) {
		rules = "\tRULES"
	}
	fprintf(w, "\nENTRY\tODDS\tLEFT\tDRAWN\tREWARD%s\n", rules)
	for _, e := range p.GetEntries() {
		left := "unlimited"
		if e.Left != nil {
			left = strconv.FormatUint(e.GetLeft(), 10)
		}
		fprintf(w, "%s\t%s\t%s\t%d\t%s", e.GetId(), percent(e.GetWeight(), p.GetTotalWeight()), left, e.GetDrawn(), rewardText(e.GetReward()))
		if rules := entryText(e, p.GetWeightScale()); rules != "" {
			fprintf(w, "\t%s", rules)
		}
		fprintf(w, "\n")
	}
}

// printRules writes a line for each rule of a pool.
func printRules(w io.Writer, p *kujiv1.Pool) {
	row := func(name, format string, args ...any) { fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	if p.GetInternal() {
		row("internal", "drawn from only through other pools")
	}
	if p.GetMemoryless() {
		row("memoryless", "no odds depend on the player")
	}
	for _, b := range p.GetBundles() {
		row(fmt.Sprintf("%d draws", b.GetDraws()), "%s", itemsText(b.GetItems()))
	}
	if p.GetFree() != nil {
		row("free", "%s", limitText(p.GetFree()))
	}
	for _, r := range p.GetRedeem() {
		row("redeem", "%s", redeemText(r))
	}
	for _, l := range p.GetLimits() {
		row("limit", "%s", limitText(l))
	}
	if p.GetWhen() != nil {
		row("when", "%s", conditionText(p.GetWhen()))
	}
	if r := p.GetRolls(); r.GetMax() > 1 {
		distinct := ""
		if r.GetDistinct() {
			distinct = ", none twice"
		}
		row("rolls", "%s entries a draw%s", rangeText(r.GetMin(), r.GetMax()), distinct)
	}
	for _, t := range p.GetPity() {
		row("pity", "%s", poolTrackText(t))
	}
	for _, g := range p.GetGuarantees() {
		row("guarantee", "%d of %s in %d draws", g.GetAtLeast(), strings.Join(g.GetOf(), ", "), g.GetDraws())
	}
	if p.GetLast() != nil {
		row("last", "%s", rewardText(p.GetLast()))
	}
	if p.GetRefill() > 0 {
		row("refill", "%d times", p.GetRefill())
	}
	for _, b := range p.GetBudgets() {
		row("budget", "%s", budgetText(b))
	}
}

func rewardText(r *kujiv1.Reward) string {
	var parts []string
	for _, q := range r.GetItems() {
		parts = append(parts, q.GetItem()+"="+rangeText(q.GetMin(), q.GetMax()))
	}
	for _, list := range r.GetCodes() {
		parts = append(parts, "code of "+list)
	}
	for _, in := range r.GetDraws() {
		part := "pool " + in.GetPool()
		if in.GetMax() != 1 {
			part += " ×" + rangeText(in.GetMin(), in.GetMax())
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}

func rangeText[N uint32 | uint64](low, high N) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d-%d", low, high)
}

func budgetText(b *kujiv1.Budget) string {
	text := fmt.Sprintf("%s: %d of %d left", b.GetItem(), b.GetLeft(), b.GetLimit())
	if at := b.GetResetsUnixMs(); at != 0 {
		text += fmt.Sprintf(" this %s, full again at %s", contract.Word(b.GetPer()), timeText(at))
	} else {
		text += ", and no more"
	}
	if b.GetShare() != "" {
		text += ", shared as " + b.GetShare()
	}
	return text
}

func redeemText(r *kujiv1.RedeemTerms) string {
	text := "a code of " + r.GetList()
	if r.GetTimes() > 1 {
		text += fmt.Sprintf(", %d draws each", r.GetTimes())
	}
	if r.GetUses() > 1 {
		text += fmt.Sprintf(", for %d players each", r.GetUses())
	}
	if at := r.GetUntilUnixMs(); at != 0 {
		text += ", until " + timeText(at)
	}
	return text
}

func conditionText(c *kujiv1.Condition) string {
	var parts []string
	if len(c.GetHolds()) > 0 {
		parts = append(parts, "holds "+itemsText(c.GetHolds()))
	}
	if len(c.GetLacks()) > 0 {
		parts = append(parts, "lacks "+strings.Join(c.GetLacks(), " "))
	}
	for _, t := range c.GetPity() {
		parts = append(parts, fmt.Sprintf("pity %s at %d", t.GetTrack(), t.GetDraws()))
	}
	return strings.Join(parts, ", ")
}

func poolTrackText(t *kujiv1.Track) string {
	text := t.GetName()
	if len(t.GetOf()) != 1 || t.GetOf()[0] != t.GetName() {
		text += " (" + strings.Join(t.GetOf(), ", ") + ")"
	}
	var parts []string
	if t.GetCertain() > 0 {
		parts = append(parts, fmt.Sprintf("certain by draw %d", t.GetCertain()))
	}
	if t.GetRisingFrom() > 0 {
		var by []string
		for _, n := range t.GetRisingBy() {
			by = append(by, decimalText(n, t.GetRisingScale()))
		}
		how := " points a draw"
		if t.GetRisingTable() {
			how = " points"
		}
		parts = append(parts, fmt.Sprintf("rising from draw %d by %s%s", t.GetRisingFrom(), strings.Join(by, ", "), how))
	}
	if t.GetShare() != "" {
		parts = append(parts, "counted as "+t.GetShare())
	}
	if len(parts) == 0 {
		parts = []string{"counted only"}
	}
	return text + ": " + strings.Join(parts, ", ")
}

// entryText returns an entry's rules in words, "" if there are none.
func entryText(e *kujiv1.Entry, scale uint64) string {
	var parts []string
	if e.GetGroup() != "" {
		parts = append(parts, "group "+e.GetGroup())
	}
	if e.GetUnique() {
		parts = append(parts, "unique")
	}
	if e.GetWhen() != nil {
		parts = append(parts, "when "+conditionText(e.GetWhen()))
	}
	if l := e.GetLuck(); l != nil {
		by := "item " + l.GetItem()
		if l.GetTrack() != "" {
			by = "pity " + l.GetTrack()
		}
		var steps []string
		for _, s := range l.GetSteps() {
			steps = append(steps, fmt.Sprintf("%s from %d", decimalText(s.GetWeight(), scale), s.GetFrom()))
		}
		parts = append(parts, "luck by "+by+": weight "+strings.Join(steps, ", "))
	}
	if m := e.GetMoments(); m != nil {
		text := fmt.Sprintf("%d of %d moments have come, %d wait", m.GetCome(), m.GetCount(), m.GetWaiting())
		if at := m.GetNextUnixMs(); at != 0 {
			text += ", the next at " + timeText(at)
		}
		parts = append(parts, text)
	}
	if e.GetOverBudget() {
		parts = append(parts, "over budget")
	}
	return strings.Join(parts, "; ")
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
