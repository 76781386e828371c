package history

import (
	"context"
	"slices"
	"time"

	"github.com/kuji-dev/kuji"
)

// A history of some age loses old events as new ones come, in the same transaction:
//
//	of the oldest events, those that are older than the age go, a bounded number at a time
//	whom and what they were about is read from them: the rows in the other tables go by those
//
// Holdings stay, and so do the balances after the events that are kept.

// removeAtOnce is how many events go in one transaction at least, if so many are old. Twice as many as
// come go, if that is more.
const removeAtOnce = 1 << 12

// outdated is events that are to go: all before a place.
type outdated struct {
	before   int64 // seq of the oldest that is kept
	keptTime int64
	players  []int64
	pools    []int64
	items    []int64
}

func (o *outdated) keptFrom() uint64 {
	p := placeOf(o.before)
	if p.Index > 0 {
		p.Position++
	}
	return p.Position
}

// outdated finds what is older than the age once some events are written; nil: nothing.
func (w *writer) outdated(ctx context.Context, age time.Duration, some []event) (*outdated, error) {
	if age == 0 {
		return nil, nil
	}
	kept := some[len(some)-1].rec.Time - age.Milliseconds()
	if w.oldest >= kept {
		return nil, nil
	}
	most := max(removeAtOnce, 2*len(some))
	first := Place{some[0].rec.Position, some[0].rec.Index}
	o := &outdated{before: first.seq(), keptTime: some[0].rec.Time}
	n, found := 0, false
	if err := w.c.lookup(ctx, "SELECT seq, time FROM events ORDER BY seq LIMIT $1", func(r row) error {
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

// look finds whom and what the events are about.
func (o *outdated) look(ctx context.Context, w *writer) error {
	players, pools, items := map[int64]struct{}{}, map[int64]struct{}{}, map[int64]struct{}{}
	var named, poolsNamed set
	name := func(n *names, numbers map[int64]struct{}, rest *set) func(string) {
		return func(id string) {
			if num, ok := n.ids[id]; ok {
				numbers[num] = struct{}{}
			} else {
				rest.add(n, id)
			}
		}
	}
	player, pool := name(&w.players, players, &named), name(&w.pools, pools, &poolsNamed)
	if err := w.c.lookup(ctx, "SELECT seq, player, pool, detail FROM events WHERE seq < $1", func(r row) error {
		if !r.null(1) {
			players[r.int(1)] = struct{}{}
		}
		if !r.null(2) {
			pools[r.int(2)] = struct{}{}
		}
		var rec kuji.Record
		if err := fill(&rec, r.text(3)); err != nil && placeOf(r.int(0)).Position >= w.at.unproven() {
			return damaged("position %d: its detail: %v", placeOf(r.int(0)).Position, err)
		}
		about(&rec, player, pool)
		return nil
	}, o.before); err != nil {
		return err
	}
	for _, one := range []struct {
		names   *names
		rest    set
		numbers map[int64]struct{}
	}{{&w.players, named, players}, {&w.pools, poolsNamed, pools}} {
		if err := one.names.look(ctx, w.c, one.rest); err != nil {
			return err
		}
		for id := range one.rest {
			one.numbers[one.names.ids[id]] = struct{}{}
		}
	}
	for player := range players {
		if err := w.c.lookup(ctx, "SELECT DISTINCT item FROM changes WHERE player = $1 AND seq < $2", func(r row) error {
			items[r.int(0)] = struct{}{}
			return nil
		}, player, o.before); err != nil {
			return err
		}
	}
	o.players, o.pools, o.items = sorted(players), sorted(pools), sorted(items)
	return nil
}

func sorted(numbers map[int64]struct{}) []int64 {
	all := make([]int64, 0, len(numbers))
	for n := range numbers {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// remove removes the events, and what the other tables have of them. nil: none.
func (o *outdated) remove(exec execute) error {
	if o == nil {
		return nil
	}
	for sql, numbers := range map[string][]int64{
		"DELETE FROM changes WHERE player = $1 AND seq < $2":   o.players,
		"DELETE FROM pool_events WHERE pool = $1 AND seq < $2": o.pools,
		"DELETE FROM item_events WHERE item = $1 AND seq < $2": o.items,
	} {
		for _, n := range numbers {
			if err := exec(sql, n, o.before); err != nil {
				return err
			}
		}
	}
	return exec("DELETE FROM events WHERE seq < $1", o.before)
}
