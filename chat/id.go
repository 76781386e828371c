package chat

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/kuji-dev/kuji/internal/ulid"
)

// A request id is made of what never changes about a message and an action, each with its length before it:
//
//	SHA-256(platform, message id, trigger id, number of the action)
//
// It is written as Prefix and the first 20 bytes in hexadecimal digits, at most 64 bytes together. For a realm with
// ids that carry their time, it is a ULID: the milliseconds of Message.At, and the first 10 bytes.

// messageKey stands for a message: the same one has the same key.
type messageKey [16]byte

func keyOf(m *Message) (key messageKey) {
	var b [128]byte
	sum := sha256.Sum256(appendParts(b[:0], m.Platform, m.ID))
	copy(key[:], sum[:])
	return key
}

func appendParts(b []byte, parts ...string) []byte {
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

// requestID returns the id of the request that an action of a trigger makes of a message.
func (h *Handler) requestID(m *Message, trigger string, action int) string {
	var b [256]byte
	sum := sha256.Sum256(appendParts(b[:0], m.Platform, m.ID, trigger, strconv.Itoa(action)))
	if h.config.TimeOrdered {
		return ulid.Of(m.At, [10]byte(sum[:10]))
	}
	return string(hex.AppendEncode(append(b[:0], h.config.Prefix...), sum[:20]))
}

// Years that a ULID can say.
var (
	firstTime = time.UnixMilli(0)
	lastTime  = time.UnixMilli(1<<48 - 1)
)
