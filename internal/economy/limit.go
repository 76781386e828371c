package economy

import "github.com/kuji-dev/kuji/catalog"

// Counters of player limits live among the player's slots, under
// limitSlot|limit number:
//
//	forever   the draws so far
//	day, week the number of the day or week <<countBits | the draws in it
//	window    one slot for each request still in the window, oldest first:
//	          its time stamp <<drawBits | its draws
const (
	countBits     = 40
	maxLimitCount = 1<<countBits - 1
	drawBits      = 16 // a request draws at most MaxDrawCount times
)

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
			used += v & (1<<drawBits - 1)
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
	first := search(p.holdings(player), key)
	for h := p.holdings(player); first < len(h) && h[first].key == key && int64(h[first].value()>>drawBits) <= s.now-l.window; h = p.holdings(player) {
		p.remove(player, first)
	}
	p.insert(player, search(p.holdings(player), key+1), newSlot(key, uint64(s.now)<<drawBits|n))
}
