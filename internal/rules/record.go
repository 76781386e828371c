package rules

import (
	"encoding/binary"
	"slices"

	"github.com/kuji-dev/kuji/internal/store"
)

// Records are what the rules keep that is no number: see docs/internals/decisions/0014. The first byte of a
// key says what it is. Numbers in keys have a fixed width, so that the order of keys is theirs:
//
//	d  time, number    a round must be settled, or forgotten, at a steady time (milliseconds). A number with bit 62
//	                   is one of what lapses: see lapsing
//	s  number          what follows for the entrants of a round is done in steps
//	r  number          a round: see round
//	o  name, 0, number a round that is open
//	e  number, place   an entrant of a round, by the order of joining: see entrant
//	j  number, player  which entrant a player is
//	p  player, number  a round in which a player has something held, or might win
//	u  hash            16 bytes of the SHA-256 of the request id of a purchase that was carried out
//	a  player, player  the second is another name of the first: 1 if it is a player who was merged
//	l  sum             a link code
//	k  player          the sum of the link code that a player has
//	g  hash            guesses at link codes of a name: 16 bytes of its SHA-256
//	b  player          why a player is blocked
//	f  player          the numbers of the names that are to be erased, after a Forget
//	w  player, player  the first was another name of the second, not long ago
const (
	recordDue     = 'd'
	recordStep    = 's'
	recordRound   = 'r'
	recordOpen    = 'o'
	recordEntrant = 'e'
	recordJoined  = 'j'
	recordPlays   = 'p'

	recordPurchase = 'u'

	recordAlias   = 'a'
	recordLink    = 'l'
	recordLinkOf  = 'k'
	recordGuesses = 'g'
	recordBlock   = 'b'
	recordFormer  = 'w'
	recordErase   = 'f'
)

// key is the key of a record in the making.
type key []byte

func (k key) num(n uint64) key     { return binary.BigEndian.AppendUint64(k, n) }
func (k key) short(n uint32) key   { return binary.BigEndian.AppendUint32(k, n) }
func (k key) text(s string) key    { return append(append(k, s...), 0) }
func (k key) and(what byte) key    { return append(k, what) }
func (k key) number(at int) uint64 { return binary.BigEndian.Uint64(k[at:]) }

// last returns the number that a key ends with.
func (k key) last() uint64 { return k.number(len(k) - 8) }

// after returns the first key after all that begin with k.
func (k key) after() key {
	next := slices.Clone(k)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			return next[:i+1]
		}
	}
	return nil
}

// newKey begins the key of a record, in memory that the next one of the same kind uses again.
func (s *noting) newKey(what byte) key {
	return key(s.keys[:0]).and(what)
}

// noting reads records, and makes their keys.
type noting struct {
	state   State
	keys    [store.MaxKey]byte // scratch memory
	value   []byte
	dueAt   uint64 // the first deadline of records, when there were dueSeen changes
	dueOf   uint64 // whose it is
	dueSeen uint64
	dueIs   bool
}

// firstDue returns the first deadline of records.
func (s *noting) firstDue() (at, number uint64, ok bool) {
	from := key{recordDue}
	for k := range s.state.Records(from, from.after()) {
		return key(k).number(1), key(k).last(), true
	}
	return 0, 0, false
}

// any reports whether there may be records.
func (s *noting) any() bool { return s.state.RecordChanges() > 0 }

// due returns the round whose deadline comes first, if it is over at a steady time. It looks again only after records
// have changed.
func (s *noting) due(steady uint64) (number uint64, ok bool) {
	if n := s.state.RecordChanges(); n != s.dueSeen || n == 0 {
		s.dueSeen = n
		s.dueAt, s.dueOf, s.dueIs = s.firstDue()
	}
	return s.dueOf, s.dueIs && s.dueAt <= steady
}

// firstStep returns the first round with entrants for whom something follows.
func (s *noting) firstStep() (number uint64, ok bool) {
	from := key{recordStep}
	for k := range s.state.Records(from, from.after()) {
		return key(k).last(), true
	}
	return 0, false
}

// next returns what is due next for a round: that whose deadline is over, or a step.
func (s *noting) next(steady uint64) (number uint64, step, ok bool) {
	if number, ok = s.due(steady); ok {
		return number, false, true
	}
	number, ok = s.firstStep()
	return number, ok, ok
}

// numbers writes and reads the numbers in the value of a record.
type numbers struct{ b []byte }

func (n *numbers) add(all ...uint64) {
	for _, v := range all {
		n.b = binary.AppendUvarint(n.b, v)
	}
}

// of adds a number, and returns all so far.
func (n *numbers) of(v uint64) []byte {
	n.add(v)
	return n.b
}

func (n *numbers) stacks(all []Stack) {
	n.add(uint64(len(all)))
	for _, st := range all {
		n.add(uint64(st.Item), st.Quantity)
	}
}

func (n *numbers) next() uint64 {
	v, size := binary.Uvarint(n.b)
	n.b = n.b[size:]
	return v
}

func (n *numbers) nextStacks(into []Stack) []Stack {
	for range n.next() {
		into = append(into, Stack{uint32(n.next()), n.next()})
	}
	return into
}
