package kuji

import (
	"time"

	"github.com/kuji-dev/kuji/internal/ulid"
)

// NewID returns a new request id that carries a time: a ULID, 26 characters of 48 bits of Unix
// milliseconds and 80 random bits. A realm whose catalog says "ids: time-ordered" takes such ids,
// or UUIDv7, and no others. Make an id once for each thing that shall happen, and keep it until
// there is an answer: a retry must carry the same id. now should be the current time; it must lie
// between the years 1970 and 10889.
func NewID(now time.Time) string { return ulid.New(now) }
