package store

import (
	"testing"

	"pgregory.net/rapid"
)

// TestBitmap holds a bitmap that is taken, joined and grown to a map.
func TestBitmap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var b, taken bitmap
		var size uint32
		in, out := map[uint32]bool{}, map[uint32]bool{}
		rt.Repeat(map[string]func(*rapid.T){
			"grow": func(rt *rapid.T) {
				for range rapid.Uint32Range(1, 3).Draw(rt, "chunks") {
					size = min(size+rapid.Uint32Range(1, bitmapBits).Draw(rt, "more"), 8*bitmapBits)
					b.grow(size - 1)
				}
			},
			"set": func(rt *rapid.T) {
				if size > 0 {
					n := rapid.Uint32Range(0, size-1).Draw(rt, "n")
					b.set(n)
					in[n] = true
				}
			},
			"take": func(rt *rapid.T) {
				taken, out, in = b.reset(), in, map[uint32]bool{}
			},
			"join": func(rt *rapid.T) {
				b.join(&taken)
				for n := range out {
					in[n] = true
				}
				taken, out = bitmap{}, map[uint32]bool{}
			},
			"": func(rt *rapid.T) {
				for n := range in {
					if !b.has(n) {
						rt.Fatalf("%d is missing", n)
					}
				}
				for n := range out {
					if !taken.has(n) {
						rt.Fatalf("%d is missing from what was taken", n)
					}
				}
				if size > 0 {
					n := rapid.Uint32Range(0, size-1).Draw(rt, "any")
					if b.has(n) != in[n] || b.word(n) == 0 && in[n] {
						rt.Fatalf("has(%d) is %v", n, b.has(n))
					}
				}
			},
		})
	})
}

// BenchmarkBitmapTake takes a set of ten million players, as a snapshot does
// under the realm's lock.
func BenchmarkBitmapTake(b *testing.B) {
	var m bitmap
	m.grow(10_000_000)
	b.ReportAllocs()
	for b.Loop() {
		m.set(5_000_000)
		m.reset()
	}
}
