package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type poolJSON struct {
	Pool           string      `json:"pool"`
	Name           string      `json:"name,omitempty"`
	Mode           string      `json:"mode"` // "weighted" or "raffle"
	Price          []stackJSON `json:"price"`
	MaxCount       uint32      `json:"max_count"`
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
	Reward string  `json:"reward"`         // "item=1 item=2-5", "pool NAME" or "nothing"
}

func (a *app) poolCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pool POOL",
		Short:   "Show a pool with its current stock and odds",
		Example: "  kuji pool splash",
		Args:    exactArgs("POOL"),
	}
	conn := a.clientCommand(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := conn.dial()
		if err != nil {
			return err
		}
		p, err := getPool(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		out := newPoolJSON(p)
		return a.print(out, func(w io.Writer) { printPool(w, out) })
	}
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
		Price: newStacksJSON(p.GetPrice()), MaxCount: p.GetMaxCount(),
		TotalWeight: p.GetTotalWeight(), CatalogVersion: p.GetCatalogVersion(), Position: p.GetPosition(),
		Entries: make([]entryJSON, 0, len(p.GetEntries())),
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
		})
	}
	return out
}

func rewardText(r *kujiv1.Reward) string {
	if r.GetPool() != "" {
		return "pool " + r.GetPool()
	}
	if len(r.GetItems()) == 0 {
		return "nothing"
	}
	parts := make([]string, len(r.GetItems()))
	for i, q := range r.GetItems() {
		parts[i] = fmt.Sprintf("%s=%d", q.GetItem(), q.GetMin())
		if q.GetMax() != q.GetMin() {
			parts[i] += fmt.Sprintf("-%d", q.GetMax())
		}
	}
	return strings.Join(parts, " ")
}

func printPool(w io.Writer, p poolJSON) {
	fprintf(w, "pool\t%s\n", p.Pool)
	fprintf(w, "mode\t%s\n", p.Mode)
	if len(p.Price) > 0 {
		fprintf(w, "price\t%s\n", itemsText(p.Price))
	}
	if p.TotalWeight == 0 {
		fprintf(w, "state\tsold out\n")
	}
	fprintf(w, "\nENTRY\tODDS\tLEFT\tDRAWN\tREWARD\n")
	for _, e := range p.Entries {
		left := "unlimited"
		if e.Left != nil {
			left = strconv.FormatUint(*e.Left, 10)
		}
		fprintf(w, "%s\t%s\t%s\t%d\t%s\n", e.Entry, percent(e.Weight, p.TotalWeight), left, e.Drawn, e.Reward)
	}
}

// percent writes part/total for a person; it is never computed with.
func percent(part, total uint64) string {
	if total == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(part)/float64(total), 'f', 4, 64) + "%"
}
