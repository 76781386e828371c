package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/kuji-dev/kuji/internal/format"
)

// Every entry of a realm's log is an envelope and a payload. All integers are little-endian
// (docs/internals/formats/event.md):
//
//	 0  magic    "KJE3"
//	 4  crc      CRC32C of the rest of the entry
//	 8  kind     see Kind
//	 9  realm    length of the realm's name, 1 to 64
//	10  outside  1 if the payload is in a file, and the entry has only the reference to it; else 0
//	11  zero
//	12  payload  length in bytes
//	16  epoch    writer epoch
//	24  writer   16 random bytes, the writer's id
//	40  index    position of this entry; of an epoch-begin a hint, like prev
//	48  batch    batch id, counted by the writer from 1
//	56  prev     the chain's hash after the previous entry that counts; zeros for the first
//	88  name     the realm's name, then the payload
const (
	envelopeLen  = 88
	maxRealmName = 64
)

var envelopeMagic = [4]byte{'K', 'J', 'E', '3'}

// Kind says what an entry is. The numbers are part of the format.
type Kind uint8

const (
	KindEpochBegin Kind = 1
	KindBatch      Kind = 2
	KindEpochEnd   Kind = 3 // reveals the current epoch's seed and ends the epoch
	KindReveal     Kind = 4 // reveals the seed of an older epoch, which ended in a crash
)

func (k Kind) String() string {
	if k < KindEpochBegin || k > KindReveal {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return [...]string{KindEpochBegin: "epoch-begin", KindBatch: "batch", KindEpochEnd: "epoch-end", KindReveal: "reveal"}[k]
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// envelope is the decoded head of an entry.
type envelope struct {
	kind    Kind
	realm   string
	epoch   uint64
	writer  [16]byte
	index   uint64
	batch   uint64
	outside bool
	prev    [32]byte
	payload []byte // aliases the entry
}

// HeadSize returns the number of bytes in front of an entry's payload.
func HeadSize(realm string) int { return envelopeLen + len(realm) }

// putEnvelope fills in the head of entry and its checksum. The payload is in place after HeadSize(realm).
func putEnvelope(entry []byte, e *envelope) {
	copy(entry, envelopeMagic[:])
	entry[8], entry[9], entry[10], entry[11] = byte(e.kind), byte(len(e.realm)), 0, 0
	if e.outside {
		entry[10] = 1
	}
	binary.LittleEndian.PutUint32(entry[12:], uint32(len(entry)-HeadSize(e.realm)))
	binary.LittleEndian.PutUint64(entry[16:], e.epoch)
	copy(entry[24:40], e.writer[:])
	binary.LittleEndian.PutUint64(entry[40:], e.index)
	binary.LittleEndian.PutUint64(entry[48:], e.batch)
	copy(entry[56:88], e.prev[:])
	copy(entry[envelopeLen:], e.realm)
	binary.LittleEndian.PutUint32(entry[4:], crc32.Checksum(entry[8:], castagnoli))
}

// openEnvelope decodes an entry and checks all that can be checked without knowing what stands before it.
func openEnvelope(entry []byte) (envelope, error) {
	var e envelope
	if len(entry) > 8 && bytes.Equal(entry[:3], envelopeMagic[:3]) && entry[3] > envelopeMagic[3] && entry[3] <= '9' &&
		crc32.Checksum(entry[8:], castagnoli) == binary.LittleEndian.Uint32(entry[4:]) { // otherwise it is damage
		return e, &format.NewerError{What: "entry of the log", Got: uint64(entry[3] - '0'), Known: uint64(envelopeMagic[3] - '0')}
	}
	if len(entry) < envelopeLen || !bytes.Equal(entry[:4], envelopeMagic[:]) {
		return e, fmt.Errorf("not an entry of Kuji: %d bytes starting with %x, want at least %d starting with %x",
			len(entry), entry[:min(4, len(entry))], envelopeLen, envelopeMagic)
	}
	if got, want := crc32.Checksum(entry[8:], castagnoli), binary.LittleEndian.Uint32(entry[4:]); got != want {
		return e, fmt.Errorf("checksum %08x, the entry says %08x", got, want)
	}
	name, payload := int(entry[9]), int64(binary.LittleEndian.Uint32(entry[12:]))
	if name < 1 || name > maxRealmName || int64(envelopeLen+name)+payload != int64(len(entry)) {
		return e, fmt.Errorf("lengths do not add up: realm name %d, payload %d, entry %d bytes", name, payload, len(entry))
	}
	e.kind = Kind(entry[8])
	if e.kind < KindEpochBegin || e.kind > KindReveal || entry[10] > 1 || entry[11] != 0 { // a newer Kuji says its format level before
		return e, fmt.Errorf("unknown kind of entry %d, with flags %d and %d", entry[8], entry[10], entry[11])
	}
	e.outside = entry[10] == 1
	e.realm = string(entry[envelopeLen : envelopeLen+name])
	e.epoch = binary.LittleEndian.Uint64(entry[16:])
	e.writer = [16]byte(entry[24:40])
	e.index = binary.LittleEndian.Uint64(entry[40:])
	e.batch = binary.LittleEndian.Uint64(entry[48:])
	e.prev = [32]byte(entry[56:88])
	e.payload = entry[envelopeLen+name:]
	return e, nil
}

// chain is how far a reader has folded a realm's log. Every reader folds by the same rule, so all agree on
// which entries count, despite duplicates, late retries and deposed writers:
//
//	an epoch-begin counts if its epoch is higher than the current one, wherever it stands
//	any other entry counts if its epoch and writer are the current ones and its index is the next
//	everything else is void, for every reader and at all times
//	an entry that counts but does not continue the chain of hashes stops the reader: that is
//	    corruption or tampering, never something to skip
//
// The writer of an epoch-begin does not know what will stand before it, so its index and hash are those of
// the chain that it had seen: not ahead of what a reader finds, nor different at the same place. The chain
// goes on from both: from what stands before the epoch-begin, and from itself.
type chain struct {
	realm  string
	epoch  uint64
	writer [16]byte
	index  uint64   // of the last entry that counts: its position
	hash   [32]byte // that the next entry must have
	entry  [32]byte // SHA-256 of the last entry that counts
	ended  bool     // the current epoch has ended: no more entries can count in it
	ahead  uint64   // the highest index of a void entry of the current epoch and writer
}

// next folds one entry into the chain and reports whether it counts.
func (c *chain) next(entry []byte) (e envelope, counts bool, err error) {
	e, err = openEnvelope(entry)
	if err != nil {
		return e, false, err
	}
	if e.realm != c.realm {
		return e, false, fmt.Errorf("the entry belongs to realm %q, the log to %q", e.realm, c.realm)
	}
	if e.kind == KindEpochBegin {
		counts = e.epoch > c.epoch
	} else {
		counts = e.epoch == c.epoch && e.writer == c.writer && e.index == c.index+1 && !c.ended
	}
	if !counts {
		if e.kind != KindEpochBegin && e.epoch == c.epoch && e.writer == c.writer {
			c.ahead = max(c.ahead, e.index)
		}
		return e, false, nil
	}
	if e.kind == KindEpochBegin {
		if err := c.complete(); err != nil {
			return e, false, err
		}
		if e.index > c.index+1 {
			return e, false, fmt.Errorf("the chain is broken: the writer of epoch %d had seen position %d, but entry %d is missing", e.epoch, e.index-1, c.index+1)
		}
	}
	if e.index == c.index+1 && e.prev != c.hash {
		return e, false, fmt.Errorf("the chain is broken: entry %d follows an entry with hash %x, but the one before it has %x", e.index, e.prev[:8], c.hash[:8])
	}
	c.advance(&e, sha256.Sum256(entry))
	return e, true, nil
}

// complete reports, at an epoch's end, a missing entry: writers append one after the one before is there.
func (c *chain) complete() error {
	if c.ahead <= c.index {
		return nil
	}
	return fmt.Errorf("the chain is broken: epoch %d goes on to index %d, but entry %d is missing or out of place", c.epoch, c.ahead, c.index+1)
}

// advance moves the chain past an entry that counts, with its SHA-256.
func (c *chain) advance(e *envelope, entry [32]byte) {
	c.epoch, c.writer, c.entry = e.epoch, e.writer, entry
	c.index++
	c.ended = e.kind == KindEpochEnd
	if e.kind == KindEpochBegin {
		c.ahead = 0
		entry = sha256.Sum256(append(c.hash[:], entry[:]...))
	}
	c.hash = entry
}
