package store

import (
	"math/rand/v2"
	"testing"
)

// has reports whether a number stands in an index under a hash.
func (x *index) has(hash, number uint32) bool {
	s := x.shard(hash)
	for i := first(hash); *s.at(i) != 0; i++ {
		if *s.at(i) == content(hash, number) {
			return true
		}
	}
	return false
}

// TestIndexAgainstMap drives an index of few and of many numbers, in any order of additions
// and removals, next to a map.
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
			if x.has(hashes[v], v) != in[v] {
				t.Fatalf("n %d: number %d: in the index it is %v", n, v, !in[v])
			}
		}
		for v := range uint32(n) {
			if x.has(hashes[v], v) != in[v] {
				t.Fatalf("n %d: at the end, number %d: in the index it is %v", n, v, !in[v])
			}
		}
		used, seen := 0, map[*shard]bool{}
		for i := range x.own.shards {
			s := x.own.shards[i].Load()
			if seen[s] {
				continue
			}
			seen[s] = true
			for _, slot := range s.slots {
				if slot != 0 {
					used++
				}
			}
		}
		if used != len(in) {
			t.Fatalf("n %d: %d slots in use, want %d", n, used, len(in))
		}
		if slots := len(seen) * shardSlots; n >= 5000 && slots > 4*n {
			t.Errorf("%d slots for at most %d numbers", slots, n)
		}
	}
}

// TestIndexOfOneHash: some numbers of one hash are all found; no split tells them apart.
func TestIndexOfOneHash(t *testing.T) {
	var x index
	x.init()
	const hash, many = 0xdeadbeef, maxProbe
	for n := range uint32(many) {
		x.add(hash, n)
	}
	for n := range uint32(many) {
		if !x.has(hash, n) {
			t.Fatalf("number %d is lost", n)
		}
	}
	for n := range uint32(many) {
		x.remove(hash, n)
		if x.has(hash, n) || n+1 < many && !x.has(hash, many-1) {
			t.Fatalf("number %d is still there, or the last one is lost", n)
		}
	}
}

// TestIndexReplaces: a number that takes the place of another is found in its place.
func TestIndexReplaces(t *testing.T) {
	var x index
	x.init()
	r := rand.New(rand.NewPCG(1, 1))
	hashes := make([]uint32, 5000)
	for n := range uint32(len(hashes)) {
		hashes[n] = r.Uint32()
		x.add(hashes[n], n)
	}
	for n := range uint32(len(hashes)) {
		x.replace(hashes[n], n, n+1<<20)
		if x.has(hashes[n], n) || !x.has(hashes[n], n+1<<20) {
			t.Fatalf("number %d was not replaced", n)
		}
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
