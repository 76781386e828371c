package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"
)

// Codes are texts that rewards give away, each once: coupons, gift cards, keys. They are in lists,
// which only grow: by imported codes, which are given in that order, and by uses, when players send
// them. So a copy of a list's head is the list as of that moment: captures and readers take one.
//
// A code takes its own bytes, and about 30 more: 5 with it, 11 in the index that finds it again,
// and 24 once it is given. Each use takes 24 and about 20 in an index, and its code 4.

// Bounds on codes.
const (
	maxListCodes = 1 << 24
	maxCodes     = 1 << 26 // of all lists
	// MaxCode is the longest code, in bytes.
	MaxCode = 128
	// MaxCodesBytes is the most bytes of codes in one event, with a byte for each code's length.
	MaxCodesBytes = 2 << 20
	// MaxAlike is the most codes of one list with the same SumCode: no index tells these apart.
	MaxAlike = 16
	// MaxUses is the most uses of the codes of one list.
	MaxUses = 1 << 30
)

// CodeSum stands for a code where the code itself must not be shown. It is the beginning of the
// SHA-256 of the code's normal form.
type CodeSum [16]byte

// SumCode returns the sum of a code. Codes that differ only in spaces, hyphens and the case of the
// letters a to z have the same sum.
func SumCode(code []byte) CodeSum {
	var normal [MaxCode]byte
	b := normal[:0]
	for _, c := range code {
		switch {
		case c == ' ', c == '-':
		case 'a' <= c && c <= 'z':
			b = append(b, c-'a'+'A')
		default:
			b = append(b, c)
		}
	}
	sum := sha256.Sum256(b)
	return CodeSum(sum[:])
}

func (s *CodeSum) hash() uint32 { return binary.LittleEndian.Uint32(s[:]) }

type codes struct {
	lists []*codeList // by number
	num   map[string]uint32
	codes uint64 // of all lists
}

// codeList is one list. The writer alone uses codes and index; others read left and last, or get a
// copy of codes.
type codeList struct {
	name  string
	codes Codes
	index index               // from the hash of a code to its number
	folds index               // from the hash of a code's fold to its number, if index does not find it by its fold
	used  index               // from the hash of a code and a player to the number of the use
	times []*[pieceLen]uint32 // how often each code was used; nil: pages without a use
	burnt uint64              // how many codes were used at all
	left  atomic.Uint64
	last  atomic.Uint64 // position of the last change; set before left
}

// Codes is the codes of a list as of some moment.
type Codes struct {
	text  [][]byte       // each code is its length (1 byte), then the bytes; only the last piece has room
	used  uint32         // bytes of the last piece
	at    pieces[uint32] // by number: where the code is: the piece << textBits | the offset in it
	given pieces[Handed] // by number
	uses  pieces[Handed] // in the order of the log
}

// Handed says who got or used a code, and when.
type Handed struct {
	Position     uint64
	Time         int64 // Unix milliseconds
	Player, Code uint32
}

// hash mixes code and player. Clients choose neither number.
func (h *Handed) hash() uint32 {
	x := (uint64(h.Player)<<32 | uint64(h.Code)) * 0x9e3779b97f4a7c15
	return uint32((x ^ x>>32) * 0xd6e8feb86659fd93 >> 32)
}

const (
	textBits  = 20 // a piece of text has at most 1 MiB, and a list at most 4096 of them
	textMost  = 1 << textBits
	textFirst = 1 << 10 // there are many short lists
	pieceLen  = 512
)

// pieces is a list that only grows. Its elements do not move, so a copy of its head can be read
// concurrently with the writer.
type pieces[T any] struct {
	list []*[pieceLen]T
	n    uint32
}

func (p *pieces[T]) get(i uint32) *T { return &p.list[i/pieceLen][i%pieceLen] }

// last returns the last element, or an empty one.
func (p *pieces[T]) last() (v T) {
	if p.n > 0 {
		v = *p.get(p.n - 1)
	}
	return v
}

func (p *pieces[T]) push(v T) {
	if p.n%pieceLen == 0 {
		p.list = append(p.list, new([pieceLen]T))
	}
	*p.get(p.n) = v
	p.n++
}

// Count returns how many codes the list has, given or not.
func (c *Codes) Count() uint64 { return uint64(c.at.n) }

// Given returns how many of them were given. They are the first ones.
func (c *Codes) Given() uint64 { return uint64(c.given.n) }

// Code returns a code of the list. It shares the list's memory, which never changes.
func (c *Codes) Code(n uint64) []byte {
	at := *c.at.get(uint32(n))
	text := c.text[at>>textBits][at%textMost:]
	return text[1 : 1+int(text[0])]
}

// GivenTo returns to whom a code was given, and when.
func (c *Codes) GivenTo(n uint64) Handed { return *c.given.get(uint32(n)) }

// Uses returns how often codes of the list were used.
func (c *Codes) Uses() uint64 { return uint64(c.uses.n) }

// Use returns one of these uses.
func (c *Codes) Use(n uint64) Handed { return *c.uses.get(uint32(n)) }

func (c *Codes) extent() CodesExtent { return CodesExtent{c.Count(), c.Given(), c.Uses()} }

func (c *Codes) add(code []byte) {
	size := uint32(1 + len(code))
	if n := len(c.text); n == 0 || c.used+size > uint32(len(c.text[n-1])) {
		room := textFirst
		for room < textMost && room < n*textFirst*8 {
			room *= 2
		}
		c.text, c.used = append(c.text, make([]byte, room)), 0
	}
	piece := uint32(len(c.text) - 1)
	c.at.push(piece<<textBits | c.used)
	text := c.text[piece][c.used:]
	text[0] = byte(len(code))
	copy(text[1:], code)
	c.used += size
}

func (l *codes) init() { l.num = map[string]uint32{} }

func (l *codes) name(name string) error {
	if _, ok := l.num[name]; ok {
		return inconsistent("code list %q is not new", name)
	}
	if len(l.lists) >= MaxCodeLists {
		return inconsistent("more than %d code lists", MaxCodeLists)
	}
	l.num[name] = uint32(len(l.lists))
	l.lists = append(l.lists, &codeList{name: name})
	return nil
}

// addAlone is add for an index that the writer alone reads, which may be empty.
func (x *index) addAlone(hash, number uint32) {
	if x.own == nil {
		x.alone = true
		x.init()
	}
	x.add(hash, number)
}

// among returns how many of the numbers with this hash are looked for, and the lowest of them.
func (x *index) among(hash uint32, wanted func(number uint32) bool) (lowest uint32, n int) {
	if x.own == nil {
		return 0, 0
	}
	s := x.shard(hash)
	for i := first(hash); *s.at(i) != 0; i++ {
		slot := *s.at(i)
		if number := uint32(slot) - 1; uint32(slot>>32) == hash && wanted(number) {
			if n++; n == 1 || number < lowest {
				lowest = number
			}
		}
	}
	return lowest, n
}

func (l *codeList) find(code []byte, hash uint32) (number uint32, ok bool) {
	number, n := l.index.among(hash, func(m uint32) bool { return bytes.Equal(l.codes.Code(uint64(m)), code) })
	return number, n > 0
}

// alike returns how many codes have this sum, and the number of the first of them.
func (l *codeList) alike(sum *CodeSum) (first uint32, n int) {
	return l.index.among(sum.hash(), func(m uint32) bool { return SumCode(l.codes.Code(uint64(m))) == *sum })
}

// timesUsedBy returns how often a player used a code: at most once, if nothing is damaged.
func (l *codeList) timesUsedBy(code, player uint32) int {
	u := Handed{Player: player, Code: code}
	_, n := l.used.among(u.hash(), func(m uint32) bool {
		was := l.codes.uses.get(m)
		return was.Player == player && was.Code == code
	})
	return n
}

func (l *codeList) usedBy(code, player uint32) bool { return l.timesUsedBy(code, player) > 0 }

// timesUsed returns how often a code was used.
func (l *codeList) timesUsed(code uint32) uint32 {
	if page := int(code / pieceLen); page < len(l.times) && l.times[page] != nil {
		return l.times[page][code%pieceLen]
	}
	return 0
}

// use adds a use, which must be the player's first of the code.
func (l *codeList) use(u Handed) error {
	switch {
	case uint64(u.Code) >= l.codes.Count():
		return inconsistent("code list %q: number %d used, of %d", l.name, u.Code, l.codes.Count())
	case l.usedBy(u.Code, u.Player):
		return inconsistent("code list %q: number %d used twice by player number %d", l.name, u.Code, u.Player)
	case l.codes.uses.n >= MaxUses:
		return inconsistent("code list %q: more than %d uses", l.name, MaxUses)
	}
	l.used.addAlone(u.hash(), l.codes.uses.n)
	l.codes.uses.push(u)
	page := int(u.Code / pieceLen)
	for page >= len(l.times) {
		l.times = append(l.times, nil)
	}
	if l.times[page] == nil {
		l.times[page] = new([pieceLen]uint32)
	}
	times := &l.times[page][u.Code%pieceLen]
	if *times++; *times == 1 {
		l.burnt++
	}
	return nil
}

// addCode appends a code to a list. No error names a code: errors are for logs, and codes are
// secrets.
func (s *codes) addCode(l *codeList, code []byte) error {
	if s.codes >= maxCodes {
		return inconsistent("more than %d codes", maxCodes)
	}
	sum := SumCode(code)
	hash := sum.hash()
	if n, ok := l.find(code, hash); ok {
		return inconsistent("code list %q: number %d is the same code as number %d", l.name, l.codes.at.n, n)
	}
	if l.codes.at.n >= maxListCodes {
		return inconsistent("code list %q: more than %d codes", l.name, maxListCodes)
	}
	if _, n := l.alike(&sum); n >= MaxAlike {
		return inconsistent("code list %q: more than %d codes like number %d", l.name, MaxAlike, l.codes.at.n)
	}
	l.index.addAlone(hash, l.codes.at.n)
	l.addFold(code, l.codes.at.n)
	l.codes.add(code)
	s.codes++
	return nil
}

func (l *codeList) changed(pos uint64) {
	l.last.Store(pos)
	l.left.Store(l.codes.Count() - l.codes.Given())
}

func (s *codes) addCodes(l *codeList, text []byte) error {
	for r := NewReader(text); r.More(); {
		code := r.name("a code", MaxCode)
		if err := r.Err(); err != nil {
			return err
		}
		if err := s.addCode(l, code); err != nil {
			return err
		}
	}
	return nil
}

// CodeLists returns how many lists of codes there are.
func (l *codes) CodeLists() int { return len(l.lists) }

// CodeListNum returns the number of a list of codes.
func (l *codes) CodeListNum(name string) (num uint32, ok bool) {
	num, ok = l.num[name]
	return num, ok
}

// Codes returns a list of codes as it is now, and the position of its last change. The list must
// exist. What it returns may be read concurrently with the writer.
func (l *codes) Codes(num uint32) (codes Codes, last uint64) {
	list := l.lists[num]
	return list.codes, list.last.Load()
}

// Code returns a code, or "" if there is no such code.
func (l *codes) Code(list uint32, number uint64) string {
	if int(list) >= len(l.lists) || number >= l.lists[list].codes.Count() {
		return ""
	}
	return string(l.lists[list].codes.Code(number))
}

// HasCode reports whether a list, which must exist, has a code. Only an event that adds codes
// changes that.
func (l *codes) HasCode(list uint32, code string) bool {
	b := []byte(code)
	sum := SumCode(b)
	_, ok := l.lists[list].find(b, sum.hash())
	return ok
}

// CodesAlike returns how many codes of a list, which must exist, have this sum. Only an event that
// adds codes changes that.
func (l *codes) CodesAlike(list uint32, sum CodeSum) int {
	_, n := l.lists[list].alike(&sum)
	return n
}

// FindCode returns the number of the first code of a list, which must exist, with this sum: one of
// SumCode or of OtherSums.
func (l *codes) FindCode(list uint32, sum CodeSum) (number uint64, ok bool) {
	in := l.lists[list]
	first, n := in.alike(&sum)
	if n == 0 {
		first, n = in.folds.among(sum.hash(), func(m uint32) bool {
			got, _ := folded(in.codes.Code(uint64(m)))
			return got == sum
		})
	}
	return uint64(first), n > 0
}

// CodeTimes returns how often a code of a list was used.
func (l *codes) CodeTimes(list uint32, number uint64) uint64 {
	return uint64(l.lists[list].timesUsed(uint32(number)))
}

// CodeUsedBy reports whether a player used a code of a list.
func (l *codes) CodeUsedBy(list uint32, number uint64, player uint32) bool {
	return l.lists[list].usedBy(uint32(number), player)
}

// CodeGivenTo reports whether a code of a list was given to a player.
func (l *codes) CodeGivenTo(list uint32, number uint64, player uint32) bool {
	codes := &l.lists[list].codes
	return number < codes.Given() && codes.GivenTo(number).Player == player
}

// CodeUses returns how often codes of a list were used, and how many of them were at all.
func (l *codes) CodeUses(list uint32) (uses, codes uint64) {
	return l.lists[list].codes.Uses(), l.lists[list].burnt
}

// CodesGiven returns how many codes of a list were given. The next one has this number.
func (l *codes) CodesGiven(list uint32) uint64 { return l.lists[list].codes.Given() }

// RoomForCodes returns how many more codes a list can have, if it exists, or else a new list.
func (l *codes) RoomForCodes(name string) uint64 {
	room := maxCodes - l.codes
	switch num, ok := l.num[name]; {
	case ok:
		return min(room, maxListCodes-l.lists[num].codes.Count())
	case len(l.lists) >= MaxCodeLists:
		return 0
	}
	return min(room, maxListCodes)
}
