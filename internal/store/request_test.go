package store

import (
	"fmt"
	"testing"
)

// answerTo is an event with a request id, of about so many bytes.
func answerTo(id string, size int) []byte {
	var w Writer
	w.Begin(2, id)
	w.BeginAsked()
	w.Buf = append(w.Buf, make([]byte, size)...)
	w.EndAsked()
	return w.End()
}

func (r *ids) put(id string, rec idRecord) { r.add(r.key.hash(id), rec) }

func (r *ids) get(id string) (idRecord, bool) { return r.find([]byte(id), r.key.hash(id)) }

// TestForgetAllOfAChunk: when all ids are forgotten, wherever in its chunk the last one ended,
// those that come next are found, and forgotten in their turn.
func TestForgetAllOfAChunk(t *testing.T) {
	for _, sizes := range [][2]int{{60, 60}, {60, 5000}, {4000, 60}, {60, 2 * idChunkSize}, {2 * idChunkSize, 60}, {idChunkSize - 100, idChunkSize - 110}} {
		for n := idChunkSize / (sizes[0] + 40); n < idChunkSize/(sizes[0]+40)+idChunkSize/sizes[0]/2+3; n += 1 + n/100 {
			var r ids
			r.init()
			for i := range n {
				id := fmt.Sprint("old", i)
				r.put(id, idRecord{position: uint64(i + 1), answer: answerTo(id, sizes[0])})
			}
			r.forgetBefore(r.tail)
			for i := range 5 {
				id := fmt.Sprint("new", i)
				r.put(id, idRecord{position: uint64(n + i + 1), answer: answerTo(id, sizes[1])})
			}
			for i := range 5 {
				id := fmt.Sprint("new", i)
				if old, ok := r.oldest(); !ok || old.position != uint64(n+i+1) || string(answerID(old.answer)) != id {
					t.Fatalf("%d of %d bytes, then of %d: the oldest is at %d, want %d", n, sizes[0], sizes[1], old.position, n+i+1)
				}
				if _, ok := r.get(id); !ok {
					t.Fatalf("%q is not found", id)
				}
				r.forgetBelow(1, 1)
			}
			bytes := uint64(0)
			for _, c := range r.chunks {
				bytes += uint64(len(c.data))
			}
			if r.count() != 0 || r.memory() != bytes {
				t.Fatalf("%d remembered in %d bytes, want none in %d", r.count(), r.memory(), bytes)
			}
		}
	}
}

// TestChunksWrap runs a window over many chunks with few remembered, some of them in a chunk
// of their own; what iterates sees all of them once.
func TestChunksWrap(t *testing.T) {
	var r ids
	r.init()
	id := func(n int) string { return string([]byte{'i', byte(n), byte(n >> 8), byte(n >> 16)}) }
	size := func(n int) int {
		if n%5000 == 0 {
			return 2 * idChunkSize
		}
		return n % 90
	}
	most := 0
	for n := range 40_000 {
		r.put(id(n), idRecord{position: uint64(n), time: int64(n / 10), version: uint64(n / 9000), index: uint32(n % 300), answer: answerTo(id(n), size(n))})
		if r.count() > 1000 {
			r.forget()
		}
		if old := n - 999; old >= 0 {
			rec, ok := r.get(id(old))
			if want := uint64(old); !ok || rec.position != want || rec.time != int64(old/10) || rec.version != want/9000 || rec.index != uint32(want%300) || len(rec.answer) != len(answerTo(id(old), size(old))) {
				t.Fatalf("%d: the oldest is found as %+v, %v", n, rec, ok)
			}
		}
		if _, ok := r.get(id(n - 1000)); ok && n >= 1000 {
			t.Fatalf("%d: a forgotten id is found", n)
		}
		most = max(most, len(r.chunks))
	}
	next := r.head + 17
	frozen := r.frozen()
	r.put("later", idRecord{position: 1 << 20, time: 1 << 20, version: 1 << 20, answer: answerTo("later", 1)})
	for n, rec := range frozen.from(next) {
		if n != next || rec.position != n {
			t.Fatalf("iterating: number %d at position %d, want %d", n, rec.position, next)
		}
		next++
	}
	if next != frozen.tail || next != r.tail-1 {
		t.Errorf("iterated up to %d of %d", next, frozen.tail)
	}
	if most > 5 {
		t.Errorf("%d chunks of records for 1000 records", most)
	}
}

// TestChunksAreBounded: where ids stand in so many chunks that places would come round, none
// is taken, however old the oldest is.
func TestChunksAreBounded(t *testing.T) {
	s := New()
	s.ids.put("id", idRecord{position: 2, time: 1, answer: answerTo("id", 100)})
	late := 2*s.ids.window.age + 2
	for chunks, room := range map[int]bool{1: true, maxIDChunks: true, mostIDChunks - spareIDChunks - 1: true, mostIDChunks - spareIDChunks: false, idPlaces / placesChunk: false} {
		s.ids.chunks = append(s.ids.chunks[:1], make([]idChunk, chunks-1)...)
		if full := s.WindowFull(late); full == room {
			t.Errorf("with %d chunks the window is full: %v", chunks, full)
		}
	}
	s.ids.chunks = s.ids.chunks[:maxIDChunks]
	if !s.WindowFull(1) {
		t.Errorf("with %d chunks there is room although the oldest is young", maxIDChunks)
	}
}
