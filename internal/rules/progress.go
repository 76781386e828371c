package rules

import "github.com/kuji-dev/kuji/catalog"

// progressKind is a Progress: it reports an event of a player, which counters count.
type progressKind struct{ noted }

func (progressKind) form(c *Command) *CommandError {
	switch {
	case c.Event == "" || len(c.Event) > catalog.MaxID:
		return malformed("event", "%d bytes long; want the name of an event, 1 to %d bytes", len(c.Event), catalog.MaxID)
	case c.N < 1 || c.N > MaxQuantity:
		return malformed("n", "%d; 1 to %d are allowed", c.N, uint64(MaxQuantity))
	}
	return checkLength("key", c.Key, MaxID)
}

func (progressKind) resolve(f *Finder, c *Command) *CommandError {
	if c.event = f.Events[c.Event]; c.event == nil {
		return f.unknown("event", "counter of the event", c.Event)
	}
	c.key = 0
	for _, m := range c.event {
		if m.keys != 0 && c.key == 0 {
			c.key = keyOf(c.Key)
		}
	}
	return nil
}

// ask writes the event's name, the key, and the number.
func (progressKind) ask(r *effects, c *Command, _ Status) {
	writeText(r.w, c.Event)
	writeText(r.w, c.Key)
	r.w.Uint(c.N)
}

func (progressKind) asked(a *asked, c *Command) {
	c.Event, c.Key = a.text("the event", catalog.MaxID), a.text("the key", MaxID)
	c.N = a.Uint("the number", MaxQuantity)
}

func (progressKind) check(r *checks, c *Command) failure {
	player, f := r.come(c)
	if f.status == OK && !r.alone {
		r.report(c, player)
	}
	return f
}

func (progressKind) write(r *drawing, c *Command) {
	r.arrive(c.who(&r.Sight))
	r.report(c, r.player)
}

// report states the fact that a Progress reports.
func (s *tallying) report(c *Command, player uint32) {
	for _, m := range c.event {
		s.moveBy(m.Counter, player, c.N, c.key)
	}
}

// setCounterKind is a SetCounter: an administrator sets by hand where a counter stands.
type setCounterKind struct{ noted }

func (setCounterKind) barred() bool  { return false }
func (setCounterKind) alone() string { return "an atomic group cannot set a counter" }

func (setCounterKind) form(c *Command) *CommandError {
	switch {
	case c.Counter == "" || len(c.Counter) > catalog.MaxID:
		return malformed("counter", "%d bytes long; want the id of a counter, 1 to %d bytes", len(c.Counter), catalog.MaxID)
	case c.N > catalog.MaxCount:
		return malformed("value", "%d; at most %d are allowed", c.N, uint64(catalog.MaxCount))
	case c.Note == nil || c.Note.Reason == "":
		return malformed("reason", "empty; want a reason of 1 to %d bytes", MaxReason)
	}
	return nil
}

func (setCounterKind) resolve(f *Finder, c *Command) *CommandError {
	switch c.count = f.CounterByID[c.Counter]; {
	case c.count == nil:
		return f.unknown("counter", "counter", c.Counter)
	case c.count.realm != (c.Player == ""):
		return malformed("player", "%q; want none for a counter of the realm, and one for a counter of players", c.Player)
	case c.N > 0 && c.count.keys != 0:
		return malformed("value", "%d; a counter of different keys can only be set to 0: nobody knows the keys", c.N)
	}
	return nil
}

// ask writes the number of the counter, and where it stands then.
func (setCounterKind) ask(r *effects, c *Command, _ Status) {
	r.w.Uint(uint64(c.count.Num))
	r.w.Uint(c.N)
}

func (setCounterKind) asked(a *asked, c *Command) {
	c.Counter = a.name("the counter", func(num uint32) string {
		id, _ := CounterOf(a.state.CounterName(num))
		return id
	})
	c.N = a.Uint("where it stands", catalog.MaxCount)
}

// check reports that a counter cannot be set: what it has counted is frozen in the standing of the period that ended.
func (setCounterKind) check(r *checks, c *Command) failure {
	if c.count.second != 0 {
		if _, _, open := c.count.present(&r.tallying); !open {
			return failure{Ended, c.count.Num}
		}
	}
	return failure{}
}

func (setCounterKind) write(r *drawing, c *Command) {
	if !c.count.realm {
		r.turn(c.who(&r.Sight))
	}
	run := r.stands(c.count, r.player)
	r.put(c.count, run, c.N)
}

// put gives a counter a value in the present period, as if it had been moved there now.
func (s *tallying) put(c *Counter, r *running, v uint64) {
	r.value, r.is[countMissed] = v, 0
	c.keep(r)
	if r.spill = true; !r.moved {
		r.moved = true
		s.moving = append(s.moving, c)
	}
}
