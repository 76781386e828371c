package history

import (
	"context"
	"maps"
	"slices"

	"github.com/kuji-dev/kuji"
)

// A history with an age loses its oldest events as new ones come, in the same transaction, a bounded number
// at a time. They say which players and pools they are about, and so which rows of other tables go. Holdings
// and later balances stay.

// removeAtOnce is how many old events go in one transaction, or twice as many as come, if that is more.
const removeAtOnce = 1 << 12

// outdated is events that are to go: all before a place.
type outdated struct {
	before                int64 // seq of the oldest that is kept
	keptTime              int64
	players, pools, items numbers
}

type numbers map[int64]struct{}

func (o *outdated) keptFrom() uint64 {
	p := placeAt(o.before)
	if p.Index > 0 {
		p.Position++
	}
	return p.Position
}

// outdated finds what is older than the age once some events are written; nil: nothing.
func (w *writer) outdated(ctx context.Context, some []event) (*outdated, error) {
	age, first := w.h.o.Age, &some[0].rec
	kept := some[len(some)-1].rec.Time - age.Milliseconds()
	if age == 0 || w.oldest >= kept {
		return nil, nil
	}
	most := max(removeAtOnce, 2*len(some))
	o := &outdated{placeOf(first).seq(), first.Time, numbers{}, numbers{}, numbers{}}
	n, found := 0, false
	if err := w.query(ctx, "SELECT seq, time FROM events ORDER BY seq LIMIT $1", func(r row) error {
		if !found && (r.int(1) >= kept || n == most) {
			o.before, o.keptTime, found = r.int(0), r.int(1), true
		}
		if !found {
			n++
		}
		return nil
	}, int64(most+1)); err != nil {
		return nil, err
	}
	w.oldest = o.keptTime
	if n == 0 {
		return nil, nil
	}
	return o, o.look(ctx, w)
}

// look finds the players, pools and items that the events are about.
func (o *outdated) look(ctx context.Context, w *writer) error {
	var players, pools []string
	if err := w.query(ctx, "SELECT seq, player, pool, detail FROM events WHERE seq < $1", func(r row) error {
		for i, found := range []numbers{1: o.players, o.pools} {
			if i > 0 && r[i] != nil {
				found[r.int(i)] = struct{}{}
			}
		}
		var rec kuji.Record
		if err := fill(&rec, r.text(3)); err != nil && w.proven(r.int(0)) {
			return damaged("position %d: its detail: %v", placeAt(r.int(0)).Position, err)
		}
		about(&rec, func(id string) { players = append(players, id) }, func(id string) { pools = append(pools, id) })
		return nil
	}, o.before); err != nil {
		return err
	}
	for _, one := range []struct {
		names *names
		ids   []string
		found numbers
	}{{w.players, players, o.players}, {w.pools, pools, o.pools}} {
		if err := one.names.look(ctx, w.tables, one.ids); err != nil {
			return err
		}
		for _, id := range one.ids {
			one.found[one.names.known[id]] = struct{}{}
		}
	}
	for player := range o.players {
		if err := w.query(ctx, "SELECT DISTINCT item FROM changes WHERE player = $1 AND seq < $2", func(r row) error {
			o.items[r.int(0)] = struct{}{}
			return nil
		}, player, o.before); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the events, and what the other tables have of them. nil: none.
func (o *outdated) remove(ctx context.Context, t tables) error {
	if o == nil {
		return nil
	}
	for sql, found := range map[string]numbers{
		"DELETE FROM changes WHERE player = $1 AND seq < $2":   o.players,
		"DELETE FROM pool_events WHERE pool = $1 AND seq < $2": o.pools,
		"DELETE FROM item_events WHERE item = $1 AND seq < $2": o.items,
	} {
		for _, n := range slices.Sorted(maps.Keys(found)) {
			if _, err := t.exec(ctx, sql, n, o.before); err != nil {
				return err
			}
		}
	}
	_, err := t.exec(ctx, "DELETE FROM events WHERE seq < $1", o.before)
	return err
}
