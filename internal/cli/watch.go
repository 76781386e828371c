package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// poolChangeJSON is what has changed in a pool since the line before it.
type poolChangeJSON struct {
	Time           int64             `json:"time_unix_ms"` // when this was seen, by the clock of this machine
	Pool           string            `json:"id"`
	Position       uint64            `json:"position"`
	CatalogVersion uint64            `json:"catalog_version"`
	SoldOut        bool              `json:"sold_out,omitempty"`
	Entries        []entryChangeJSON `json:"entries"` // only those that changed
}

type entryChangeJSON struct {
	Entry   string  `json:"id"`
	Drawn   uint64  `json:"drawn"`             // so far
	Since   uint64  `json:"since"`             // of these, since the line before
	Left    *uint64 `json:"left,omitempty"`    // absent: unlimited
	Removed bool    `json:"removed,omitempty"` // the catalog no longer has it
}

func watchCommand(a *app) *cobra.Command {
	var every time.Duration
	pool := &cobra.Command{Use: "pool POOL", Short: "Show a pool, and then its draws, until Ctrl-C"}
	conn := a.connection(pool.Flags())
	pool.Flags().DurationVar(&every, "every", time.Second, "how long to wait before asking again, at least 100ms")
	pool.RunE = func(cmd *cobra.Command, args []string) error {
		if err := atLeast("every", every, 100*time.Millisecond); err != nil {
			return err
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		return unlessStopped(cmd.Context(), watchPool(cmd.Context(), a, c, args[0], every))
	}
	return group("watch", "Show changes as they come", pool)
}

// unlessStopped returns nil if a signal has ended what fails: that is the way to end it.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func watchPool(ctx context.Context, a *app, c *api, id string, every time.Duration) error {
	req := &kujiv1.GetPoolRequest{Realm: c.realm, Pool: id}
	resp, err := getPool(c, ctx, req)
	if err != nil {
		return err
	}
	before := resp.GetPool()
	if err := a.print(resp, func(w io.Writer) { printPool(w, before) }); err != nil {
		return err
	}
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
		head, err := c.GetPool(ctx, &kujiv1.GetPoolRequest{Realm: c.realm, Pool: id, EntryLimit: 1})
		if err != nil {
			return err
		}
		if !differs(before, head.GetPool()) {
			continue
		}
		if resp, err = getPool(c, ctx, req); err != nil {
			return err
		}
		change := since(before, resp.GetPool())
		change.Time = time.Now().UnixMilli()
		if err := a.print(change, func(w io.Writer) { change.print(w, before) }); err != nil {
			return err
		}
		before = resp.GetPool()
	}
}

// differs tells whether a later look at a pool can show other entries.
func differs(p, head *kujiv1.Pool) bool {
	return head.GetPosition() != p.GetPosition() || head.GetCatalogVersion() != p.GetCatalogVersion() ||
		(head.GetTotalWeight() == 0) != (p.GetTotalWeight() == 0)
}

// since returns what has changed from one look at a pool to the next.
func since(before, p *kujiv1.Pool) poolChangeJSON {
	out := poolChangeJSON{Pool: p.GetId(), Position: p.GetPosition(), CatalogVersion: p.GetCatalogVersion(), SoldOut: p.GetTotalWeight() == 0, Entries: []entryChangeJSON{}}
	was := make(map[string]*kujiv1.Entry, len(before.GetEntries()))
	for _, e := range before.GetEntries() {
		was[e.GetId()] = e
	}
	for _, e := range p.GetEntries() {
		old := was[e.GetId()]
		delete(was, e.GetId())
		if old == nil {
			old = &kujiv1.Entry{Drawn: e.GetDrawn()} // it is new here: nobody saw how often it had been drawn
		} else if old.GetDrawn() == e.GetDrawn() && (old.Left == nil) == (e.Left == nil) && old.GetLeft() == e.GetLeft() {
			continue
		}
		out.Entries = append(out.Entries, entryChangeJSON{Entry: e.GetId(), Drawn: e.GetDrawn(), Since: e.GetDrawn() - min(e.GetDrawn(), old.GetDrawn()), Left: e.Left})
	}
	for _, e := range before.GetEntries() {
		if was[e.GetId()] != nil {
			out.Entries = append(out.Entries, entryChangeJSON{Entry: e.GetId(), Drawn: e.GetDrawn(), Left: e.Left, Removed: true})
		}
	}
	return out
}

func (c *poolChangeJSON) print(w io.Writer, before *kujiv1.Pool) {
	at := timeText(c.Time)
	if c.CatalogVersion != before.GetCatalogVersion() {
		fprintf(w, "%s  catalog version %d is in force\n", at, c.CatalogVersion)
	}
	for _, e := range c.Entries {
		if e.Removed {
			fprintf(w, "%s  %s  removed\n", at, e.Entry)
			continue
		}
		fprintf(w, "%s  %s  drawn %d (+%d), left %s\n", at, e.Entry, e.Drawn, e.Since, leftOfStock(&kujiv1.Entry{Left: e.Left}))
	}
	switch soldOut := before.GetTotalWeight() == 0; {
	case c.SoldOut && !soldOut:
		fprintf(w, "%s  sold out\n", at)
	case soldOut && !c.SoldOut:
		fprintf(w, "%s  in stock again\n", at)
	}
}
