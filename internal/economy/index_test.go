package economy

import (
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

// TestIndexAgainstMap drives an index of few and of many numbers, in any order
// of additions and removals, beside a map.
func TestIndexAgainstMap(t *testing.T) {
	for _, n := range []int{10, 400, 5000, 60000} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		hashes := make([]uint32, n)
		for i := range hashes {
			hashes[i] = r.Uint32()
			if i%50 == 0 && i > 0 {
				hashes[i] = hashes[i-1] // collisions
			}
		}
		var x index
		x.init()
		in := map[uint32]bool{}
		has := func(v uint32) bool {
			slots := x.slots(hashes[v])
			for i := hashes[v] % shardSlots; slots[i] != 0; i = (i + 1) % shardSlots {
				if slots[i] == uint64(hashes[v])<<32|uint64(v+1) {
					return true
				}
			}
			return false
		}
		for range 4 * n {
			v := uint32(r.IntN(n))
			switch {
			case !in[v]:
				x.add(hashes[v], v)
				in[v] = true
			case r.IntN(3) == 0:
				x.remove(hashes[v], v)
				delete(in, v)
			}
			if has(v) != in[v] {
				t.Fatalf("n %d: number %d: index says %v", n, v, has(v))
			}
		}
		for v := range uint32(n) {
			if has(v) != in[v] {
				t.Fatalf("n %d: at the end, number %d: index says %v", n, v, has(v))
			}
		}
		used, seen := 0, map[*shard]bool{}
		for i := range x.dir.Load().shards {
			s := x.dir.Load().shards[i].Load()
			if !seen[s] {
				used += int(s.used)
			}
			seen[s] = true
		}
		if used != len(in) {
			t.Fatalf("n %d: shards count %d, want %d", n, used, len(in))
		}
	}
}

// TestRequestIDWindowWraps runs the window over many chunks with few remembered.
func TestRequestIDWindowWraps(t *testing.T) {
	var r requestIDs
	r.init(maphash.MakeSeed())
	id := func(n int) string { return string([]byte{byte(n), byte(n >> 8), byte(n >> 16)}) }
	raw := func(n int) []byte { return append([]byte{1, 0, 3}, id(n)...) }
	for n := range 5 * idChunk {
		r.add(id(n), 3, raw(n), idRecord{position: uint64(n)})
		if r.count() > 1000 {
			r.forget()
		}
		if old := n - 999; old >= 0 && (r.find(id(old)) == nil || r.find(id(old)).position != uint64(old)) {
			t.Fatalf("%d: the oldest is not found", n)
		}
		if n >= 1000 && r.find(id(n-1000)) != nil {
			t.Fatalf("%d: a forgotten id is found", n)
		}
	}
	if want := uint64(r.count() * len(raw(0))); r.stored != want {
		t.Errorf("%d bytes counted as remembered, want %d", r.stored, want)
	}
	if len(r.chunks) > 2 || len(r.bytes.chunks) > 2 {
		t.Errorf("%d chunks of records and %d of bytes for 1000 records", len(r.chunks), len(r.bytes.chunks))
	}
}
