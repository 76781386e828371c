package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Items that grow. The model takes one step after the other, where Kuji has a formula.

// grows returns how an item grows, nil if it does not.
func (r rulebook) grows(item string) *catalog.Grows {
	if r.catalog == nil {
		return nil
	}
	if it := r.item(item); it != nil && it.Grows.Every > 0 {
		return &it.Grows
	}
	return nil
}

// grow lets everything grow until now.
func (m holdings) grow() {
	for _, h := range m.players {
		for item := range h.since {
			for g := m.grows(item); g != nil && h.items[item] < g.To && h.since[item]+g.Every <= m.steady(); h.since[item] += g.Every {
				h.add(item, 0, min(g.By, g.To-h.items[item]))
			}
		}
	}
}

// grew reports whether some of an item may have grown for a player: its changes then tell more than what moved it.
func (h *holder) grew(item string) bool { return h.since[item] > 0 }

// begins makes an item begin to grow for a player.
func (m holdings) begins(h *holder, item string) {
	if m.grows(item) != nil {
		h.since[item] = m.steady()
	}
}

// growsBy makes items that grow in another way by the next catalog begin again for everybody.
func (m holdings) growsBy(was rulebook) {
	for _, it := range m.catalog.Items {
		before, now := was.grows(it.ID), m.grows(it.ID)
		if now == nil || before != nil && *before == *now {
			continue
		}
		for _, h := range m.players {
			m.begins(h, it.ID)
		}
	}
}

// spends takes some of an item from a player. Below its bound it begins to grow.
func (m holdings) spends(h *holder, item string, q uint64) units {
	before, g := h.items[item], m.grows(item)
	taken := h.lose(item, q)
	if g != nil && before >= g.To && h.items[item] < g.To {
		m.begins(h, item)
	}
	return taken
}

// sums is what players have by the changes that the log tells, by player and item.
type sums map[string]uint64

// adds adds the changes of an event, and compares their sums with what players hold. What has grown of an item
// is told with the next change of it.
func (s sums) adds(m *model, rec kuji.Record) error {
	for _, c := range rec.Changes {
		key := c.Player + " " + c.Item
		s[key] += uint64(c.Delta)
		if have := m.players[c.Player].items[c.Item]; s[key] != have {
			return fmt.Errorf("by all changes %s has %d of %s, the model says %d", c.Player, s[key], c.Item, have)
		}
	}
	return nil
}

// grown adjusts what a player holds to a view, which shows it at a later time: items that grow may have grown on.
func grown(m *model, v kuji.PlayerView, h *holder, held map[string]uint64) error {
	next := map[string]kuji.Growing{}
	for _, g := range v.Grows {
		next[g.Item] = g
	}
	back := int64(-1)
	for item := range h.since {
		g := m.grows(item)
		if g == nil {
			continue
		}
		shown := uint64(0)
		for _, it := range v.Items {
			if it.Item == item {
				shown = it.Quantity
			}
		}
		since := h.since[item]
		for held[item] < min(shown, g.To) {
			held[item] = min(held[item]+g.By, g.To)
			since += g.Every
		}
		says, ok := next[item]
		delete(next, item)
		if ok != (held[item] < g.To) {
			return fmt.Errorf("player %q has %d of %s, which grows to %d: %+v", v.ID, shown, item, g.To, v.Grows)
		}
		if !ok {
			continue
		}
		full := since
		for n := held[item]; n < g.To; n += g.By {
			full += g.Every
		}
		if back < 0 {
			back = since + g.Every - says.Next
		}
		if back < m.back || says.Next != since+g.Every-back || says.Full != full-back {
			return fmt.Errorf("%s of %q is %d since %d and grows by %+v; the view says %+v", item, v.ID, shown, since, *g, says)
		}
	}
	if len(next) > 0 {
		return fmt.Errorf("player %q has what does not grow: %v", v.ID, next)
	}
	return nil
}

// growText returns the key with which an item grows, with a comma after it, "" at times.
func growText(r *rand.Rand) string {
	if r.IntN(3) == 0 {
		return ""
	}
	every := []string{"1m", "7m", "1h", "30h"}[r.IntN(4)]
	return fmt.Sprintf("grows: {every: %s, by: %d, to: %d}, ", every, 1+r.IntN(3), 1+r.IntN(9))
}
