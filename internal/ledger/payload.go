package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/kuji-dev/kuji/driver"
)

// A payload that is too large for an entry of the log goes into a file first. The entry has a reference:
// the payload's length, 8 bytes, and its SHA-256. The file is named by the entry's position, to be trimmed
// with it:
//
//	00000000000000012345-<SHA-256, in hexadecimal>.payload
const (
	payloadSuffix = ".payload"
	referenceLen  = 8 + 32
)

func payloadName(position uint64, sum [32]byte) string {
	return fmt.Sprintf("%020d-%x%s", position, sum, payloadSuffix)
}

func payloadPosition(name string) (position uint64, ok bool) {
	var sum []byte
	_, err := fmt.Sscanf(name, "%020d-%x"+payloadSuffix, &position, &sum)
	return position, err == nil && len(sum) == 32 && name == payloadName(position, [32]byte(sum))
}

func IsPayload(name string) bool {
	_, ok := payloadPosition(name)
	return ok
}

// PayloadOf returns the name of the file with an entry's payload, if any. A void entry's may be missing.
func PayloadOf(entry []byte) (name string, ok bool) {
	e, err := openEnvelope(entry)
	if err != nil || !e.outside || len(e.payload) != referenceLen {
		return "", false
	}
	return payloadName(e.index, [32]byte(e.payload[8:])), true
}

// putOutside writes a batch's payload into a file, even after GiveUp, and returns an entry for it.
func (l *Ledger) putOutside(entry []byte) ([]byte, error) {
	ctx := context.Background()
	head := HeadSize(l.o.Realm)
	payload := entry[head:]
	sum := sha256.Sum256(payload)
	w, err := l.o.Log.Create(ctx)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	if _, err := w.Write(payload); err != nil {
		return nil, err
	}
	if err := w.Commit(ctx, payloadName(l.chain.index+1, sum)); err != nil {
		return nil, err
	}
	small := make([]byte, head, head+referenceLen)
	small = binary.LittleEndian.AppendUint64(small, uint64(len(payload)))
	return append(small, sum[:]...), nil
}

// outsideError is an error of reading a payload's file, which is no damage of the entry.
type outsideError struct{ err error }

func (e *outsideError) Error() string { return "payload: " + e.err.Error() }
func (e *outsideError) Unwrap() error { return e.err }

// fetch reads the payload of an entry that has only the reference to it.
func (e *Entry) fetch(ctx context.Context, files driver.Files) (err error) {
	if !e.outside {
		return nil
	}
	if len(e.payload) != referenceLen || e.kind != KindBatch {
		return fmt.Errorf("reference of %d bytes in an entry of kind %v, want %d bytes in a batch", len(e.payload), e.kind, referenceLen)
	}
	size, sum := binary.LittleEndian.Uint64(e.payload), [32]byte(e.payload[8:])
	file, err := files.OpenFile(ctx, payloadName(e.Position, sum))
	if errors.Is(err, driver.ErrNotExist) {
		return fmt.Errorf("its payload %s is missing: %w", hex.EncodeToString(sum[:]), err)
	}
	if err != nil {
		return &outsideError{err}
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if size > maxPayload || uint64(file.Size()) != size {
		return fmt.Errorf("its payload's file has %d bytes, want %d", file.Size(), size)
	}
	payload := make([]byte, size)
	if _, err := file.ReadAt(payload, 0); err != nil {
		return &outsideError{err}
	}
	if got := sha256.Sum256(payload); got != sum {
		return fmt.Errorf("its payload's file has hash %x, want %x", got[:8], sum[:8])
	}
	e.payload = payload
	return nil
}

const maxPayload = 256 << 20 // bytes, more than any batch can have

// trimPayloads removes the payload files of entries up to a position that every reader starts after.
func (s *Snapshots) trimPayloads(ctx context.Context, through uint64) error {
	files, err := s.log.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		if position, ok := payloadPosition(f.Name); ok && position <= through {
			errs = append(errs, s.log.Remove(ctx, f.Name))
		}
	}
	return errors.Join(errs...)
}
