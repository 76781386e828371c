package store

import (
	"cmp"
	"slices"
)

// tallies are the counters of the realm itself: what a budget has spent, how often a box was
// refilled. They are few, at most MaxTallies, and ascend by counter. A counter is either every
// player's own or the realm's; only the rules know which.
type tallies []CounterValue

func byCounter(v CounterValue, counter uint32) int { return cmp.Compare(v.Counter, counter) }

func (t *tallies) set(counter uint32, value uint64) error {
	i, ok := slices.BinarySearchFunc(*t, counter, byCounter)
	switch {
	case ok && value == 0:
		*t = slices.Delete(*t, i, i+1)
	case ok:
		(*t)[i].Value = value
	case value != 0 && len(*t) >= MaxTallies:
		return inconsistent("more than %d counters of the realm", MaxTallies)
	case value != 0:
		*t = slices.Insert(*t, i, CounterValue{Counter: counter, Value: value})
	}
	return nil
}

// Tally returns a counter of the realm.
func (t tallies) Tally(counter uint32) uint64 {
	if i, ok := slices.BinarySearchFunc(t, counter, byCounter); ok {
		return t[i].Value
	}
	return 0
}
