package catalog

import "slices"

// always reports whether an entry applies to every player, always with the same weight.
func (e *Entry) always() bool { return e.When.Empty() && !e.Unique && e.Luck.Empty() }

// questions returns how many things of a player decide what an entry weighs.
func (k *check) questions(e *Entry) uint64 {
	c := &e.When
	n := len(c.Holds) + len(c.Lacks) + len(c.Tracks) + len(c.Counters) + len(c.Quests) + len(e.Luck.Steps)
	if len(k.families) > 0 {
		n += len(k.kinOf(e.Luck.Item)) - 1
		for _, st := range c.Holds {
			n += len(k.kinOf(st.Item)) - 1
		}
		for _, item := range c.Lacks {
			n += len(k.kinOf(item)) - 1
		}
	}
	if e.Unique {
		n += len(e.Reward.Items)
	}
	return uint64(n)
}

// everybody reports whether an entry is there for everybody while its stock and the pools below last.
func (k *poolCheck) everybody(e *Entry) bool { return k.always(e) && len(e.Reward.Codes) == 0 }

// condition checks a condition of a pool, an entry or a quest.
func (k *check) condition(c *Condition) {
	for i, id := range c.Lacks {
		if k.contradicts(c.Holds, id) {
			k.faultUnder([]step{{key: "when"}, {key: "lacks"}, {index: i, inList: true}},
				"expected an item that holds does not ask for, found %s", quote(id))
		}
	}
}

// luck checks the weights that an entry has by a count.
func (k *poolCheck) luck(l *Luck) {
	switch {
	case k.p.Mode != ModeWeighted:
		k.fault("expected none outside of mode weighted")
		return
	case len(slices.DeleteFunc([]string{l.Item, l.Track, l.Counter}, func(s string) bool { return s == "" })) != 1:
		k.fault("expected one of item, pity and counter")
	case l.Empty():
		k.fault("expected weights, found none")
	}
	k.enter("weights")
	defer k.leave()
	for i := range k.each(len(l.Steps)) {
		s := l.Steps[i]
		if l.Track != "" {
			k.between("from", s.From, 1, MaxTrackDraws)
		}
		if i > 0 && s.From <= l.Steps[i-1].From {
			k.faultAt("from", "expected more than %d, as in the step before, found %d", l.Steps[i-1].From, s.From)
		}
	}
}

// collect checks a pool in which every entry has a condition or gives a code. A player can draw from it
// as long as entries are left for that player, so each draw must use up only its own entry.
func (k *poolCheck) collect() {
	p := k.p
	giver := map[string]int{}
	for i := range k.each(len(p.Entries)) {
		e := &p.Entries[i]
		if p.heaviest(e) > 0 && (!e.Unique || !e.When.Empty() || !e.Luck.Empty() || len(e.Reward.Draws) > 0 || len(e.Reward.Codes) > 0 || p.Rolls.Max != 1 || k.budgets.costly(p, e)) {
			k.fault("expected another entry without a condition or a code, or only unique ones that give nothing but items, of no budget: for some players, or without codes, the pool would be empty")
			return
		}
		for _, q := range e.Reward.Items {
			if j, taken := giver[q.Item]; taken {
				k.faultAt("reward", "expected items that no other unique entry gives, as every entry of the pool is unique, found %s in entries[%d] too",
					quote(q.Item), j)
			}
			giver[q.Item] = i
		}
	}
}
