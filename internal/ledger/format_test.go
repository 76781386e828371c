package ledger

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/kuji-dev/kuji/internal/format"
)

// TestNewerEntry: an entry of a newer format is refused by name if it is whole. One whose version is
// damaged is damage.
func TestNewerEntry(t *testing.T) {
	entry := append(make([]byte, HeadSize("r")), "payload"...)
	putEnvelope(entry, &envelope{kind: KindBatch, realm: "r", epoch: 1, index: 1, batch: 1})
	entry[3] = '9'
	newer, ok := errors.AsType[*format.NewerError](second(openEnvelope(entry)))
	if !ok || newer.Got != 9 || newer.Known != 3 {
		t.Errorf("a newer entry: %v", newer)
	}
	entry[50] ^= 1
	if err := second(openEnvelope(entry)); err == nil {
		t.Error("damage passes for good")
	} else if _, ok := errors.AsType[*format.NewerError](err); ok {
		t.Errorf("damage passes for a newer entry: %v", err)
	}
	binary.LittleEndian.PutUint32(entry[4:], crc32.Checksum(entry[8:], castagnoli))
	if _, ok := errors.AsType[*format.NewerError](second(openEnvelope(entry))); !ok {
		t.Error("an entry with a good checksum is no newer one")
	}
}

func second(_ envelope, err error) error { return err }

// TestSealFrom6: a footer of version 6 is read: it does not say which rules decide the epoch.
func TestSealFrom6(t *testing.T) {
	s := Footer{At: At{chain: chain{realm: "r", index: 7, epoch: 3}, cursor: 9}, Values: 5, Last: 6, Rules: 4,
		Epochs: []Epoch{{First: 2, Number: 3, Revealed: true}}}
	for version, rules := range map[uint8]uint8{6: 0, 7: 4} {
		got, digest, err := decodeFooter(footerOf(version, s.append(nil, [32]byte{1}, version)), "r")
		if err != nil || got.Rules != rules || digest != [32]byte{1} || got.Values != 5 || got.Last != 6 || got.cursor != 9 || len(got.Epochs) != 1 || got.Epochs[0] != s.Epochs[0] {
			t.Errorf("version %d: %+v, %v", version, got, err)
		}
	}
	if _, _, err := decodeFooter(footerOf(6, s.append(nil, [32]byte{1}, 7)), "r"); err == nil {
		t.Error("a footer of version 7 passes for one of version 6")
	}
}
