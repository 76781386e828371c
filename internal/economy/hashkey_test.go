package economy

import (
	"math/bits"
	"strings"
	"testing"
)

// TestHashKey: every byte and the length of an id count, up to the longest and
// beyond; about half of the hash's bits change with any of them; and each key
// hashes differently.
func TestHashKey(t *testing.T) {
	key, other := newHashKey(), newHashKey()
	for n := range 130 {
		id := strings.Repeat("x", n)
		h := key.hash(id)
		if h != key.hashBytes([]byte(id)) {
			t.Fatalf("%d bytes: the hash of bytes is another", n)
		}
		if h == other.hash(id) && key.hash(id+"y") == other.hash(id+"y") {
			t.Fatalf("%d bytes: two keys give the same hash", n)
		}
		if h == key.hash(id+"\x00") || h == key.hash(id+"x") {
			t.Fatalf("%d bytes: the length does not count", n)
		}
		flipped := 0
		for i := range n {
			for bit := range 8 {
				b := []byte(id)
				b[i] ^= 1 << bit
				diff := h ^ key.hashBytes(b)
				if diff == 0 {
					t.Fatalf("%d bytes: bit %d of byte %d does not count", n, bit, i)
				}
				flipped += bits.OnesCount32(diff)
			}
		}
		if mean := float64(flipped) / float64(max(1, n*8)); n > 0 && (mean < 10 || mean > 22) {
			t.Errorf("%d bytes: a changed bit changes %.1f of 32 bits", n, mean)
		}
	}
}

// TestHashKeySpread: ids that differ little, as ids do, spread as evenly over 256
// buckets, by the lowest and by the highest bits, as at random.
func TestHashKeySpread(t *testing.T) {
	key := newHashKey()
	const n, buckets = 1 << 16, 256
	var low, high [buckets]float64
	id := []byte("player-00000000")
	for i := range n {
		for j, v := len(id)-1, i; j >= len(id)-8; j, v = j-1, v/10 {
			id[j] = byte('0' + v%10)
		}
		h := key.hashBytes(id)
		low[h%buckets]++
		high[h>>24]++
	}
	for name, counts := range map[string][buckets]float64{"lowest": low, "highest": high} {
		chi := 0.0
		for _, c := range counts {
			chi += (c - n/buckets) * (c - n/buckets) / (n / buckets)
		}
		if chi < 130 || chi > 420 { // 255 degrees of freedom: far beyond 1 in a million
			t.Errorf("%s bits: chi-square is %.0f", name, chi)
		}
	}
}
