package economy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/catalog"
)

// answerTo is an answer to a request id, of so many bytes.
func answerTo(id string, size int) []byte {
	head := []byte{byte(KindDraw)<<3 | eventVersion<<1 | 1, byte(OK), byte(len(id))}
	answer := append(head, id...)
	return append(answer, make([]byte, max(0, size-len(answer)))...)
}

// TestForgetAllOfAChunk: when all ids are forgotten, wherever in its chunk the last one ended,
// those that come next are found, and forgotten in their turn.
func TestForgetAllOfAChunk(t *testing.T) {
	for _, sizes := range [][2]int{{60, 60}, {60, 5000}, {4000, 60}, {60, 2 * idChunkSize}, {2 * idChunkSize, 60}, {idChunkSize - 50, idChunkSize - 60}} {
		for n := idChunkSize / (sizes[0] + 40); n < idChunkSize/(sizes[0]+40)+idChunkSize/sizes[0]/2+3; n += 1 + n/300 {
			var r requestIDs
			r.init()
			for i := range n {
				r.add(fmt.Sprint("old", i), idRecord{position: uint64(i + 1), answer: answerTo(fmt.Sprint("old", i), sizes[0])})
			}
			r.forgetBefore(r.tail)
			for i := range 5 {
				id := fmt.Sprint("new", i)
				r.add(id, idRecord{position: uint64(n + i + 1), answer: answerTo(id, sizes[1])})
			}
			for i := range 5 {
				id := fmt.Sprint("new", i)
				if old, ok := r.oldest(); !ok || old.position != uint64(n+i+1) || string(answerID(old.answer)) != id {
					t.Fatalf("%d of %d bytes, then of %d: the oldest is at %d, want %d", n, sizes[0], sizes[1], old.position, n+i+1)
				}
				if _, ok := r.find(id); !ok {
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

// TestIDChunksAreBounded: where ids stand in so many chunks that places would come round,
// none is taken, however old the oldest is.
func TestIDChunksAreBounded(t *testing.T) {
	s := New()
	c, err := catalog.Parse([]byte("{kuji: 1, items: {gem: {}}, idempotency: {count: 1000, age: 1m}}"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := s.DecideCatalog(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(ev, AppendEvent(nil, ev), At{Position: 1, Time: 1}); err != nil {
		t.Fatal(err)
	}
	id := strings.Repeat("i", MaxID)
	s.ids.add(id, idRecord{position: 2, time: 1, answer: answerTo(id, 100)})
	late := (2 * time.Minute).Milliseconds()
	for chunks, want := range map[int]bool{1: true, maxIDChunks: true, mostIDChunks - spareIDChunks - 1: true, mostIDChunks - spareIDChunks: false, idPlaces / placesChunk: false} {
		s.ids.chunks = append(s.ids.chunks[:1], make([]idChunk, chunks-1)...)
		if got := s.roomForID(late); got != want {
			t.Errorf("with %d chunks, room for another id: %v", chunks, got)
		}
	}
	s.ids.chunks = s.ids.chunks[:maxIDChunks]
	if s.roomForID(1) {
		t.Errorf("with %d chunks, room for another id although the oldest is young", maxIDChunks)
	}
}
