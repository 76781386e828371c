package economy

import "github.com/kuji-dev/kuji/catalog"

// Counters of player limits live among the player's slots, under
// limitSlot|limit number:
//
//	forever   the draws so far
//	day, week the number of the day or week <<countBits | the draws in it
//	window    some slots, in no order: a time stamp <<drawBits | the draws that
//	          count until that time is a window ago
//
// A window limit of at most exactDraws draws is exact: each request has a slot.
// Larger ones count in steps: the draws of one step, a stepsth of the window, share
// a slot and all count as if they were as late as the last of them. So no window of
// the declared length ever sees more draws than declared, a draw may count for up to a
// step longer, and there are never many slots.
const (
	countBits     = 40
	maxLimitCount = 1<<countBits - 1
	drawBits      = 18 // time stamps have 46 bits: see MaxTime
	maxSlotDraws  = 1<<drawBits - 1
	exactDraws    = 64
	steps         = 64
)

// MaxTime is the latest time stamp that limits can count at, in Unix milliseconds:
// in the year 4199. Whoever stamps events must stamp none later.
const MaxTime = 1<<(64-drawBits) - 1

const (
	dayMillis  = 24 * 60 * 60 * 1000
	weekMillis = 7 * dayMillis
	// mondayShift moves the Unix epoch, a Thursday, to a Monday.
	mondayShift = 3 * dayMillis
)

// period numbers the day or week of a time stamp in UTC.
func period(per catalog.Per, now int64) uint64 {
	now = max(now, 0)
	if per == catalog.PerWeek {
		return uint64((now + mondayShift) / weekMillis)
	}
	return uint64(now / dayMillis)
}

// limitUsed returns how many draws a player has used of a limit at this point
// of the command.
func (s *State) limitUsed(l *limitTable, player uint32, now int64) uint64 {
	key := limitSlot | l.num
	if v, ok := s.d.values.get(valueKey(player, key)); ok {
		return v
	}
	if player >= uint32(s.players.count()) {
		return 0
	}
	switch l.per {
	case catalog.PerForever:
		return s.players.get(player, key)
	case catalog.PerDay, catalog.PerWeek:
		v := s.players.get(player, key)
		if v>>countBits != period(l.per, now) {
			return 0
		}
		return v & maxLimitCount
	}
	var used uint64
	h := s.players.holdings(player)
	for i := search(h, key); i < len(h) && h[i].key == key; i++ {
		if v := h[i].value(); int64(v>>drawBits) > now-l.window {
			used += v & maxSlotDraws
		}
	}
	return used
}

// countLimit adds n draws to a player's counter at the event's time.
func (s *State) countLimit(l *limitTable, player uint32, n uint64) {
	key := limitSlot | l.num
	p := &s.players
	switch l.per {
	case catalog.PerForever:
		p.set(player, key, min(p.get(player, key)+n, maxLimitCount))
		return
	case catalog.PerDay, catalog.PerWeek:
		today := period(l.per, s.now)
		v := p.get(player, key)
		if v>>countBits != today {
			v = 0
		}
		p.set(player, key, today<<countBits|min(v&maxLimitCount+n, maxLimitCount))
		return
	}
	s.countWindow(l, player, n)
}

// countWindow adds n draws to a window limit's slots. It takes the place of a
// slot whose time is over, and removes one more of those.
func (s *State) countWindow(l *limitTable, player uint32, n uint64) {
	key, p := limitSlot|l.num, &s.players
	h := p.holdings(player)
	at := search(h, key)
	over, more, newest := -1, -1, -1
	for ; at < len(h) && h[at].key == key; at++ {
		switch time := h[at].value() >> drawBits; {
		case int64(time) > s.now-l.window:
			if newest < 0 || time > h[newest].value()>>drawBits {
				newest = at
			}
		case over < 0:
			over = at
		default:
			more = at
		}
	}
	switch v := uint64(s.now)<<drawBits | n; {
	case newest >= 0 && s.sameStep(l, h[newest].value(), n):
		h[newest].set(v + h[newest].value()&maxSlotDraws)
	case over >= 0:
		h[over].set(v)
		over = more
	default:
		p.insert(player, at, newSlot(key, v))
	}
	if over >= 0 {
		p.remove(player, over)
	}
}

// sameStep reports whether n draws now share the slot of others.
func (s *State) sameStep(l *limitTable, slot, n uint64) bool {
	if l.draws <= exactDraws || slot&maxSlotDraws+n > maxSlotDraws {
		return false
	}
	step := (l.window + steps - 1) / steps
	return int64(slot>>drawBits)/step == s.now/step
}
