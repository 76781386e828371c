package economy

import (
	"hash/maphash"
	"slices"
)

// requestIDs is the idempotency window: the newest request ids with the events
// that answered them. Records in log order, an index over their ids' hashes,
// and the events' bytes; records and bytes stand in chunks that are dropped
// from the front.
type requestIDs struct {
	seed   maphash.Seed
	chunks [][]idRecord // of idChunk records each
	first  uint64       // number of the first record of chunks[0]
	head   uint64       // number of the oldest remembered record
	tail   uint64       // number of the next record
	index  index        // from the hash of an id to the number of its record modulo maxRecord
	bytes  byteQueue
	stored uint64 // bytes of the remembered events
}

const idChunk = 1 << 12

// maxRecord bounds the numbers in the index, which keeps number+1 in 32 bits. There
// are never as many records at a time.
const maxRecord = 1 << 31

// idRecord is one remembered request.
type idRecord struct {
	position uint64
	time     int64
	version  uint64 // of the catalog in force when it was decided
	at       uint64 // of the event's bytes
	len      uint32
	index    uint32 // in its batch
	hash     uint32
	idAt     uint8 // where the id starts in the event
	idLen    uint8
}

func (r *requestIDs) init(seed maphash.Seed) {
	r.seed = seed
	r.index.init()
}

// at returns the record of a number from head up to tail.
func (r *requestIDs) at(n uint64) *idRecord {
	i := n - r.first
	return &r.chunks[i/idChunk][i%idChunk]
}

// indexed returns the record of a number modulo maxRecord.
func (r *requestIDs) indexed(n uint32) *idRecord {
	return r.at(r.tail - uint64((uint32(r.tail)-n)%maxRecord))
}

func (r *requestIDs) count() int { return int(r.tail - r.head) }

func (r *requestIDs) hash(id string) uint32 { return uint32(maphash.String(r.seed, id) >> 32) }

func (r *requestIDs) id(rec *idRecord) []byte {
	return r.bytes.get(rec.at, int(rec.len))[rec.idAt : rec.idAt+rec.idLen]
}

// find returns the record of a remembered id, nil when there is none; valid
// until the next change.
func (r *requestIDs) find(id string) *idRecord {
	h := r.hash(id)
	slots := r.index.slots(h)
	for i := h % shardSlots; slots[i] != 0; i = (i + 1) % shardSlots {
		if uint32(slots[i]>>32) != h {
			continue
		}
		if rec := r.indexed(uint32(slots[i]) - 1); string(r.id(rec)) == id {
			return rec
		}
	}
	return nil
}

// add remembers the event raw, whose id starts at raw[idAt].
func (r *requestIDs) add(id string, idAt int, raw []byte, rec idRecord) {
	if r.tail == r.first+uint64(len(r.chunks))*idChunk {
		r.chunks = append(r.chunks, make([]idRecord, idChunk))
	}
	rec.hash = r.hash(id)
	rec.at, rec.len = r.bytes.add(raw), uint32(len(raw))
	r.stored += uint64(len(raw))
	rec.idAt, rec.idLen = uint8(idAt), uint8(len(id))
	*r.at(r.tail) = rec
	r.index.add(rec.hash, uint32(r.tail)%maxRecord)
	r.tail++
}

// oldest returns the oldest remembered record, nil when there is none.
func (r *requestIDs) oldest() *idRecord {
	if r.head == r.tail {
		return nil
	}
	return r.at(r.head)
}

// forget drops the oldest record.
func (r *requestIDs) forget() {
	old := r.oldest()
	r.index.remove(old.hash, uint32(r.head)%maxRecord)
	r.stored -= uint64(old.len)
	r.head++
	if r.head == r.first+idChunk {
		r.chunks[0] = nil
		r.chunks = r.chunks[1:]
		r.first = r.head
	}
	if next := r.oldest(); next != nil {
		r.bytes.dropBefore(next.at)
	}
}

// forgetBefore drops every record before number n.
func (r *requestIDs) forgetBefore(n uint64) {
	for r.head < n && r.head < r.tail {
		r.forget()
	}
}

// restart makes n the number of the next record of a window that holds none.
func (r *requestIDs) restart(n uint64) {
	r.chunks, r.bytes = nil, byteQueue{}
	r.first, r.head, r.tail = n, n, n
}

// frozen returns the records and bytes as they are now, which can be read while
// the window goes on. Nothing can be found in it by id.
func (r *requestIDs) frozen() requestIDs {
	return requestIDs{
		chunks: slices.Clone(r.chunks), first: r.first, head: r.head, tail: r.tail,
		bytes: byteQueue{chunks: slices.Clone(r.bytes.chunks), first: r.bytes.first, used: r.bytes.used},
	}
}

// byteQueue stores byte strings in order and drops them from the front.
type byteQueue struct {
	chunks [][]byte
	first  uint64 // number of chunks[0]
	used   int    // of the last chunk
}

const queueChunk = 1 << 18

// add stores b and returns where.
func (q *byteQueue) add(b []byte) uint64 {
	last := len(q.chunks) - 1
	if last < 0 || q.used+len(b) > len(q.chunks[last]) {
		q.chunks = append(q.chunks, make([]byte, max(queueChunk, len(b))))
		q.used = 0
		last++
	}
	at := (q.first+uint64(last))<<32 | uint64(q.used)
	copy(q.chunks[last][q.used:], b)
	q.used += len(b)
	return at
}

func (q *byteQueue) get(at uint64, n int) []byte {
	c := q.chunks[at>>32-q.first]
	off := int(at & (1<<32 - 1))
	return c[off : off+n : off+n]
}

// dropBefore frees the chunks wholly before the bytes at at.
func (q *byteQueue) dropBefore(at uint64) {
	if n := at>>32 - q.first; n > 0 {
		clear(q.chunks[:n])
		q.chunks = q.chunks[n:]
		q.first += n
	}
}
