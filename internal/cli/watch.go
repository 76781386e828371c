package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// poolChangeJSON is what has changed in a pool since the line before it.
type poolChangeJSON struct {
	Time           string            `json:"time"` // when this was seen, by the clock of this machine
	Pool           string            `json:"pool"`
	Position       uint64            `json:"position"`
	CatalogVersion uint64            `json:"catalog_version"`
	SoldOut        bool              `json:"sold_out,omitempty"`
	Entries        []entryChangeJSON `json:"entries"` // only those that changed
}

type entryChangeJSON struct {
	Entry   string  `json:"entry"`
	Drawn   uint64  `json:"drawn"`   // so far
	Since   uint64  `json:"since"`   // of these, since the line before
	Left    *uint64 `json:"left"`    // null: unlimited
	Removed bool    `json:"removed"` // the catalog no longer has it
}

func (a *app) watchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "watch",
		Short:   "Show changes as they come",
		GroupID: "client",
		Args:    cobra.NoArgs,
		RunE:    needsSubcommand,
	}
	var every time.Duration
	pool := &cobra.Command{
		Use:   "pool POOL",
		Short: "Show a pool, and then its draws, until Ctrl-C",
		Long: `Watch shows a pool, and then a line for each entry whose stock has changed. Ctrl-C
ends it with exit code 0. It asks the server again and again. All draws of an entry
between two answers make one line. A pool that did not change costs little.

With --json, the first line is the pool, as "kuji pool" shows it. Each other line is
an object with the entries that have changed.`,
		Example: "  kuji watch pool splash",
		Args:    exactArgs("POOL"),
	}
	conn := a.connection(pool.Flags())
	pool.Flags().DurationVar(&every, "every", time.Second, "how long to wait before asking again, at least 100ms")
	pool.RunE = func(cmd *cobra.Command, args []string) error {
		if every < 100*time.Millisecond {
			return usageError{fmt.Errorf("--every %v: expected at least 100ms", every)}
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		err = a.watchPool(cmd.Context(), c, args[0], every)
		if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
			return nil // Ctrl-C is how it ends
		}
		return err
	}
	cmd.AddCommand(pool)
	return cmd
}

func (a *app) watchPool(ctx context.Context, c *client, id string, every time.Duration) error {
	p, err := getPool(ctx, c, id)
	if err != nil {
		return err
	}
	before := newPoolJSON(p)
	if err := a.print(before, func(w io.Writer) { printPool(w, before) }); err != nil {
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
		head, err := call(ctx, c, "", c.rewards.GetPool, &kujiv1.GetPoolRequest{Realm: c.realm, Pool: id, EntryLimit: 1})
		if err != nil {
			return err
		}
		if !before.differs(head.GetPool()) {
			continue
		}
		if p, err = getPool(ctx, c, id); err != nil {
			return err
		}
		after := newPoolJSON(p)
		change := after.since(&before)
		change.Time = timeText(time.Now().UnixMilli())
		if err := a.print(change, func(w io.Writer) { change.print(w, &before) }); err != nil {
			return err
		}
		before = after
	}
}

// differs tells whether a later look at a pool can show other entries.
func (p *poolJSON) differs(head *kujiv1.Pool) bool {
	return head.GetPosition() != p.Position || head.GetCatalogVersion() != p.CatalogVersion ||
		(head.GetTotalWeight() == 0) != (p.TotalWeight == 0)
}

// since returns what has changed since an earlier look.
func (p *poolJSON) since(before *poolJSON) poolChangeJSON {
	out := poolChangeJSON{Pool: p.Pool, Position: p.Position, CatalogVersion: p.CatalogVersion, SoldOut: p.TotalWeight == 0, Entries: []entryChangeJSON{}}
	was := make(map[string]*entryJSON, len(before.Entries))
	for i := range before.Entries {
		was[before.Entries[i].Entry] = &before.Entries[i]
	}
	for _, e := range p.Entries {
		old := was[e.Entry]
		delete(was, e.Entry)
		if old == nil {
			old = &entryJSON{Drawn: e.Drawn} // it is new here: nobody saw how often it had been drawn
		} else if old.Drawn == e.Drawn && sameLeft(old.Left, e.Left) {
			continue
		}
		out.Entries = append(out.Entries, entryChangeJSON{Entry: e.Entry, Drawn: e.Drawn, Since: e.Drawn - min(e.Drawn, old.Drawn), Left: e.Left})
	}
	for _, e := range before.Entries {
		if was[e.Entry] != nil {
			out.Entries = append(out.Entries, entryChangeJSON{Entry: e.Entry, Drawn: e.Drawn, Left: e.Left, Removed: true})
		}
	}
	return out
}

func sameLeft(a, b *uint64) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

func (c *poolChangeJSON) print(w io.Writer, before *poolJSON) {
	if c.CatalogVersion != before.CatalogVersion {
		fprintf(w, "%s  catalog version %d is in force\n", c.Time, c.CatalogVersion)
	}
	for _, e := range c.Entries {
		left := "unlimited"
		if e.Left != nil {
			left = fmt.Sprint(*e.Left)
		}
		switch {
		case e.Removed:
			fprintf(w, "%s  %s  removed\n", c.Time, e.Entry)
		default:
			fprintf(w, "%s  %s  drawn %d (+%d), left %s\n", c.Time, e.Entry, e.Drawn, e.Since, left)
		}
	}
	switch soldOut := before.TotalWeight == 0; {
	case c.SoldOut && !soldOut:
		fprintf(w, "%s  sold out\n", c.Time)
	case soldOut && !c.SoldOut:
		fprintf(w, "%s  in stock again\n", c.Time)
	}
}
