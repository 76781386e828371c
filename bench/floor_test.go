package bench_test

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji/sampler"
)

// BenchmarkFloor is what no draw can do without, on this machine at this time: a lock, a choice
// among 1000 weights, a record of 96 bytes and its CRC32C. Compare the times of draws with it.
//
// Wide is the same for one of a million players with a request id to remember: a slot in a hash
// table that leads to the player's block of 128 bytes, a change to that block, a new slot in
// another table, and the 16 bytes of the id. It does not compare or count anything, check whether
// anything is full, or forget anything.
//
// Miss is one load of uncached memory that the next load waits for. Two machines that differ
// little in hot can differ by three times and more in it. A wide draw costs several of them,
// however few lines of code it has.
func BenchmarkFloor(top *testing.B) {
	top.Run("hot", func(b *testing.B) { floor(b, 0) })
	top.Run("wide", func(b *testing.B) { floor(b, size(1_000_000)) })
	top.Run("miss", miss)
}

// miss follows a random cycle through 256 MB of lines of 64 bytes.
func miss(b *testing.B) {
	lines := make([][8]uint64, size(256<<20/64))
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(lines))
	for i, at := range order {
		lines[at][0] = uint64(order[(i+1)%len(order)])
	}
	at := uint64(0)
	for b.Loop() {
		at = lines[at][0]
	}
	if at == uint64(len(lines)) {
		b.Log("the loads are used")
	}
}

func floor(b *testing.B, players int) {
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
	w := newWideFloor(players)
	for i := 0; b.Loop(); i++ {
		mu.Lock()
		if players > 0 {
			w.touch(uint64(i))
		}
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

// wideFloor is the memory that wide draws need.
type wideFloor struct {
	index  []uint32     // into blocks; half full
	blocks [][16]uint64 // 128 bytes each
	taken  []uint64     // by request ids
	kept   [][2]uint64  // the ids
}

func newWideFloor(players int) *wideFloor {
	w := &wideFloor{index: make([]uint32, 2*players), blocks: make([][16]uint64, players), taken: make([]uint64, 2*players), kept: make([][2]uint64, players)}
	at := rand.New(rand.NewPCG(1, 2)).Perm(players)
	for i := range w.index {
		w.index[i] = uint32(at[i/2])
	}
	return w
}

func (w *wideFloor) touch(i uint64) {
	hash := (i + 1) * 0x9E3779B97F4A7C15
	hash ^= hash >> 29
	block := &w.blocks[w.index[hash%uint64(len(w.index))]]
	block[0]++
	block[8+hash>>60%8]++
	w.taken[hash>>16%uint64(len(w.taken))] = hash
	w.kept[i%uint64(len(w.kept))] = [2]uint64{hash, i}
}
