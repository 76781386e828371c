package rules

import (
	"crypto/sha256"

	"github.com/kuji-dev/kuji/internal/store"
)

// A name is linked to a player with a code, which the player has asked for and the name's owner sends, or by a key with
// the right to. A code can be used once, and for LinkLasts. A player has one at a time. The log has only its sum.
//
// A code that does not exist counts as a guess of the name that sends it, in a record. A name that was never seen stays
// unseen then.

// linkCodeKind is a LinkCode: it lets whoever knows the code link a name to the player.
type linkCodeKind struct{ noted }

func (linkCodeKind) alone() string { return "an atomic group cannot make a link code" }

func (linkCodeKind) ask(r *effects, c *Command, _ Status) { r.w.Buf = append(r.w.Buf, c.Code[:]...) }
func (linkCodeKind) asked(a *asked, c *Command) {
	copy(c.Code[:], a.Bytes("a code's sum", uint64(len(c.Code))))
}

// linkOf is what the state has of a link code.
type linkOf struct {
	player uint32
	until  uint64
}

// link returns whose link code has a sum.
func (s *noting) link(sum []byte) (l linkOf, ok bool) {
	value, ok := s.state.Record(append(s.newKey(recordLink), sum...))
	if ok {
		n := numbers{value}
		l = linkOf{uint32(n.next()), n.next()}
	}
	return l, ok
}

func (linkCodeKind) check(r *checks, c *Command) failure {
	if l, taken := r.notes.link(c.Code[:]); taken && l.player != c.who(&r.Sight) {
		return failure{LinkCodeTaken, 0}
	}
	return failure{}
}

func (linkCodeKind) write(d *drawing, c *Command) {
	r := naming{d}
	r.turn(c.who(&r.Sight))
	r.dropCodeOf(r.player)
	until := uint64(r.steady) + LinkLasts
	r.notes.value = (&numbers{r.notes.value[:0]}).of(uint64(r.player))
	r.notes.value = (&numbers{r.notes.value}).of(until)
	k := append(key{recordLink}, c.Code[:]...)
	r.w.Put(k, r.notes.value)
	r.w.Put(r.notes.newKey(recordLinkOf).short(r.player), c.Code[:])
	r.lapses(until, k)
}

// dropCodeOf writes that the link code of a player cannot be used any more, if there is one.
func (r naming) dropCodeOf(player uint32) {
	if sum, ok := r.state.Record(r.notes.newKey(recordLinkOf).short(player)); ok {
		r.dropCode(sum)
	}
}

// dropCode is dropCodeOf for the sum of a code that exists.
func (r naming) dropCode(sum []byte) {
	l, _ := r.notes.link(sum)
	k := append(key{recordLink}, sum...)
	r.w.Drop(k)
	r.w.Drop(r.notes.newKey(recordLinkOf).short(l.player))
	r.w.Drop(lapseKey(l.until, k))
}

// linkKind is a Link: Player becomes another name of the player To, or without To, of the player who has the code.
type linkKind struct{ noted }

func (linkKind) alone() string { return "an atomic group cannot link a name" }

func (linkKind) form(c *Command) *CommandError {
	if (c.To == "") == (c.Code == CodeSum{}) {
		return malformed("to", "%q; want either the player whose name it becomes, or a link code", c.To)
	}
	return checkLength("to", c.To, MaxID)
}

// ask writes 1 and the player, or 0 and the code's sum.
func (linkKind) ask(r *effects, c *Command, status Status) {
	if c.To == "" {
		r.w.Buf = append(append(r.w.Buf, 0), c.Code[:]...)
		return
	}
	r.w.Buf = append(r.w.Buf, 1)
	r.w.Ref(r.refTo(c.To))
}

func (linkKind) asked(a *asked, c *Command) {
	if a.Byte("how it is linked") == 0 {
		copy(c.Code[:], a.Bytes("a code's sum", uint64(len(c.Code))))
		return
	}
	c.To = a.player(a.Ref("the player"))
}

// refTo refers to a player who need not be known, and does not join.
func (s *scene) refTo(name string) store.Ref {
	if num, ok := s.state.Player(name); ok {
		return store.Ref{Num: num}
	}
	return store.Ref{ID: name}
}

// guessKey is the key of the guesses of a name.
func (s *noting) guessKey(name string) key {
	sum := sha256.Sum256([]byte(name))
	return append(s.newKey(recordGuesses), sum[:16]...)
}

// guesses returns how many guesses of a name count, and until when.
func (s *noting) guesses(name string) (count, until uint64) {
	if value, ok := s.state.Record(s.guessKey(name)); ok {
		n := numbers{value}
		count, until = n.next(), n.next()
	}
	return count, until
}

// check checks the limit on guesses first: who has reached it learns nothing about any code.
func (linkKind) check(r *checks, c *Command) failure {
	name, owner, ok := r.own(c.Player), uint32(0), false
	c.player, c.knowsPlayer = name, true // the event names it, and not the player whose name it may be
	if c.To == "" {
		if n, _ := r.notes.guesses(c.Player); n >= MaxLinkGuesses {
			return failure{TooManyGuesses, 0}
		}
		l, found := r.notes.link(c.Code[:])
		if !found {
			return failure{UnknownLinkCode, 0}
		}
		owner = r.state.Whose(l.player)
	} else if owner, ok = r.state.Player(c.To); !ok {
		return failure{UnknownPlayer, 0}
	}
	switch {
	case name == owner, name < r.base && r.state.Whose(name) != name:
		return failure{AlreadyLinked, 0}
	case r.state.Blocked(owner):
		return failure{Blocked, 0}
	case !r.nothing(name):
		return failure{MergeNeeded, 0}
	case len(aliasesOf(r.state, owner)) >= MaxAliases:
		return failure{TooManyAliases, 0}
	}
	c.to, c.knowsTo = owner, true
	return failure{}
}

func (linkKind) write(d *drawing, c *Command) {
	r := naming{d}
	name, owner := c.player, c.to
	if r.isNew(name) { // it must not begin to be a player
		r.w.Join(r.fresh[r.joined])
		r.joined++
	} else {
		r.dropCodeOf(name)
		r.turn(name)
		_, counters := r.state.Slots(name, nil, nil)
		for _, n := range counters {
			r.w.Change(store.Set, n.Counter, 0)
		}
	}
	r.identity(name, identityName+uint64(owner))
	r.keepAlias(owner, name, false)
	if c.To == "" {
		r.dropCodeOf(owner)
	}
}

// writeGuess counts a code that does not exist.
func (r naming) writeGuess(c *Command) {
	count, until := r.notes.guesses(c.Player)
	k := r.notes.guessKey(c.Player)
	if count == 0 {
		until = uint64(r.steady) + LinkLasts
		r.lapses(until, k)
	}
	n := numbers{r.notes.value[:0]}
	n.add(count+1, until)
	r.notes.value = n.b
	r.w.Put(k, n.b)
}

// unlinkKind is an Unlink: Player is no other name of anybody any more. It gets no starting grants: else whoever has
// two names could get them again and again.
type unlinkKind struct{ noted }

func (unlinkKind) alone() string { return "an atomic group cannot unlink a name" }
func (unlinkKind) barred() bool  { return false }

func (unlinkKind) check(r *checks, c *Command) failure {
	name, ok := r.state.NumberOf(c.Player)
	if !ok {
		return failure{UnknownPlayer, 0}
	}
	c.player, c.knowsPlayer = name, true
	if owner := r.state.Whose(name); owner == name {
		return failure{NotLinked, 0}
	} else if merged(r.state, owner, name) {
		return failure{NotLinked, 0}
	}
	return failure{}
}

func (unlinkKind) write(d *drawing, c *Command) {
	r := naming{d}
	name := c.player
	r.dropAlias(r.state.Whose(name), name)
	r.identity(name, identityNone)
	r.begins()
}
