package bench_test

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji/sampler"
)

// BenchmarkFloor is what no draw can do without, on this machine at this hour:
// a lock, a choice among 1000 weights, 96 bytes of record and their CRC32C. The
// times of draws mean something beside it only.
func BenchmarkFloor(b *testing.B) {
	weights := make([]uint64, 1000)
	for i := range weights {
		weights[i] = uint64(1 + i%100)
	}
	s, err := sampler.New(weights)
	must(b, err)
	src := rand.NewChaCha8([32]byte{})
	table := crc32.MakeTable(crc32.Castagnoli)
	var mu sync.Mutex
	buf := make([]byte, 0, 64<<10)
	sum := uint32(0)
	for i := 0; b.Loop(); i++ {
		mu.Lock()
		n, _ := s.Draw(src)
		if len(buf)+96 > cap(buf) {
			buf = buf[:0]
		}
		at := len(buf)
		buf = buf[:at+96]
		for j := 0; j < 96; j += 8 {
			binary.LittleEndian.PutUint64(buf[at+j:], uint64(n+i+j))
		}
		sum ^= crc32.Checksum(buf[at:], table)
		mu.Unlock()
	}
	if sum == 1 {
		b.Log("the sums are used")
	}
}
