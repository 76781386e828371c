package economy

import "hash/maphash"

// requestIDs is the idempotency window: the newest request ids with the events
// that answered them. A ring of records in log order, an index over their
// hashes, and the events' bytes in chunks that are dropped from the front.
type requestIDs struct {
	seed  maphash.Seed
	ring  []idRecord // len is a power of two
	head  uint64     // number of the oldest remembered record
	tail  uint64     // number of the next record; number n stands in ring[n&(len-1)]
	index []uint32   // open addressing by hash: (record number & mask of ring)+1; 0 is free; twice the ring's length
	bytes byteQueue
}

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
	r.ring = make([]idRecord, 1024)
	r.index = make([]uint32, 2048)
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
	mask := uint32(len(r.index) - 1)
	for i := h & mask; r.index[i] != 0; i = (i + 1) & mask {
		rec := &r.ring[r.index[i]-1]
		if rec.hash == h && string(r.id(rec)) == id {
			return rec
		}
	}
	return nil
}

// add remembers the event raw, whose id starts at raw[idAt].
func (r *requestIDs) add(id string, idAt int, raw []byte, rec idRecord) {
	if r.count() == len(r.ring) {
		r.grow()
	}
	rec.hash = r.hash(id)
	rec.at, rec.len = r.bytes.add(raw), uint32(len(raw))
	rec.idAt, rec.idLen = uint8(idAt), uint8(len(id))
	slot := uint32(r.tail & uint64(len(r.ring)-1))
	r.ring[slot] = rec
	r.tail++
	r.place(slot)
}

func (r *requestIDs) place(slot uint32) {
	mask := uint32(len(r.index) - 1)
	i := r.ring[slot].hash & mask
	for r.index[i] != 0 {
		i = (i + 1) & mask
	}
	r.index[i] = slot + 1
}

func (r *requestIDs) grow() {
	ring := make([]idRecord, 2*len(r.ring))
	for n := r.head; n < r.tail; n++ {
		ring[n&uint64(len(ring)-1)] = r.ring[n&uint64(len(r.ring)-1)]
	}
	r.ring = ring
	r.index = make([]uint32, 2*len(ring))
	for n := r.head; n < r.tail; n++ {
		r.place(uint32(n & uint64(len(ring)-1)))
	}
}

// oldest returns the oldest remembered record, nil when there is none.
func (r *requestIDs) oldest() *idRecord {
	if r.head == r.tail {
		return nil
	}
	return &r.ring[r.head&uint64(len(r.ring)-1)]
}

// forget drops the oldest record.
func (r *requestIDs) forget() {
	slot := uint32(r.head & uint64(len(r.ring)-1))
	mask := uint32(len(r.index) - 1)
	i := r.ring[slot].hash & mask
	for r.index[i] != slot+1 {
		i = (i + 1) & mask
	}
	// Close the gap: move back every later slot of the run that may stand in it.
	for j := (i + 1) & mask; r.index[j] != 0; j = (j + 1) & mask {
		home := r.ring[r.index[j]-1].hash & mask
		if (j-home)&mask >= (j-i)&mask {
			r.index[i] = r.index[j]
			i = j
		}
	}
	r.index[i] = 0
	r.head++
	if next := r.oldest(); next != nil {
		r.bytes.dropBefore(next.at)
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
