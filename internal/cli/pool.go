package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type poolJSON struct {
	Pool     string        `json:"pool"`
	Name     string        `json:"name,omitempty"`
	Mode     string        `json:"mode"` // "weighted", "raffle" or "each"
	Prices   [][]stackJSON `json:"prices"`
	MaxCount uint32        `json:"max_count"`
	poolRulesJSON
	Starts         string      `json:"starts,omitempty"`
	Ends           string      `json:"ends,omitempty"`
	TotalWeight    uint64      `json:"total_weight"` // 0: sold out
	CatalogVersion uint64      `json:"catalog_version"`
	Position       uint64      `json:"position"`
	Entries        []entryJSON `json:"entries"`
}

type entryJSON struct {
	Entry  string  `json:"entry"`
	Weight uint64  `json:"weight"` // the odds now are weight / total_weight
	Drawn  uint64  `json:"drawn"`
	Left   *uint64 `json:"left,omitempty"` // absent: unlimited
	Reward string  `json:"reward"`         // "item=1 item=2-5", "code of LIST", "pool NAME" or "nothing"
	entryRulesJSON
}

func (a *app) poolCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pool POOL",
		Short:   "Show a pool with its current stock and odds",
		Example: "  kuji pool splash",
		Args:    exactArgs("POOL"),
	}
	conn := a.clientCommand(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		p, err := getPool(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		out := newPoolJSON(p)
		return a.print(out, func(w io.Writer) { printPool(w, out) })
	})
	return cmd
}

// getPool reads a pool with all its entries. A pool of several pages is not
// read at one moment: each page shows when it was read, the head when the first
// was.
func getPool(ctx context.Context, c *client, id string) (*kujiv1.Pool, error) {
	var pool *kujiv1.Pool
	for {
		resp, err := call(ctx, c, "", c.rewards.GetPool, &kujiv1.GetPoolRequest{
			Realm: c.realm, Pool: id, EntryOffset: uint32(len(pool.GetEntries())), EntryLimit: 10_000,
		})
		if err != nil {
			return nil, err
		}
		page := resp.GetPool()
		if pool == nil {
			pool = page
		} else {
			pool.Entries = append(pool.Entries, page.GetEntries()...)
		}
		if len(page.GetEntries()) == 0 || len(pool.GetEntries()) >= int(pool.GetEntryCount()) {
			return pool, nil
		}
	}
}

func newPoolJSON(p *kujiv1.Pool) poolJSON {
	out := poolJSON{
		Pool: p.GetId(), Name: p.GetName(), Mode: strings.ToLower(strings.TrimPrefix(p.GetMode().String(), "POOL_MODE_")),
		MaxCount:    p.GetMaxCount(),
		TotalWeight: p.GetTotalWeight(), CatalogVersion: p.GetCatalogVersion(), Position: p.GetPosition(),
		Entries: make([]entryJSON, 0, len(p.GetEntries())), poolRulesJSON: newPoolRulesJSON(p),
	}
	for _, price := range p.GetPrices() {
		out.Prices = append(out.Prices, newStacksJSON(price.GetItems()))
	}
	if p.GetStartsUnixMs() != 0 {
		out.Starts = timeText(p.GetStartsUnixMs())
	}
	if p.GetEndsUnixMs() != 0 {
		out.Ends = timeText(p.GetEndsUnixMs())
	}
	for _, e := range p.GetEntries() {
		out.Entries = append(out.Entries, entryJSON{
			Entry: e.GetId(), Weight: e.GetWeight(), Drawn: e.GetDrawn(), Left: e.Left, Reward: rewardText(e.GetReward()),
			entryRulesJSON: newEntryRulesJSON(e, p.GetWeightScale()),
		})
	}
	return out
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
			part += " ×" + rangeText(uint64(in.GetMin()), uint64(in.GetMax()))
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}

func rangeText(low, high uint64) string {
	if low == high {
		return strconv.FormatUint(low, 10)
	}
	return fmt.Sprintf("%d-%d", low, high)
}

func printPool(w io.Writer, p poolJSON) {
	fprintf(w, "pool\t%s\n", p.Pool)
	fprintf(w, "mode\t%s\n", p.Mode)
	for i, price := range p.Prices {
		name := "price"
		if i > 0 {
			name = "or"
		}
		fprintf(w, "%s\t%s\n", name, itemsText(price))
	}
	p.print(w)
	if p.TotalWeight == 0 {
		fprintf(w, "state\tsold out\n")
	}
	rules := markup("")
	if slices.ContainsFunc(p.Entries, func(e entryJSON) bool { return e.text() != "" }) {
		rules = "\tRULES"
	}
	fprintf(w, "\nENTRY\tODDS\tLEFT\tDRAWN\tREWARD%s\n", rules)
	for _, e := range p.Entries {
		left := "unlimited"
		if e.Left != nil {
			left = strconv.FormatUint(*e.Left, 10)
		}
		fprintf(w, "%s\t%s\t%s\t%d\t%s", e.Entry, percent(e.Weight, p.TotalWeight), left, e.Drawn, e.Reward)
		if rules := e.text(); rules != "" {
			fprintf(w, "\t%s", rules)
		}
		fprintf(w, "\n")
	}
}

// percent writes part/total for a person; it is never computed with.
func percent(part, total uint64) string {
	if total == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(part)/float64(total), 'f', 4, 64) + "%"
}
