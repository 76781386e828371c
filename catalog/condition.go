package catalog

import "slices"

// always reports whether an entry applies to every player, always with the same weight.
func (e *Entry) always() bool { return e.When.Empty() && !e.Unique && e.Luck.Empty() }

// questions returns how many things of a player decide what an entry weighs.
func (e *Entry) questions() uint64 {
	n := len(e.When.Holds) + len(e.When.Lacks) + len(e.When.Tracks) + len(e.Luck.Steps)
	if e.Unique {
		n += len(e.Reward.Items)
	}
	return uint64(n)
}

// everybody reports whether an entry of p is there for everybody as long as its own stock and the
// pools it leads to last.
func (k *poolCheck) everybody(e *Entry) bool { return k.always(e) && len(e.Reward.Codes) == 0 }

// condition checks a condition of a pool or of one of its entries.
func (k *poolCheck) condition(c *Condition) {
	k.at("holds", func() { k.stacks(c.Holds) })
	k.at("lacks", func() {
		k.distinct("items", c.Lacks, func(id string) {
			k.item(id)
			if slices.ContainsFunc(c.Holds, func(s Stack) bool { return s.Item == id }) {
				k.fault("expected an item that holds does not ask for, found %s", quote(id))
			}
		})
	})
	k.at("pity", func() {
		if len(c.Tracks) > MaxTracks {
			k.fault("expected at most %d tracks, found %d", MaxTracks, len(c.Tracks))
			return
		}
		for i, t := range c.Tracks {
			k.enter(t.Track)
			k.trackOf(t.Track)
			if slices.ContainsFunc(c.Tracks[:i], func(o Reached) bool { return o.Track == t.Track }) {
				k.faultOnKey("duplicate id")
			}
			if t.Draws < 1 || t.Draws > MaxTrackDraws {
				k.fault("expected a whole number from 1 to %d, found %d", MaxTrackDraws, t.Draws)
			}
			k.leave()
		}
	})
}

// trackOf checks a reference to a track of p.
func (k *poolCheck) trackOf(name string) {
	p := k.p
	names := map[string]bool{}
	for i := range p.Tracks {
		names[p.Tracks[i].Name] = true
	}
	if !names[name] {
		k.faultOnKey("the pool has no track %s%s", quote(name), k.suggest(name, keys(names)))
	}
}

// luck checks the weights that an entry has by a count.
func (k *poolCheck) luck(l *Luck) {
	most := uint64(MaxQuantity)
	switch {
	case l.Empty() && l.Item == "" && l.Track == "":
		return
	case k.p.Mode != ModeWeighted:
		k.fault("expected none outside of mode weighted")
		return
	case (l.Item == "") == (l.Track == ""):
		k.fault("expected one of item and pity")
	case l.Item != "":
		k.at("item", func() { k.item(l.Item) })
	default:
		most = MaxTrackDraws
		k.at("pity", func() { k.trackOf(l.Track) })
	}
	k.enter("weights")
	defer k.leave()
	if l.Empty() || len(l.Steps) > MaxLuckSteps {
		k.fault("expected 1 to %d steps, found %d", MaxLuckSteps, len(l.Steps))
		return
	}
	for i, s := range l.Steps {
		k.enterIndex(i)
		k.between("from", s.From, 1, most)
		if i > 0 && s.From <= l.Steps[i-1].From {
			k.at("from", func() { k.fault("expected more than %d, as in the step before, found %d", l.Steps[i-1].From, s.From) })
		}
		k.leave()
	}
}

// distinct checks a list of names, each by itself with one.
func (k *report) distinct(what string, names []string, one func(string)) {
	if len(names) > MaxConditions {
		k.fault("expected at most %d %s, found %d", MaxConditions, what, len(names))
		return
	}
	for i, name := range names {
		k.enterIndex(i)
		one(name)
		if slices.Contains(names[:i], name) {
			k.fault("duplicate id")
		}
		k.leave()
	}
}

// collect checks a pool in which every entry has a condition or gives a code. It can be drawn from
// as often as entries are left for the player, so each draw must use up only its own.
func (k *poolCheck) collect() {
	p := k.p
	giver := map[string]int{}
	for i := range p.Entries {
		e := &p.Entries[i]
		k.enterIndex(i)
		if p.heaviest(e) > 0 && (!e.Unique || !e.When.Empty() || !e.Luck.Empty() || len(e.Reward.Draws) > 0 || len(e.Reward.Codes) > 0 || p.Rolls.Max != 1 || k.budgets.costly(p, e)) {
			k.fault("expected another entry without a condition or a code, or only unique ones that give nothing but items, of no budget: for some players, or without codes, the pool would be empty")
			k.leave()
			return
		}
		for _, q := range e.Reward.Items {
			if j, taken := giver[q.Item]; taken {
				k.at("reward", func() {
					k.fault("expected items that no other unique entry gives, as every entry of the pool is unique, found %s in entries[%d] too", quote(q.Item), j)
				})
			}
			giver[q.Item] = i
		}
		k.leave()
	}
}
