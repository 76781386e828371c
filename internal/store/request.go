package store

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
	"sort"
)

// ids is the idempotency window: the newest request ids with their answers, in the order of the
// log, in chunks that are dropped from the front. An index leads from the hash of an id to the
// place of its record, which never changes. A record begins at a multiple of 8 bytes:
//
//	varint  position, minus that of the chunk's first record
//	varint  steady time, minus that of the chunk's first record
//	varint  catalog version, minus that of the chunk's first record
//	varint  index in its batch
//	varint  length of the answer
//	bytes   the answer: the event
//
// A draw with an id of 16 bytes takes about 40 bytes, and 15 in the index.
type ids struct {
	key    hashKey
	chunks []idChunk
	first  uint64 // number of chunks[0] among all chunks ever
	used   int    // bytes of the last chunk
	head   uint64 // number of the oldest remembered record
	headAt int    // its offset in chunks[0]
	tail   uint64 // number of the next record
	index  index  // from the hash of an id to the place of its record
	kept
	keep int // keptAnyway, or fewer in tests

	window window // the idempotency window
	log    logTime
	floor  int64  // see IDFloor
	warmed uint64 // has no meaning: see WarmRemember
}

// kept is how much ids keep.
type kept struct {
	stored uint64 // bytes of the remembered answers
	held   uint64 // bytes of the chunks
	erased int    // how many answers are: see erase.go
}

// logTime is what ids follow of the log by themselves: Remember may run concurrently with Change.
type logTime struct {
	now     int64  // steady time of the last event
	back    int64  // how far the clock was set back in all
	version uint64 // of the catalog in force
}

type idChunk struct {
	data  []byte
	ends  int      // bytes used; set when the next chunk begins
	first uint64   // number of the first record
	base  idRecord // its position, time and version; its back is that of all records
}

const (
	idChunkSize = 1 << 18
	// idPlaces is how many places the index can tell apart: multiples of 8 bytes in chunks of
	// idChunkSize. A larger record has a chunk of its own.
	idPlaces    = 1 << 31
	placesChunk = idChunkSize / 8
	// From maxIDChunks on, the oldest ids are forgotten for new ones: 15 GiB of records, more if
	// some are larger than a chunk. There can be mostIDChunks. spareIDChunks leaves room for a
	// loader, which may need a few more for the same records.
	maxIDChunks   = 15 << 30 / idChunkSize
	mostIDChunks  = idPlaces/placesChunk - 1
	spareIDChunks = 1 << 9
)

type idRecord struct {
	position uint64
	time     int64  // steady: see [State.Back]
	back     int64  // how far the clock had been set back
	version  uint64 // of the catalog in force when it was decided
	index    uint32 // in its batch
	answer   []byte // the event; see answerID
}

func (r *ids) init() {
	r.key, r.keep = newHashKey(), keptAnyway
	r.window = window{count: defaultWindowCount, age: defaultWindowAge.Milliseconds()}
	r.index.alone = true
	r.index.init()
}

func (r *ids) count() int { return int(r.tail - r.head) }

// full reports whether an old record must be forgotten to make room for a new one.
func (r *ids) full() bool { return len(r.chunks) >= maxIDChunks }

// atMost reports whether no more than a number of chunks can be added. Forgetting small records may
// free none, while a large record begins one.
func atMost(r *ids, left int) bool { return len(r.chunks) >= mostIDChunks-left }

// memory returns approximately how many bytes the window takes.
func (r *ids) memory() uint64 {
	const indexed = 18 // a slot has 8 bytes, and a little less than half of them are in use
	return r.held + indexed*uint64(r.count())
}

// read decodes the record at an offset in a chunk. next is the offset of the one after it.
func (c *idChunk) read(at int) (rec idRecord, next int) {
	num := func() uint64 {
		if b := c.data[at]; b < 0x80 {
			at++
			return uint64(b)
		}
		v, n := binary.Uvarint(c.data[at:])
		at += n
		return v
	}
	rec.position = c.base.position + num()
	rec.time, rec.back = c.base.time+int64(num()), c.base.back
	rec.version = c.base.version + num()
	rec.index = uint32(num())
	n := int(num())
	rec.answer = c.data[at : at+n : at+n]
	return rec, (at + n + 7) &^ 7
}

// place returns the record at a place in the index.
func (r *ids) place(p uint32) idRecord {
	chunk := (p/placesChunk - uint32(r.first)) % (idPlaces / placesChunk)
	rec, _ := r.chunks[chunk].read(int(p%placesChunk) * 8)
	return rec
}

// placeOf is the inverse of place.
func (r *ids) placeOf(chunk, at int) uint32 {
	return uint32(((r.first+uint64(chunk))*placesChunk + uint64(at/8)) % idPlaces)
}

// find returns the record of a remembered id with this hash. It is valid until the next change. While no answer is
// erased, which is nearly always, it does not ask.
func (r *ids) find(id []byte, h uint32) (idRecord, bool) {
	if r.erased > 0 {
		if rec, ok := findAs(r, id, h, false); ok {
			return rec, true
		}
		return findErased(r, id)
	}
	s := r.index.shard(h)
	for i := first(h); *s.at(i) != 0; i++ {
		slot := *s.at(i)
		if uint32(slot>>32) != h {
			continue
		}
		if rec := r.place(uint32(slot) - 1); bytes.Equal(answerID(rec.answer), id) {
			return rec, true
		}
	}
	return idRecord{}, false
}

// findAs is find among the answers that are erased, or those that are not.
func findAs(r *ids, id []byte, h uint32, erased bool) (idRecord, bool) {
	s := r.index.shard(h)
	for i := first(h); *s.at(i) != 0; i++ {
		slot := *s.at(i)
		if uint32(slot>>32) != h {
			continue
		}
		if rec := r.place(uint32(slot) - 1); bytes.Equal(answerID(rec.answer), id) && isErased(rec.answer) == erased {
			return rec, true
		}
	}
	return idRecord{}, false
}

// add remembers a copy of the answer to an id with this hash. Positions and times must never
// decrease. A chunk ends when the clock is set back.
func (r *ids) add(hash uint32, rec idRecord) {
	const most = 5 * binary.MaxVarintLen64
	need := most + len(rec.answer)
	last := len(r.chunks) - 1
	if last < 0 || r.used+need > len(r.chunks[last].data) || rec.back != r.chunks[last].base.back {
		if last >= 0 {
			r.chunks[last].ends = r.used
		}
		r.chunks = append(r.chunks, idChunk{data: make([]byte, max(idChunkSize, need)), first: r.tail, base: rec})
		r.held += uint64(max(idChunkSize, need))
		r.used = 0
		last++
		r.chunks[last].base.answer = nil
	}
	c := &r.chunks[last]
	at := r.used
	b := c.data[at:at]
	b = binary.AppendUvarint(b, rec.position-c.base.position)
	b = binary.AppendUvarint(b, uint64(rec.time-c.base.time))
	b = binary.AppendUvarint(b, rec.version-c.base.version)
	b = binary.AppendUvarint(b, uint64(rec.index))
	b = binary.AppendUvarint(b, uint64(len(rec.answer)))
	b = append(b, rec.answer...)
	r.index.add(hash, r.placeOf(last, at))
	r.used = (at + len(b) + 7) &^ 7
	r.stored += uint64(len(rec.answer))
	if isErased(rec.answer) {
		r.erased++
	}
	r.tail++
}

func (r *ids) oldest() (idRecord, bool) {
	if r.head == r.tail {
		return idRecord{}, false
	}
	rec, _ := r.chunks[0].read(r.headAt)
	return rec, true
}

// forgetBelow forgets the oldest records with a time below t, at most n.
func (r *ids) forgetBelow(t int64, n int) {
	for ; n > 0; n-- {
		if rec, ok := r.oldest(); !ok || rec.time >= t {
			return
		}
		r.forget()
	}
}

func (r *ids) forget() {
	rec, next := r.chunks[0].read(r.headAt)
	id := answerID(rec.answer)
	if made, ok := madeAt(rec.answer); ok && made <= rec.time-rec.back+MaxIDAhead {
		r.floor = max(r.floor, made+1)
	}
	r.index.remove(r.key.hashBytes(id), r.placeOf(0, r.headAt))
	r.stored -= uint64(len(rec.answer))
	if isErased(rec.answer) {
		r.erased--
	}
	r.head++
	r.headAt = next
	if len(r.chunks) > 1 && next == r.chunks[0].ends {
		r.held -= uint64(len(r.chunks[0].data))
		r.chunks[0] = idChunk{}
		r.chunks = r.chunks[1:]
		r.first++
		r.headAt = 0
	}
}

// forgetBefore forgets every record with a number below n.
func (r *ids) forgetBefore(n uint64) {
	for r.head < n && r.head < r.tail {
		r.forget()
	}
	if r.head == r.tail { // otherwise the next record might begin a chunk, and headAt would point past the end of the one before
		r.restart(r.tail)
	}
}

// restart sets the number of the next record. The window must be empty.
func (r *ids) restart(n uint64) {
	r.chunks, r.first, r.used, r.held, r.erased = nil, 0, 0, 0, 0
	r.head, r.headAt, r.tail = n, 0, n
}

// frozen returns the records as they are now. They can be read through from, concurrently with the
// writer, but not found by id.
func (r *ids) frozen() ids {
	return ids{
		chunks: slices.Clone(r.chunks), first: r.first, used: r.used, head: r.head, headAt: r.headAt, tail: r.tail,
		window: r.window, floor: r.floor,
	}
}

// from iterates over the records and their numbers, beginning with number n.
func (r *ids) from(n uint64) iter.Seq2[uint64, idRecord] {
	return func(yield func(uint64, idRecord) bool) {
		n = max(n, r.head)
		if n >= r.tail {
			return
		}
		i := sort.Search(len(r.chunks), func(i int) bool { return r.chunks[i].first > n }) - 1
		num, at := r.chunks[i].first, 0
		if i == 0 {
			num, at = r.head, r.headAt
		}
		for num < r.tail {
			rec, next := r.chunks[i].read(at)
			if num >= n && !yield(num, rec) {
				return
			}
			num++
			if at = next; i+1 < len(r.chunks) && at == r.chunks[i].ends {
				i, at = i+1, 0
			}
		}
	}
}

// YoungerThan returns how many remembered ids were answered after t, in steady time.
func (r *ids) YoungerThan(t int64) int {
	// The first chunk that begins above t. Records in the one before it may be above t, too.
	i := sort.Search(len(r.chunks), func(i int) bool { return r.chunks[i].base.time > t })
	if i == 0 {
		return r.count()
	}
	for n, rec := range r.from(r.chunks[i-1].first) {
		if rec.time > t {
			return int(r.tail - n)
		}
	}
	return 0
}

// answerID returns the request id of an event. The event must have one.
func answerID(event []byte) []byte {
	at := 0
	for event[at] >= 0x80 { // the size
		at++
	}
	at += 2 // the last byte of the size, and the head
	if event[at-1]>>3 == 0 {
		at++ // the kind
	}
	return event[at+1 : at+1+int(event[at])]
}
