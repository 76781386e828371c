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
//	d  time, 255, id   a hold ends, or is forgotten, then
//	s  number          what follows for the entrants of a round is done in steps
//	r  number          a round: see round
//	o  name, 0, number a round that is open
//	e  number, place   an entrant of a round, by the order of joining: see entrant
//	p  player, number  a round in which a player has something held, or might win
//	h  request id      a hold: see hold
//	q  player, id      a hold in which something of a player is held
//	c  …               what holds keep from others: see kept
//	t  name, 0, per    what the calendar does about a round: see turn
//	v  hash            16 bytes of the SHA-256 of a request id that was reversed: the position of that request
//	u  hash            16 bytes of the SHA-256 of the request id of a purchase that was carried out
//	a  player, player  the second is another name of the first: 1 if it is a player who was merged
//	l  sum             a link code
//	k  player          the sum of the link code that a player has
//	g  hash            guesses at link codes of a name: 16 bytes of its SHA-256
//	b  player          why a player is blocked
//	f  player          the numbers of the names that are to be erased, after a Forget
//	m  number          a catalog that waits: see Proposal
//	n  number, place   a piece of its bytes
//	x                  the numbers of proposals: see proposed
//	w  player, player  the first was another name of the second, not long ago
const (
	recordDue     = 'd'
	recordStep    = 's'
	recordRound   = 'r'
	recordOpen    = 'o'
	recordEntrant = 'e'
	recordPlays   = 'p'
	recordTurn    = 't'

	recordHold = 'h'
	recordHeld = 'q'

	recordPurchase = 'u'
	recordReversed = 'v'

	recordAlias   = 'a'
	recordLink    = 'l'
	recordLinkOf  = 'k'
	recordGuesses = 'g'
	recordBlock   = 'b'
	recordFormer  = 'w'
	recordErase   = 'f'

	recordProposal = 'm'
	recordPiece    = 'n'
	recordProposed = 'x'

	dueHold = 255 // follows the time of a deadline; numbers of rounds begin with less
)

// key is the key of a record in the making.
type key []byte

func (k key) num(n uint64) key     { return binary.BigEndian.AppendUint64(k, n) }
func (k key) short(n uint32) key   { return binary.BigEndian.AppendUint32(k, n) }
func (k key) text(s string) key    { return append(append(k, s...), 0) }
func (k key) bytes(s string) key   { return append(k, s...) }
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
	state State
	keys  [store.MaxKey]byte // scratch memory
	value []byte
	first firstDue
}

// firstDue is what is due first of what records say, when there were seen changes of them.
type firstDue struct {
	seen   uint64
	some   bool   // there is a deadline
	at     uint64 // the deadline, steady time
	of     dueOf
	step   bool // something follows for the entrants of a round
	stepOf uint64
}

// dueOf is what has a deadline: a round, or a hold.
type dueOf struct {
	round uint64
	hold  string
}

// dueOf returns what the key of a deadline is about.
func (k key) dueOf() dueOf {
	if k[9] == dueHold {
		return dueOf{hold: string(k[10:])}
	}
	return dueOf{round: k.last()}
}

// look finds out what is due first. It looks again only after records have changed.
func (s *noting) look() *firstDue {
	f := &s.first
	n := s.state.RecordChanges()
	if n == f.seen && n > 0 {
		return f
	}
	*f = firstDue{seen: n}
	from := key{recordDue}
	for k := range s.state.Records(from, from.after()) {
		f.some, f.at, f.of = true, key(k).number(1), key(k).dueOf()
		break
	}
	from = key{recordStep}
	for k := range s.state.Records(from, from.after()) {
		f.step, f.stepOf = true, key(k).last()
		break
	}
	return f
}

// any reports whether there may be records.
func (s *noting) any() bool { return s.state.RecordChanges() > 0 }

// due returns what has the first deadline, if that is over at a steady time.
func (s *noting) due(steady uint64) (of dueOf, ok bool) {
	f := s.look()
	return f.of, f.some && f.at <= steady
}

// maxHoldsDue is the most bytes of records of holds that an event settles, but for the first.
const maxHoldsDue = 64 << 10

// holdsDue returns the holds whose deadlines are the first, and over at a steady time: as many as an event settles.
func (s *noting) holdsDue(steady uint64, most int) (ids []string) {
	from, size := key{recordDue}, 0
	for k := range s.state.Records(from, from.after()) {
		of := key(k).dueOf()
		if of.hold == "" || key(k).number(1) > steady || len(ids) == most {
			break
		}
		value, _ := s.state.Record(append(key{recordHold}, of.hold...))
		if size += len(value); size > maxHoldsDue && len(ids) > 0 {
			break
		}
		ids = append(ids, of.hold)
	}
	return ids
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
