package rules

// resolved is what a command names, looked up once: see [Finder].
type resolved struct {
	in     *Tables // the catalog that it was looked up in; nil: none yet
	pool   *Pool
	quest  *Quest
	round  *Round
	event  movers
	count  *Counter
	tiers  int // of a Claim: how many it claims
	key    uint64
	pay    uint32  // number of the item to pay with
	stacks []Stack // Items
	wrong  *CommandError

	player, to           uint32 // numbers of Player and To, if they are known: see [Rules.CheckNew]
	knowsPlayer, knowsTo bool
}

// Finder looks up what commands name in a catalog. It remembers a pool: most draws in a row are from one.
type Finder struct {
	*Tables
	recent *Pool // of Tables; nil: none yet
}

// Resolve looks up what a command names in a catalog, unless that is where it was looked up last. It returns what
// the catalog does not have, or nil. Such a command is refused and leaves no event. So a typing error, or
// a draw before its catalog, uses up no request id. The command must have passed Check.
func (f *Finder) Resolve(t *Tables, c *Command) *CommandError {
	if c.in != t {
		f.resolve(t, c)
	}
	return c.wrong
}

func (f *Finder) resolve(t *Tables, c *Command) {
	if f.Tables != t {
		f.Tables, f.recent = t, nil
	}
	c.in = t
	c.wrong = c.Kind.of().resolve(f, c)
}

func (f *Finder) pool(id string) *Pool {
	if f.recent == nil || f.recent.Config.ID != id {
		pt := f.PoolByID[id]
		if pt == nil {
			return nil
		}
		f.recent = pt
	}
	return f.recent
}

// Change makes a command that was resolved another one, of the same kind.
func (c *Command) Change() { c.in, c.knowsPlayer, c.knowsTo = nil, false, false }

// Clear makes a command zero. It keeps memory for the next one.
func (c *Command) Clear() { *c = Command{resolved: resolved{stacks: c.stacks[:0]}} }

// EachText calls f with every text of a command, except those in its list of items.
func (c *Command) EachText(f func(*string)) {
	for _, s := range [...]*string{&c.ID, &c.Player, &c.To, &c.Pool, &c.Pay} {
		f(s)
	}
	if c.Goal != (Goal{}) {
		for _, s := range [...]*string{&c.Event, &c.Key, &c.Counter, &c.Quest} {
			f(s)
		}
	}
	if c.Set != nil {
		f(&c.Set.Track)
		f(&c.Set.By)
		f(&c.Set.Reason)
	}
	if c.Round != nil {
		f(&c.Round.Name)
	}
	if c.Hold != nil {
		f(&c.Hold.Of)
	}
	if c.Note != nil {
		f(&c.Note.By)
		f(&c.Note.Reason)
		f(&c.Note.Metadata)
	}
}

// meet looks up the players of a command.
func (c *Command) meet(s State) {
	if c.Player != "" {
		c.player, c.knowsPlayer = s.Player(c.Player)
	}
	if c.To != "" {
		c.to, c.knowsTo = s.Player(c.To)
	}
}

// who returns the number of the player: see [Sight.see].
func (c *Command) who(s *Sight) uint32 {
	if c.knowsPlayer {
		return c.player
	}
	return s.see(c.Player)
}

// whom returns the number of the receiver.
func (c *Command) whom(s *Sight) uint32 {
	if c.knowsTo {
		return c.to
	}
	return s.see(c.To)
}

// unknown says that a catalog has no such thing.
func (t *Tables) unknown(field, noun, id string) *CommandError {
	if t.Version == 0 {
		return malformed(field, "there is no %s %q: the realm has no catalog yet", noun, id)
	}
	return malformed(field, "there is no %s %q in catalog version %d", noun, id, t.Version)
}
