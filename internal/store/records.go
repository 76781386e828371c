package store

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
	"sort"
	"sync"
)

// records are notes of the rules: keys and values of bytes, in the order of the keys. They stand in
// leaves of a few KiB, each of which has the keys from its bound on, up to the bound of the next leaf.
// So there are few pointers, and a capture copies only the list of leaves: a leaf that a capture may
// read is copied before it changes.
//
// One goroutine writes. Others read under mu, which the writer holds from an event's first change of a
// record until the whole event is applied.
type records struct {
	mu     sync.Mutex
	mine   bool   // the writer holds mu
	alone  bool   // nobody else reads
	leaves []leaf // at least one; the bound of the first is empty
	n      int
	size   uint64 // bytes of keys and values
	moves  uint64 // how often records have changed, since the start
	frozen uint64 // how many captures there were: a leaf from before the latest one may be read by it
}

// leaf is some records with neighbouring keys.
type leaf struct {
	from []byte   // no key is lower; never changes
	data []byte   // one record after the other, in order: length of the key, that of the value, key, value
	at   []uint32 // where each record begins
	last uint64   // position of the last change
	made uint64   // what frozen was when its memory was made
}

// Limits of records.
const (
	MaxKey     = 128         // bytes
	MaxRecord  = 1 << 20     // bytes of a value
	MaxRecords = 200_000_000 // in a realm

	leafSize = 4 << 10 // bytes of a leaf that is split
	leafLow  = leafSize / 4
)

func (r *records) init() { r.leaves = []leaf{{}} }

// lock keeps readers out until release.
func (r *records) lock() {
	if !r.mine && !r.alone {
		r.mu.Lock()
		r.mine = true
	}
}

func (r *records) unlock() {
	if r.mine {
		r.mine = false
		r.mu.Unlock()
	}
}

// leafOf returns the index of the leaf that has a key, or would have it.
func (r *records) leafOf(key []byte) int {
	return sort.Search(len(r.leaves)-1, func(i int) bool { return bytes.Compare(r.leaves[i+1].from, key) > 0 })
}

// record returns the key and the value of a record.
func (l *leaf) record(i int) (key, value []byte) {
	b := l.data[l.at[i]:]
	k, n := binary.Uvarint(b)
	b = b[n:]
	v, n := binary.Uvarint(b)
	b = b[n:]
	return b[:k:k], b[k : k+v : k+v]
}

// find returns the index of the first record whose key is not lower, and whether it is the same.
func (l *leaf) find(key []byte) (i int, found bool) {
	i = sort.Search(len(l.at), func(i int) bool {
		k, _ := l.record(i)
		return bytes.Compare(k, key) >= 0
	})
	if i < len(l.at) {
		k, _ := l.record(i)
		found = bytes.Equal(k, key)
	}
	return i, found
}

// Record returns the value of a record. It is valid until the next change. For the writer.
func (r *records) Record(key []byte) (value []byte, ok bool) {
	l := &r.leaves[r.leafOf(key)]
	i, found := l.find(key)
	if !found {
		return nil, false
	}
	_, value = l.record(i)
	return value, true
}

// Records iterates over the records with keys from one up to another, nil for all. What it yields is
// valid until the next change. For the writer.
func (r *records) Records(from, to []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for n := r.leafOf(from); n < len(r.leaves); n++ {
			l := &r.leaves[n]
			i, _ := l.find(from)
			for ; i < len(l.at); i++ {
				key, value := l.record(i)
				if to != nil && bytes.Compare(key, to) >= 0 || !yield(key, value) {
					return
				}
			}
		}
	}
}

// RecordsSize returns how many records there are, and how many bytes their keys and values have.
func (r *records) RecordsSize() (n int, size uint64) { return r.n, r.size }

// RecordChanges returns how often records have changed since the start. Other runs count otherwise.
func (r *records) RecordChanges() uint64 { return r.moves }

// own makes the memory of a leaf the writer's: no capture reads it.
func (r *records) own(i int, pos uint64) *leaf {
	l := &r.leaves[i]
	if l.made < r.frozen {
		l.data, l.at, l.made = slices.Clone(l.data), slices.Clone(l.at), r.frozen
	}
	l.last = pos
	return l
}

// put writes a record.
func (r *records) put(key, value []byte, pos uint64) error {
	if len(key) == 0 || len(key) > MaxKey || len(value) > MaxRecord {
		return inconsistent("a record with a key of %d bytes and a value of %d", len(key), len(value))
	}
	r.lock()
	r.moves++
	at := r.leafOf(key)
	l := r.own(at, pos)
	i, found := l.find(key)
	if found {
		_, was := l.record(i)
		r.size -= uint64(len(was))
		if len(was) == len(value) {
			copy(was, value)
			r.size += uint64(len(value))
			return nil
		}
		l.cut(i)
	} else {
		if r.n >= MaxRecords {
			return inconsistent("more than %d records", MaxRecords)
		}
		r.n++
		r.size += uint64(len(key))
	}
	r.size += uint64(len(value))
	l.insert(i, key, value)
	if len(l.data) > leafSize && len(l.at) > 1 {
		r.split(at, i, pos)
	}
	return nil
}

// insert puts a record at index i.
func (l *leaf) insert(i int, key, value []byte) {
	var head [2 * binary.MaxVarintLen64]byte
	n := binary.PutUvarint(head[:], uint64(len(key)))
	n += binary.PutUvarint(head[n:], uint64(len(value)))
	size := n + len(key) + len(value)
	from := len(l.data)
	if i < len(l.at) {
		from = int(l.at[i])
	}
	l.data = slices.Grow(l.data, size)[:len(l.data)+size]
	copy(l.data[from+size:], l.data[from:])
	b := l.data[from:]
	copy(b[copy(b, head[:n]):], key)
	copy(b[n+len(key):], value)
	for j := i; j < len(l.at); j++ {
		l.at[j] += uint32(size)
	}
	l.at = slices.Insert(l.at, i, uint32(from))
}

// cut removes the record at index i.
func (l *leaf) cut(i int) {
	from, to := int(l.at[i]), len(l.data)
	if i+1 < len(l.at) {
		to = int(l.at[i+1])
	}
	l.data = slices.Delete(l.data, from, to)
	l.at = slices.Delete(l.at, i, i+1)
	for j := i; j < len(l.at); j++ {
		l.at[j] -= uint32(to - from)
	}
}

// split makes two leaves of one to which a record was added at an index. Of records that come in order,
// the old leaf keeps all but the last.
func (r *records) split(n, added int, pos uint64) {
	l := &r.leaves[n]
	half := len(l.at) - 1
	if added < half {
		half = max(sort.Search(len(l.at), func(i int) bool { return int(l.at[i]) > len(l.data)/2 }), 1)
		half = min(half, len(l.at)-1)
	}
	from := l.at[half]
	key, _ := l.record(half)
	next := leaf{from: bytes.Clone(key), data: slices.Clone(l.data[from:]), last: pos, made: r.frozen}
	for _, at := range l.at[half:] {
		next.at = append(next.at, at-from)
	}
	l.data, l.at = l.data[:from:from], l.at[:half:half]
	r.leaves = slices.Insert(r.leaves, n+1, next)
}

// drop removes a record.
func (r *records) drop(key []byte, pos uint64) error {
	r.lock()
	r.moves++
	n := r.leafOf(key)
	l := &r.leaves[n]
	i, found := l.find(key)
	if !found {
		return inconsistent("there is no record with the key %q", key)
	}
	_, value := l.record(i)
	r.n--
	r.size -= uint64(len(key) + len(value))
	l = r.own(n, pos)
	l.cut(i)
	if n > 0 && len(l.data) < leafLow && len(r.leaves[n-1].data)+len(l.data) <= leafSize*3/4 {
		r.join(n, pos)
	}
	return nil
}

// join adds a leaf to the one before it.
func (r *records) join(n int, pos uint64) {
	l, prev := r.leaves[n], r.own(n-1, pos)
	from := uint32(len(prev.data))
	prev.data = append(prev.data, l.data...)
	for _, at := range l.at {
		prev.at = append(prev.at, from+at)
	}
	r.leaves = slices.Delete(r.leaves, n, n+1)
}

// freeze returns the records as they are now. They can be read concurrently with the writer.
func (r *records) freeze() []leaf {
	r.frozen++
	return slices.Clone(r.leaves)
}

// clear drops the records with keys from one up to another, nil for the end.
func (r *records) clear(from, to []byte, pos uint64) error {
	var keys [][]byte
	for key := range r.Records(from, to) {
		keys = append(keys, bytes.Clone(key))
	}
	for _, key := range keys {
		if err := r.drop(key, pos); err != nil {
			return err
		}
	}
	return nil
}

// Noted is a record as readers get it.
type Noted struct{ Key, Value []byte }

// ReadRecord returns a copy of the value of a record, and a position that covers it. It runs
// concurrently with the writer.
func (r *records) ReadRecord(key []byte) (value []byte, last uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.leaves[r.leafOf(key)]
	value, ok = r.Record(key)
	return bytes.Clone(value), l.last, ok
}

// ReadRecords returns copies of at most most records with keys from one up to another, and a position
// that covers them. It runs concurrently with the writer.
func (r *records) ReadRecords(from, to []byte, most int) (all []Noted, last uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := r.leafOf(from); n < len(r.leaves) && (to == nil || bytes.Compare(r.leaves[n].from, to) < 0); n++ {
		l := &r.leaves[n]
		last = max(last, l.last)
		i, _ := l.find(from)
		for ; i < len(l.at); i++ {
			key, value := l.record(i)
			if len(all) == most || to != nil && bytes.Compare(key, to) >= 0 {
				return all, last
			}
			all = append(all, Noted{bytes.Clone(key), bytes.Clone(value)})
		}
	}
	return all, last
}
