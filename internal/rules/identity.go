package rules

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/kuji-dev/kuji/internal/store"
)

// A name that is another name of a player is a player itself, which has nothing, and whose identity says whose name
// it is: see internal/store/identity.go. It comes to be by a Link, and is then an alias, or by a Merge. The record of
// an alias stands with the player whose name it is. A name leads to its player in one step: a Merge of the player
// takes its names along.
//
// An event names the player that a name leads to, and not the name. Its request id is compared by that: a repeat must
// name the player of that time, by any name that led to that player then, or leads there now.

// MaxAliases is the most other names that a player can have, with those of players who were merged into it.
const MaxAliases = 100

// Link codes.
const (
	LinkLasts      = 10 * 60 * 1000 // how long one can be used, milliseconds
	MaxLinkGuesses = 10             // in that time after the first, of a name

	// lapsing marks the number of a deadline at which a record goes. Its own record has the key of that.
	lapsing = 1 << 62
)

// aliasesOf returns the numbers of the other names of a player, ascending.
func aliasesOf(s State, player uint32) (all []uint32) {
	if s.RecordChanges() == 0 {
		return nil
	}
	from := key{recordAlias}.short(player)
	for k := range s.Records(from, from.after()) {
		all = append(all, binary.BigEndian.Uint32(k[5:]))
	}
	return all
}

// anyName reports whether something is true of a player, or of one of the player's other names.
func (r *checks) anyName(player uint32, is func(num uint32) bool) bool {
	return player < r.base && (is(player) || slices.ContainsFunc(aliasesOf(r.state, player), is))
}

// merged reports whether another name of a player is one who was merged into it.
func merged(s State, player, name uint32) bool {
	value, _ := s.Record(key{recordAlias}.short(player).short(name))
	return len(value) > 0
}

// sameName reports whether a name, other than that of the player of an event, names that player, or did so not long ago.
func sameName(s State, name, player string) bool {
	own, known := s.NumberOf(name)
	was, there := s.NumberOf(player)
	if !known || !there {
		return false
	}
	if s.Whose(own) == was {
		return true
	}
	_, did := s.Record(key{recordFormer}.short(own).short(was))
	return did
}

// AliasRecords returns the keys of the records of a player's other names: from one up to another.
func AliasRecords(player uint32) (from, to []byte) {
	k := key{recordAlias}.short(player)
	return k, k.after()
}

// AliasIn returns what such a record says: which name, and whether it is a player who was merged.
func AliasIn(rec store.Noted) (name uint32, merged bool) {
	return binary.BigEndian.Uint32(rec.Key[5:]), len(rec.Value) > 0
}

// BlockRecord returns the key of the record that says why a player is blocked.
func BlockRecord(player uint32) []byte { return key{recordBlock}.short(player) }

// naming writes what happens to identities.
type naming struct{ *drawing }

func (r naming) identity(player uint32, v uint64) {
	r.w.Effect(store.Player, player)
	r.player = player
	r.w.More(store.Identity, v)
}

// Identities, as the store has them.
const (
	identityNone    = 0
	identityBlocked = 1
	identityName    = 2 // + the player
)

// keepAlias writes the record of another name of a player.
func (r naming) keepAlias(player, name uint32, merged bool) {
	var value []byte
	if merged {
		value = []byte{1}
	}
	r.w.Put(r.notes.newKey(recordAlias).short(player).short(name), value)
}

// dropAlias writes that a name is no other name of a player any more. Repeats by it count for as long as request ids
// are remembered.
func (r naming) dropAlias(player, name uint32) {
	r.w.Drop(r.notes.newKey(recordAlias).short(player).short(name))
	k := key{recordFormer}.short(name).short(player)
	r.w.Put(k, nil)
	r.lapses(uint64(r.steady)+max(formerLasts, uint64(r.t.Catalog.Idempotency.Age.Milliseconds())), k)
}

// formerLasts is for how long at least it is known whose name a name was, milliseconds.
const formerLasts = 24 * 3600 * 1000

// lapseKey is the key of the deadline at which the record with a key goes.
func lapseKey(at uint64, k key) key {
	sum := sha256.Sum256(k)
	return key{recordDue}.num(at).num(lapsing | binary.BigEndian.Uint64(sum[:])>>2)
}

// lapses writes that a record goes at a moment.
func (r naming) lapses(at uint64, k key) { r.w.Put(lapseKey(at, k), k) }

// lapse writes that the record goes whose deadline comes first.
func (r naming) lapse(number uint64) {
	from := key{recordDue}
	for k, value := range r.state.Records(from, from.after()) {
		if key(k).last() != number {
			panic("rules: what lapses is not due first")
		}
		if value[0] == recordLink {
			r.dropCode(value[1:])
			return
		}
		if value[0] == recordErase {
			names, _ := r.state.Record(value)
			r.eraseNames(names)
		}
		if _, ok := r.state.Record(value); ok { // it may have been written again, and gone
			r.w.Drop(value)
		}
		r.w.Drop(k)
		return
	}
}

// unreached notes that a player ends with this event, and claims nothing.
func (r naming) unreached(player uint32) {
	r.firings = slices.DeleteFunc(r.firings, func(f firing) bool { return f.player == player })
}

// own returns the number that a name itself has, also if it is another name of somebody.
func (s *scene) own(name string) uint32 {
	if n, ok := s.state.NumberOf(name); ok {
		return n
	}
	return s.see(name)
}

// nothing reports whether a player has nothing but what comes by itself: no items, no counters but that of waiting
// and those of growth, no other names, no rounds, nothing held.
func (r *checks) nothing(player uint32) bool {
	if player >= r.base {
		return true
	}
	items, counters := r.state.Slots(player, nil, nil)
	for _, c := range counters {
		if !r.bare(c.Counter) {
			return false
		}
	}
	return len(items) == 0 && len(aliasesOf(r.state, player)) == 0 && r.notes.plays(player)+r.notes.holds(player) == 0
}

// bare reports whether a counter is one that every new player has.
func (r *checks) bare(counter uint32) bool {
	return counter == r.t.waiting || slices.ContainsFunc(r.t.Growths, func(g Growth) bool { return g.Since == counter })
}

// barred reports that a player of a command is blocked, and must not do that.
func (r *checks) barred(c *Command) failure {
	if !r.state.AnyBlocked() || !c.Kind.of().barred() {
		return failure{}
	}
	for _, name := range [...]string{c.Player, c.To} {
		if num, ok := r.state.Player(name); ok && name != "" && r.state.Blocked(num) {
			return failure{Blocked, 0}
		}
	}
	return failure{}
}
