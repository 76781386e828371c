package chat

import (
	"sync"
	"time"
)

// cooldowns remembers when triggers were started last, and what was decided about recent messages: a message that
// comes again must not be stopped by its own cooldown, nor by one of a message that came between.
type cooldowns struct {
	mu      sync.Mutex
	players memory[playerTrigger, time.Time]
	all     []time.Time // by trigger; zero: never
	decided memory[decision, time.Time]
}

type playerTrigger struct {
	player  string
	trigger int
}

// decision is about a trigger and a message. It is remembered with when the trigger is ready again; zero: it was started.
type decision struct {
	message messageKey
	trigger int
}

func newCooldowns(triggers, most int) *cooldowns {
	return &cooldowns{
		players: newMemory[playerTrigger, time.Time](most),
		decided: newMemory[decision, time.Time](most),
		all:     make([]time.Time, triggers),
	}
}

// start notes that a message of a player starts a trigger, and returns zero. Or it returns when the player can do so.
func (c *cooldowns) start(trigger int, of Cooldown, player string, message messageKey, at time.Time) (ready time.Time) {
	if of == (Cooldown{}) {
		return time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key, asked := playerTrigger{player, trigger}, decision{message, trigger}
	if ready, ok := c.decided.get(asked); ok {
		return ready
	}
	own, _ := c.players.get(key)
	ready = later(wait(own, at, of.Player), wait(c.all[trigger], at, of.All))
	if ready.IsZero() {
		if of.Player > 0 {
			c.players.put(key, later(own, at))
		}
		c.all[trigger] = later(c.all[trigger], at)
	}
	c.decided.put(asked, ready)
	return ready
}

// wait returns when something can be started again that was started last at a time, or zero: now. Messages do not
// come in order: one that is older by more than the cooldown was not stopped then, and is not now.
func wait(last, at time.Time, cooldown time.Duration) time.Time {
	if cooldown == 0 || last.IsZero() || at.Sub(last).Abs() >= cooldown {
		return time.Time{}
	}
	return last.Add(cooldown)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
