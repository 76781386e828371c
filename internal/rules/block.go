package rules

// blockKind is a Block: the player can do nothing any more, or with Count 1, again what others can.
type blockKind struct{ noted }

func (blockKind) alone() string { return "an atomic group cannot block a player" }
func (blockKind) barred() bool  { return false }

func (blockKind) form(c *Command) *CommandError {
	if c.Note == nil || c.Note.Reason == "" {
		return malformed("reason", "empty; want a reason of 1 to %d bytes", MaxReason)
	}
	return nil
}

// ask writes 1 if the player is no longer blocked, else 0.
func (blockKind) ask(r *effects, c *Command, _ Status) { r.w.Uint(uint64(c.Count)) }
func (blockKind) asked(a *asked, c *Command)           { c.Count = int(a.Uint("whether it ends", 1)) }

func (blockKind) check(r *checks, c *Command) failure {
	if _, ok := r.state.Player(c.Player); !ok {
		return failure{UnknownPlayer, 0}
	}
	return failure{}
}

func (blockKind) write(d *drawing, c *Command) {
	r := naming{d}
	player := c.who(&r.Sight)
	is := r.state.Blocked(player)
	k := r.notes.newKey(recordBlock).short(player)
	switch {
	case c.Count == 0:
		r.w.Put(k, []byte(c.Note.Reason))
		if !is {
			r.identity(player, identityBlocked)
		}
	case is:
		r.w.Drop(k)
		r.identity(player, identityNone)
	}
}
