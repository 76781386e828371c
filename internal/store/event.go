package store

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kuji-dev/kuji/internal/format"
)

// An event is the fact that a command produced. docs/internals/formats/event.md shows every byte of
// it:
//
//	size     varint  how many bytes follow
//	head     1 byte  kind << 3 | names a player (4) | failed (2) | has a request id (1)
//	kind     1 byte                                       if it is above 31: then the head has 0
//	id       length (1 byte), bytes                       if it has a request id
//	player   ref                                          if it names a player
//	status   1 byte, subject: number (varint); why: length (varint), bytes   if it failed
//	asked    length (varint), bytes: the command's other arguments
//	effects  to the end, each a varint n<<3 | verb, then what the verb asks for
//
// A ref is a varint v. Even: number v/2. Odd: an id of v/2 bytes follows.
//
// An event that failed changes nothing but counts, which limit guesses: its effects are a join of
// its player, if any, and then sets of counters or records. Only the rules know what the arguments and the why mean.

// Verb is what an effect does.
type Verb uint8

// The verbs. The numbers are part of the format.
const (
	Player Verb = 0 // the next effects are about player n
	Join   Verb = 1 // a player joins, gets the next number, and is who the next effects are about: id (n bytes)
	Gain   Verb = 2 // the player gets some of item n: quantity
	Spend  Verb = 3 // the player gives up some of item n: quantity
	Pool   Verb = 4 // the next effects are about pool n
	Take   Verb = 5 // one of entry n is taken from the pool
	Set    Verb = 6 // the player's counter n gets a value; 0 removes it
	more   Verb = 7 // n is another verb, from Member on

	// The other verbs follow a 7. Their number is n.

	Member   Verb = 8 + 0  // the effects of the next member of a group follow
	Item     Verb = 8 + 1  // names the next item: its kind (1 byte), its id
	NewPool  Verb = 8 + 2  // names the next pool, which the next effects are about: its id
	Entry    Verb = 8 + 3  // names the pool's next entry: its id
	Stock    Verb = 8 + 4  // the total stock of an entry of the pool: its number, then 0 for unlimited or 1 + the stock
	Counter  Verb = 8 + 5  // names the next counters: how many, their name
	Window   Verb = 8 + 6  // the idempotency window: how many ids, for how many milliseconds
	Catalog  Verb = 8 + 7  // puts a catalog in force: length, bytes
	Draw     Verb = 8 + 8  // the effects of the command's next draw follow, where draws take several entries or none
	Tally    Verb = 8 + 9  // the realm's counter gets a value: its number, the value; 0 removes it
	Return   Verb = 8 + 10 // puts some of an entry back into the pool's stock: its number, how many
	Clock    Verb = 8 + 11 // sets the clock back: by how many milliseconds
	NewList  Verb = 8 + 12 // names the next list of codes: its name
	AddCodes Verb = 8 + 13 // adds codes to a list: its number, length, then each code: length (1 byte), bytes
	GiveCode Verb = 8 + 14 // gives the list's next code to the player: the list's number, the code's
	UseCode  Verb = 8 + 15 // the player uses a code, each at most once: the list's number, the code's
	Level    Verb = 8 + 16 // raises the realm's format level: to which
	Order    Verb = 8 + 17 // keeps players in the order of a counter: its number, by what; 0 drops the order
	Claim    Verb = 8 + 18 // the effects of a quest's reward follow: the number of the quest's counter, which tier

	Beyond Verb = 8 + 19 // the player does not get some of item n: quantity, and a byte that says what became of it

	Grow Verb = 8 + 20 // some of the player's item n have grown by themselves, so nothing that is asked gives them: quantity

	Hold    Verb = 8 + 21 // the player can no longer spend some of item n, but has it: quantity
	Release Verb = 8 + 22 // the player can spend it again: quantity
	Forfeit Verb = 8 + 23 // the player has no more what was held of item n: quantity
	Promise Verb = 8 + 24 // the player is to get some of item n, and has not yet got it: quantity
	Put     Verb = 8 + 25 // writes a record: length of the key, length of the value, both
	Drop    Verb = 8 + 26 // removes a record: length of the key, the key
	Place   Verb = 8 + 27 // the player takes a place in a round: which, with what value

	Identity Verb = 8 + 28 // the player is another name of player n: 2 + n; or is blocked: 1; or neither: 0

	Erase Verb = 8 + 29 // the player, who has nothing, has no name any more: the id

	verbEnd Verb = 8 + 30
)

// How says what became of what a player did not get.
type How uint8

const (
	Cut    How = 1 // it was not given
	Mailed How = 2 // it waits in the player's mailbox
	Gone   How = 3 // it waited there, and its time is over

	Missing How = 4 // it was to be taken back, and the player has it no more
)

// Limits of the format.
const (
	MaxID       = 64  // bytes of a request id, a player's id
	MaxName     = 64  // bytes of the id of an item, a pool or an entry
	maxCounter  = 160 // bytes of the name of counters
	MaxKind     = 255
	headKinds   = 32        // lower kinds stand in the head
	MaxQuantity = 1<<53 - 1 // so that JSON clients read every quantity exactly

	maxCatalog = 1 << 26 // bytes

	// MaxBack is the most that a realm's clock can be set back in all, in milliseconds: 1,670
	// years.
	MaxBack = 3 << 44
)

// Ref refers to a player: by number if it has one, by id otherwise.
type Ref struct {
	Num uint32
	ID  string // not empty: there is no number
}

// Effect is one change in an event.
type Effect struct {
	Verb  Verb
	N     uint32 // player, item, pool, entry, counter, list, place; Counter: how many; Item: its kind; Put, Drop: length of the key
	Value uint64 // quantity, counter, stock, window, number of a code, milliseconds; Order: By; Put: length of the value
	Bytes []byte // the id, the catalog or the codes; Beyond: a How; Put: key and value; Drop: key; aliases the event
}

// Event is a decoded event. It aliases the bytes it was decoded from.
type Event struct {
	Kind    uint8
	Named   bool // it names a player
	Status  uint8
	ID      []byte // the request id; empty: none
	Player  Ref
	Subject uint32 // number of the pool or the item that a status other than 0 is about
	Asked   []byte
	Why     []byte // more about a status other than 0, for the rules
	Effects []byte
	Raw     []byte // all of it
}

const (
	headID     = 1
	headFailed = 2
	headPlayer = 4
)

// Writer appends one event to Buf. Call Begin, then Player if needed, Fail with EndWhy if needed,
// BeginAsked, arguments, EndAsked, effects, End.
type Writer struct {
	Buf   []byte
	start int // of the event
	part  int // offset of the length of the arguments, or before of the why
}

// Begin begins an event of a kind. The id may be empty.
func (w *Writer) Begin(kind uint8, id string) {
	w.start = len(w.Buf)
	head := byte(0)
	if id != "" {
		head = headID
	}
	if kind < headKinds {
		w.Buf = append(w.Buf, 0, kind<<3|head)
	} else {
		w.Buf = append(w.Buf, 0, head, kind)
	}
	if id != "" {
		w.Buf = append(append(w.Buf, byte(len(id))), id...)
	}
}

// Again goes on with an event that End has returned: more effects can follow.
func (w *Writer) Again(event []byte) {
	w.start = len(w.Buf)
	_, head := binary.Uvarint(event)
	w.Buf = append(append(w.Buf, 0), event[head:]...)
}

// Cut removes everything since Begin.
func (w *Writer) Cut() { w.Buf = w.Buf[:w.start] }

// Player names the player that the event is about.
func (w *Writer) Player(r Ref) {
	w.Buf[w.start+1] |= headPlayer
	w.Ref(r)
}

// Fail says that the command failed, and the number of the pool or the item that the status is
// about. Everything appended to Buf until EndWhy says more.
func (w *Writer) Fail(status uint8, subject uint32) {
	w.Buf[w.start+1] |= headFailed
	w.Buf = append(w.Buf, status)
	w.Uint(uint64(subject))
	w.begin()
}

// EndWhy ends what Fail began.
func (w *Writer) EndWhy() { w.lengthAt(w.part) }

// BeginAsked begins the arguments: everything appended to Buf until EndAsked.
func (w *Writer) BeginAsked() { w.begin() }

// EndAsked ends the arguments. Effects follow.
func (w *Writer) EndAsked() { w.lengthAt(w.part) }

// begin begins a part with a length in front.
func (w *Writer) begin() {
	w.part = len(w.Buf)
	w.Buf = append(w.Buf, 0)
}

// End ends the event and returns its bytes.
func (w *Writer) End() []byte {
	w.lengthAt(w.start)
	return w.Buf[w.start:]
}

// lengthAt fills in the length of everything after the byte at a place.
func (w *Writer) lengthAt(at int) {
	n := uint64(len(w.Buf) - at - 1)
	if n < 0x80 {
		w.Buf[at] = byte(n)
		return
	}
	var head [binary.MaxVarintLen64]byte
	more := binary.PutUvarint(head[:], n) - 1
	w.Buf = append(w.Buf, head[:more]...) // room
	copy(w.Buf[at+1+more:], w.Buf[at+1:len(w.Buf)-more])
	copy(w.Buf[at:], head[:more+1])
}

// Uint appends a number.
func (w *Writer) Uint(v uint64) { w.Buf = AppendUint(w.Buf, v) }

// Ref appends a ref.
func (w *Writer) Ref(r Ref) {
	if r.ID == "" {
		w.Uint(uint64(r.Num) << 1)
		return
	}
	w.Uint(uint64(len(r.ID))<<1 | 1)
	w.Buf = append(w.Buf, r.ID...)
}

// Effect appends an effect without a value: Player, Pool or Take.
func (w *Writer) Effect(v Verb, n uint32) { w.Uint(uint64(n)<<3 | uint64(v)) }

// Change appends Gain, Spend or Set.
func (w *Writer) Change(v Verb, n uint32, value uint64) { w.Buf = AppendChange(w.Buf, v, n, value) }

// AppendChange appends Gain, Spend or Set to b.
func AppendChange(b []byte, v Verb, n uint32, value uint64) []byte {
	return AppendUint(AppendUint(b, uint64(n)<<3|uint64(v)), value)
}

// AppendUint appends a number to b.
func AppendUint(b []byte, v uint64) []byte {
	switch {
	case v < 0x80:
		return append(b, byte(v))
	case v < 1<<14:
		return append(b, byte(v)|0x80, byte(v>>7))
	}
	return binary.AppendUvarint(b, v)
}

// Join appends a Join.
func (w *Writer) Join(id string) {
	w.Effect(Join, uint32(len(id)))
	w.Buf = append(w.Buf, id...)
}

// More appends one of the verbs from Member on, and its numbers. What else it has follows: a name,
// a catalog, or codes, each as a Text.
func (w *Writer) More(v Verb, numbers ...uint64) {
	w.Effect(more, uint32(v-8))
	for _, n := range numbers {
		w.Uint(n)
	}
}

// Text appends a text of at most 255 bytes.
func (w *Writer) Text(s string) {
	w.Buf = append(append(w.Buf, byte(len(s))), s...)
}

// Name appends NewPool, Entry or NewList.
func (w *Writer) Name(v Verb, id string) {
	w.More(v)
	w.Text(id)
}

// Put appends a Put.
func (w *Writer) Put(key, value []byte) {
	w.More(Put, uint64(len(key)), uint64(len(value)))
	w.Buf = append(append(w.Buf, key...), value...)
}

// Drop appends a Drop.
func (w *Writer) Drop(key []byte) {
	w.More(Drop, uint64(len(key)))
	w.Buf = append(w.Buf, key...)
}

// FormatError says that bytes are not an event or a snapshot's block that this version knows, and
// where.
type FormatError struct {
	Offset  int // from the start of what was decoded
	Message string
	Err     error // a *format.NewerError, or nil
}

func (e *FormatError) Error() string { return fmt.Sprintf("format: byte %d: %s", e.Offset, e.Message) }

// Unwrap returns the cause, or nil.
func (e *FormatError) Unwrap() error { return e.Err }

// Reader reads what a Writer wrote. It keeps its first error, after which nothing is left to read.
type Reader struct {
	b   []byte
	off int
	err *FormatError
	// Of the effects of an event that failed: what the last one was.
	failed bool
	was    Verb
}

// NewReader returns a reader of b.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first error, a *FormatError, or nil.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// More reports whether something is left to read.
func (r *Reader) More() bool { return r.off < len(r.b) }

// Fail makes the reader fail at the current byte, unless it has failed before.
func (r *Reader) Fail(format string, args ...any) {
	r.fail(&FormatError{Offset: r.off, Message: fmt.Sprintf(format, args...)})
}

func (r *Reader) fail(err *FormatError) {
	if r.err == nil {
		r.err, r.b = err, r.b[:r.off]
	}
}

func (r *Reader) newer(what string, got, known uint64) {
	if err := format.Newer(what, got, known); err != nil {
		r.fail(&FormatError{Offset: r.off, Message: err.Error(), Err: err})
	}
}

// Byte returns the next byte.
func (r *Reader) Byte(what string) byte {
	if r.off >= len(r.b) {
		r.Fail("ends within %s", what)
		return 0
	}
	r.off++
	return r.b[r.off-1]
}

// Uint returns the next number. A number above limit is an error.
func (r *Reader) Uint(what string, limit uint64) uint64 {
	v, end := short(r.b, r.off)
	if end == 0 || v > limit {
		return r.long(what, limit)
	}
	r.off = end
	return v
}

// short returns the number at a place in b, and where it ends: 0 if it takes more than two bytes,
// as few do, or is damaged.
func short(b []byte, at int) (v uint64, end int) {
	if uint(at) < uint(len(b)) && b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	if uint(at+1) < uint(len(b)) && b[at+1]-1 < 0x7f {
		return uint64(b[at]&0x7f) | uint64(b[at+1])<<7, at + 2
	}
	return 0, 0
}

// long is Uint for any number.
func (r *Reader) long(what string, limit uint64) uint64 {
	v, n := binary.Uvarint(r.b[r.off:])
	switch {
	case n <= 0:
		r.Fail("%s: not a varint", what)
	case n > 1 && r.b[r.off+n-1] == 0:
		r.Fail("%s: a varint of %d bytes, the last of them 0", what, n)
	case v > limit:
		r.Fail("%s is %d; want at most %d", what, v, limit)
	default:
		r.off += n
		return v
	}
	return 0
}

// Bytes returns the next n bytes. They alias what is read.
func (r *Reader) Bytes(what string, n uint64) []byte {
	if n > uint64(len(r.b)-r.off) {
		r.Fail("%s: %d bytes announced, but %d left", what, n, len(r.b)-r.off)
		return nil
	}
	r.off += int(n)
	return r.b[r.off-int(n) : r.off : r.off]
}

// text returns the next n bytes, 1 to limit. They alias what is read.
func (r *Reader) text(what string, n, limit uint64) []byte {
	if n == 0 || n > limit {
		r.Fail("%s is %d bytes long; want 1 to %d", what, n, limit)
		return nil
	}
	return r.Bytes(what, n)
}

// Ref returns the next ref.
func (r *Reader) Ref(what string) Ref {
	v := r.Uint(what, 1<<33-1)
	if v&1 == 1 {
		return Ref{ID: string(r.text(what, v>>1, MaxID))}
	}
	return Ref{Num: uint32(v >> 1)}
}

// Decode decodes the event at the start of b and returns its size. It checks where effects begin
// and end, but does not read them: see [Reader.Next]. Errors are *FormatError.
func Decode(b []byte, ev *Event) (int, error) {
	r := Reader{b: b} // reads what is rare, long or wrong; nearly all numbers are short
	size, at := short(b, 0)
	if at == 0 || size == 0 || size > uint64(len(b)-at) {
		if size, at = r.sizeOfEvent(); r.err != nil {
			return 0, r.err
		}
	}
	b = b[:at+int(size)]
	r.b, r.off = b, at+1
	head := b[at]
	ev.Kind, ev.Named, ev.Raw = head>>3, head&headPlayer != 0, b
	ev.ID, ev.Player = nil, Ref{}
	if ev.Kind == 0 {
		if ev.Kind = r.Byte("the kind"); ev.Kind < headKinds {
			r.Fail("kind %d has a byte of its own", ev.Kind)
		}
	}
	if head&headID != 0 {
		ev.ID = r.text("the request id", uint64(r.Byte("the request id")), MaxID)
	}
	if ev.Named {
		if v, end := short(b, r.off); end > 0 && v&1 == 0 && r.err == nil {
			ev.Player.Num, r.off = uint32(v>>1), end
		} else {
			ev.Player = r.Ref("the player")
		}
	}
	ev.Status, ev.Subject, ev.Why = 0, 0, nil
	if head&headFailed != 0 {
		if ev.Status = r.Byte("the status"); ev.Status == 0 && r.err == nil {
			r.Fail("failed, with status 0")
		}
		ev.Subject = uint32(r.Uint("the subject", math.MaxUint32))
		ev.Why = r.Bytes("why it failed", r.Uint("why it failed", math.MaxInt32))
	}
	if n, end := short(b, r.off); end > 0 && n <= uint64(len(b)-end) && r.err == nil {
		ev.Asked, r.off = b[end:end+int(n):end+int(n)], end+int(n)
	} else {
		ev.Asked = r.Bytes("what is asked", r.Uint("what is asked", math.MaxInt32))
	}
	if r.err != nil {
		return 0, r.err
	}
	ev.Effects = b[r.off:]
	return len(b), nil
}

// sizeOfEvent returns the size of an event that has a head, and where that is.
func (r *Reader) sizeOfEvent() (size uint64, head int) {
	size = r.Uint("the size of an event", math.MaxInt32)
	head = r.off
	r.b = r.b[:head+len(r.Bytes("an event", size))]
	r.off = head
	r.Byte("the head of an event")
	return size, head
}

// Changes returns a reader of the event's effects. Call Next on it.
func (ev *Event) Changes() (r Reader) {
	r.changes(ev)
	return r
}

func (r *Reader) changes(ev *Event) {
	r.b, r.off, r.failed, r.was = ev.Raw, len(ev.Raw)-len(ev.Effects), ev.Status != 0, Player
}

// Next reads the next effect and reports whether there was one. At the end, Err says whether there
// was an error.
func (r *Reader) Next(e *Effect) bool {
	b, at := r.b, r.off
	if at >= len(b) {
		return false
	}
	v, end := short(b, at)
	if end == 0 {
		v = r.long("an effect", 1<<35-1)
		end = r.off
	}
	verb := Verb(v & 7)
	e.Verb, e.N = verb, uint32(v>>3)
	at, r.off = end, end
	switch verb {
	case Gain, Spend, Set:
		if e.Value, end = short(b, at); end == 0 {
			e.Value = r.value(verb)
		} else {
			r.off = end
		}
	case Join:
		e.Bytes = r.Bytes("a player's id", uint64(e.N))
		if e.N == 0 || e.N > MaxID {
			r.Fail("a player's id of %d bytes; want 1 to %d", e.N, MaxID)
		}
	case more:
		r.more(e)
	}
	if r.failed {
		r.counting(e.Verb)
	}
	return r.err == nil
}

// value reads the value of an effect, however long it is.
func (r *Reader) value(v Verb) uint64 {
	if v == Set {
		return r.long("a counter", math.MaxUint64)
	}
	return r.long("a quantity", MaxQuantity)
}

// counting refuses effects of an event that failed which are not those of a count. was is Player
// before the first of them.
func (r *Reader) counting(v Verb) {
	switch {
	case v == Set, v == Put, v == Join && r.was == Player:
		r.was = v
	default:
		r.Fail("effect %d of an event that failed", v)
	}
}

// more reads the rest of an effect with a verb from Member on.
func (r *Reader) more(e *Effect) {
	if e.N >= uint32(verbEnd-8) {
		r.Fail("unknown effect %d", e.N) // a newer Kuji says its format level before
		return
	}
	e.Verb, e.N = Verb(8+e.N), 0
	switch e.Verb {
	case Item:
		e.N = uint32(r.Byte("an item's kind"))
		e.Bytes = r.name("an item", MaxName)
	case NewPool:
		e.Bytes = r.name("a pool", MaxName)
	case Entry:
		e.Bytes = r.name("an entry", MaxName)
	case Stock:
		e.N = uint32(r.Uint("an entry", MaxEntries))
		e.Value = r.Uint("a stock", math.MaxUint64)
	case Counter:
		e.N = uint32(r.Uint("a number of counters", MaxCounters))
		e.Bytes = r.name("counters", maxCounter)
	case Window:
		e.N = uint32(r.Uint("a number of request ids", math.MaxUint32))
		e.Value = r.Uint("an age", math.MaxInt64)
	case Return:
		e.N = uint32(r.Uint("an entry", MaxEntries))
		e.Value = r.Uint("a number of draws", MaxQuantity)
	case Tally:
		e.N = uint32(r.Uint("a counter", MaxCounters))
		e.Value = r.Uint("a counter", math.MaxUint64)
	case Claim:
		e.N = uint32(r.Uint("a counter", MaxCounters))
		e.Value = r.Uint("a tier", math.MaxUint32)
	case Beyond:
		e.N = uint32(r.Uint("an item", MaxItems))
		e.Value = r.Uint("a quantity", MaxQuantity)
		e.Bytes = r.Bytes("what became of it", 1)
	case Grow, Hold, Release, Forfeit, Promise:
		e.N = uint32(r.Uint("an item", MaxItems))
		e.Value = r.Uint("a quantity", MaxQuantity)
	case Put:
		e.N = uint32(r.Uint("the length of a key", MaxKey))
		e.Value = r.Uint("the length of a value", MaxRecord)
		e.Bytes = r.Bytes("a record", uint64(e.N)+e.Value)
	case Drop:
		e.N = uint32(r.Uint("the length of a key", MaxKey))
		e.Bytes = r.Bytes("a key", uint64(e.N))
	case Place:
		e.N = uint32(r.Uint("a place", math.MaxUint32))
		e.Value = r.Uint("a value", math.MaxUint64)
	case Erase:
		e.Bytes = r.name("a player's id", MaxID)
	case Identity:
		e.Value = r.Uint("an identity", isName+MaxPlayers)
	case Clock:
		e.Value = r.Uint("milliseconds", MaxBack)
	case NewList:
		e.Bytes = r.name("a list of codes", MaxName)
	case AddCodes:
		e.N = uint32(r.Uint("a list of codes", MaxCodeLists))
		e.Bytes = r.Bytes("codes", r.Uint("codes", MaxCodesBytes))
	case GiveCode, UseCode:
		e.N = uint32(r.Uint("a list of codes", MaxCodeLists))
		e.Value = r.Uint("a code's number", maxListCodes)
	case Level:
		e.Value = r.Uint("a format level", math.MaxUint8)
		r.newer("realm", e.Value, uint64(format.Newest))
	case Order:
		e.N = uint32(r.Uint("a counter", MaxCounters))
		e.Value = r.Uint("what an order goes by", uint64(ByStanding))
	case Catalog:
		e.Bytes = r.Bytes("a catalog", r.Uint("a catalog", maxCatalog))
	}
}

func (r *Reader) name(what string, limit uint64) []byte {
	return r.text(what, uint64(r.Byte(what)), limit)
}
