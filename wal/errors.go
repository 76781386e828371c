package wal

import (
	"errors"
	"fmt"
)

// The errors of this package, to be matched with errors.Is. Every returned error wraps one of them,
// or is an error of the file system or of a context.
var (
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("wal: log is closed")
	// ErrTooLarge: a record or a batch is over MaxRecord or MaxBatch.
	ErrTooLarge = errors.New("wal: too large")
	// ErrTrimmed: the offset is below First; its record was dropped.
	ErrTrimmed = errors.New("wal: record was trimmed")
	// ErrNotFound: the offset is at or beyond Next; no record has it yet.
	ErrNotFound = errors.New("wal: no such record")
	// ErrLocked: somebody else, in this process or another, has the log open.
	ErrLocked = errors.New("wal: log is in use by another opener")
	// ErrReadOnly: the log was opened read-only, or this process cannot write to its directory.
	ErrReadOnly = errors.New("wal: read-only")
	// ErrFailed: an earlier write or fsync failed, and the log accepts nothing more. Only reopening
	// tells which records above Durable survived.
	ErrFailed = errors.New("wal: log has failed and must be reopened")
	// ErrCorrupt: stored data is damaged. Always a *CorruptionError.
	ErrCorrupt = errors.New("wal: corrupt")
	// ErrOptions: an option is outside its limits.
	ErrOptions = errors.New("wal: invalid options")
)

// wrap says where an error of the file system comes from.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("wal: %w", err)
}

// CorruptionError says which byte of which file is damaged. It matches ErrCorrupt.
type CorruptionError struct {
	// File is the path of the damaged segment.
	File string
	// Pos is the position in the file, in bytes, of the damaged structure.
	Pos int64
	// Offset is the offset of the first record that the damage touches. It is above MaxOffset if
	// the damage touches no record.
	Offset uint64
	// What names the structure and what is wrong with it.
	What string
	// Got and Want are the value found and the value expected. They are equal if What says it all.
	Got, Want uint64
	// Bits: Got and Want are patterns of bits, such as checksums, not numbers.
	Bits bool
}

// Error names the file, the byte, the record and both values, if there are any. Patterns of bits
// are in hexadecimal, numbers in decimal.
func (e *CorruptionError) Error() string {
	where := fmt.Sprintf("wal: corrupt: %s at byte %d (record %d): %s", e.File, e.Pos, e.Offset, e.What)
	switch {
	case e.Offset > MaxOffset:
		return fmt.Sprintf("wal: corrupt: %s: %s", e.File, e.What)
	case e.Got == e.Want:
		return where
	case e.Bits:
		return fmt.Sprintf("%s: got %#x, want %#x", where, e.Got, e.Want)
	}
	return fmt.Sprintf("%s: got %d, want %d", where, e.Got, e.Want)
}

// Is reports whether target is ErrCorrupt.
func (e *CorruptionError) Is(target error) bool { return target == ErrCorrupt }
