package kuji

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// NewID returns a new request id that carries a time: a ULID, 26 characters of 48 bits of Unix
// milliseconds and 80 random bits. A realm whose catalog says "ids: time-ordered" takes such ids,
// or UUIDv7, and no others. Make an id once for each thing that shall happen, and keep it until
// there is an answer: a retry must carry the same id. now should be the current time; it must lie
// between the years 1970 and 10889.
func NewID(now time.Time) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // Crockford's base 32
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails: without entropy the process ends
	var id [26]byte
	put := func(at []byte, v uint64) {
		for i := len(at) - 1; i >= 0; i-- {
			at[i] = digits[v&31]
			v >>= 5
		}
	}
	put(id[:10], uint64(now.UnixMilli()))
	put(id[10:18], binary.BigEndian.Uint64(append(make([]byte, 3), random[:5]...)))
	put(id[18:], binary.BigEndian.Uint64(append(make([]byte, 3), random[5:]...)))
	return string(id[:])
}
