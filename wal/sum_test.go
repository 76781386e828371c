package wal

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestCRC compares crcOf with hash/crc32: every length up to several rounds of
// the longest lanes, at every alignment.
func TestCRC(t *testing.T) {
	if got := crcOf([]byte("123456789")); got != 0xE3069283 {
		t.Fatalf("CRC32C of 123456789: got %#x, want 0xe3069283", got)
	}
	data := make([]byte, 9000)
	random := rand.NewChaCha8([32]byte{1})
	random.Read(data)
	for length := range len(data) - 64 {
		at := length % 64
		sameCRC(t, data[at:at+length])
	}
	clear(data)
	for length := range 600 { // a single bit, everywhere
		data[length] = 0x10
		sameCRC(t, data[:600])
		data[length] = 0
	}
}

func FuzzCRC(f *testing.F) {
	for _, length := range []int{0, 7, 95, 96, 127, 128, 4095, 4096, 4097, 8300} {
		f.Add(make([]byte, length))
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameCRC(t, data) })
}

func sameCRC(t *testing.T, data []byte) {
	t.Helper()
	if got, want := crcOf(data), crc32.Checksum(data, castagnoli); got != want {
		t.Fatalf("CRC32C of %d bytes: got %#x, want %#x", len(data), got, want)
	}
}

// BenchmarkCRC waits for each sum before the next, as an append does that takes
// a lock in between.
func BenchmarkCRC(b *testing.B) {
	for _, length := range []int{16, 64, 128, 256, 1024, 64 << 10} {
		data := make([]byte, length)
		for _, by := range []struct {
			name string
			sum  func([]byte) uint32
		}{
			{"wal", crcOf},
			{"std", func(p []byte) uint32 { return crc32.Update(0, castagnoli, p) }},
		} {
			b.Run(fmt.Sprintf("length=%d/by=%s", length, by.name), func(b *testing.B) {
				b.SetBytes(int64(length))
				for range b.N {
					data[0] = byte(by.sum(data))
				}
			})
		}
	}
}
