// Package ulid makes request ids that carry their time. What an id means is decided elsewhere.
package ulid

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// New returns a new ULID: 26 characters of 48 bits of Unix milliseconds and 80 random bits. now must lie
// between the years 1970 and 10889.
func New(now time.Time) string {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails: without entropy the process ends
	return Of(now, random)
}

// Of returns the ULID of a time and 80 bits.
func Of(at time.Time, rest [10]byte) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // Crockford's base 32
	var id [26]byte
	put := func(at []byte, v uint64) {
		for i := len(at) - 1; i >= 0; i-- {
			at[i] = digits[v&31]
			v >>= 5
		}
	}
	put(id[:10], uint64(at.UnixMilli()))
	put(id[10:18], binary.BigEndian.Uint64(append(make([]byte, 3), rest[:5]...)))
	put(id[18:], binary.BigEndian.Uint64(append(make([]byte, 3), rest[5:]...)))
	return string(id[:])
}
