package look

import (
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// MaxHolds is the most holds that are shown at a time, and maxSize the most parts and items in them.
const (
	MaxHolds = 1000
	maxSize  = 20_000
)

// Hold returns a hold by its request id. ok is false if there is none.
func Hold(s rules.State, id string) (v view.Hold, ok bool) {
	h, ok := rules.HoldAt(s, id)
	if !ok {
		return v, false
	}
	return HoldView(s, &h, s.Back()), true
}

// HoldsOf returns the open holds in which something of a player is held.
func HoldsOf(s rules.State, player string) (all []view.Hold) {
	if num, ok := s.Player(player); ok {
		for h := range rules.HoldsOf(s, num) {
			all = append(all, HoldView(s, &h, s.Back()))
		}
	}
	return all
}

// Holds returns some open holds, by deadline and then by request id, that come after one: at least one, if there is one. Until is its deadline, Unix
// milliseconds.
func Holds(s rules.State, until int64, id string) (all []view.Hold) {
	size := 0
	for h := range rules.OpenHolds(s, uint64(max(until+s.Back(), 0)), id) {
		if len(all) == MaxHolds || size >= maxSize {
			break
		}
		v := HoldView(s, &h, s.Back())
		all, size = append(all, v), size+v.Size()
	}
	return all
}

// names are the ids of what has numbers.
type names interface {
	PlayerID(num uint32) string
	ItemID(num uint32) string
	PoolID(num uint32) string
}

// HoldView returns a hold for readers. back is how far its times are ahead of stamps.
func HoldView(s names, h *rules.HoldNow, back int64) view.Hold {
	v := view.Hold{ID: h.ID, State: h.State, Refund: h.Refund, Asked: int64(h.Asked) - back, Until: int64(h.Until) - back, By: h.By}
	if h.Until == 0 {
		v.Until, v.Ended = 0, int64(h.Ended)-back
	}
	for i := range h.Parts {
		p := &h.Parts[i]
		part := view.HoldPart{Kind: p.Kind.String(), Player: s.PlayerID(p.Player), Draws: p.Draws, Takes: heldItems(s, p.Takes), Gives: heldItems(s, p.Gives)}
		if p.Kind == rules.KindTransfer && len(p.Takes) > 0 {
			part.To = s.PlayerID(p.To)
		}
		if p.Draws > 0 {
			part.Pool = s.PoolID(p.Pool)
		}
		for _, l := range p.Codes {
			part.Codes += int(l.Quantity)
		}
		v.Parts = append(v.Parts, part)
	}
	return v
}

func heldItems(s names, all []rules.Stack) (out []view.Held) {
	for _, st := range all {
		out = append(out, view.Held{Item: s.ItemID(st.Item), Quantity: st.Quantity})
	}
	return out
}
