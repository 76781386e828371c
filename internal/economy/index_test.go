package economy

import (
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
			s := x.shard(hashes[v])
			for i := first(hashes[v]); *s.at(i) != 0; i++ {
				if *s.at(i) == content(hashes[v], v) {
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
		for i := range x.own.shards {
			s := x.own.shards[i].Load()
			if !seen[s] {
				for _, slot := range s.slots {
					if slot != 0 {
						used++
					}
				}
			}
			seen[s] = true
		}
		if used != len(in) {
			t.Fatalf("n %d: %d slots in use, want %d", n, used, len(in))
		}
		if slots := len(seen) * shardSlots; n >= 5000 && slots > 4*n {
			t.Errorf("%d slots for at most %d numbers", slots, n)
		}
	}
}

// TestRequestIDWindowWraps runs the window over many chunks with few remembered.
func TestRequestIDWindowWraps(t *testing.T) {
	var r requestIDs
	r.init()
	id := func(n int) string { return string([]byte{byte(n), byte(n >> 8), byte(n >> 16)}) }
	answer := func(n int) []byte {
		size := n % 90
		if n%5000 == 0 {
			size = 2 * idChunkSize // has a chunk of its own
		}
		return append(append([]byte{1, 0, 3}, id(n)...), make([]byte, size)...)
	}
	most := 0
	for n := range 40_000 {
		r.add(id(n), idRecord{position: uint64(n), time: int64(n / 10), version: uint64(n / 9000), index: uint32(n % 300), answer: answer(n)})
		if r.count() > 1000 {
			r.forget()
		}
		if old := n - 999; old >= 0 {
			rec, ok := r.find(id(old))
			if want := uint64(old); !ok || rec.position != want || rec.time != int64(old/10) || rec.version != want/9000 || rec.index != uint32(want%300) || len(rec.answer) != len(answer(old)) {
				t.Fatalf("%d: the oldest is found as %+v, %v", n, rec, ok)
			}
		}
		if _, ok := r.find(id(n - 1000)); ok && n >= 1000 {
			t.Fatalf("%d: a forgotten id is found", n)
		}
		most = max(most, len(r.chunks))
	}
	next := r.head + 17
	for n, rec := range r.from(next) {
		if n != next || rec.position != n {
			t.Fatalf("iterating: number %d at position %d, want %d", n, rec.position, next)
		}
		next++
	}
	if next != r.tail {
		t.Errorf("iterated up to %d of %d", next, r.tail)
	}
	for _, since := range []int64{-1, 0, 3900, 3950, 3999, 5000} {
		want := 0
		for _, rec := range r.from(r.head) {
			if rec.time > since {
				want++
			}
		}
		if got := r.youngerThan(since); got != want {
			t.Errorf("%d are younger than %d, want %d", got, since, want)
		}
	}
	if most > 5 {
		t.Errorf("%d chunks of records for 1000 records", most)
	}
}

// TestIndexMisses: to remove or replace what is not there is a defect, which ends.
func TestIndexMisses(t *testing.T) {
	for name, change := range map[string]func(x *index, hash, number uint32){
		"remove":  func(x *index, hash, number uint32) { x.remove(hash, number) },
		"replace": func(x *index, hash, number uint32) { x.replace(hash, number, 99) },
	} {
		for what, wrong := range map[string][2]uint32{"number": {7, 2}, "hash": {8, 1}} {
			t.Run(name+" of another "+what, func(t *testing.T) {
				defer func() {
					if recover() == nil {
						t.Error("went on")
					}
				}()
				var x index
				x.init()
				x.add(7, 1)
				change(&x, wrong[0], wrong[1])
			})
		}
	}
}
