// Package driver is the contract between Kuji and what keeps its realms: a directory, memory, or a
// replicated log. A driver keeps a log for each realm, which is the truth, and files: snapshots,
// and whatever is too large for an entry of the log. Package drivertest checks drivers.
//
// A driver orders entries and keeps them. It need not keep other writers away: every entry carries
// its writer's epoch and the hash of the entry before it, and every reader folds the log by the
// same rule. Entries that are doubled, late or of a deposed writer do no harm. Refusing them saves
// work.
package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Cursor is the place of an entry in a log. Cursors ascend from entry to entry, with gaps. They
// mean nothing else. 0 is the place before the first entry.
type Cursor uint64

// Entry is one entry of a log. Its data is never changed or reused.
type Entry struct {
	Cursor Cursor
	Data   []byte
}

var (
	// ErrDeposed is in the error of an append that was refused because other entries stand in its
	// place, perhaps copies of this entry from an earlier attempt.
	ErrDeposed = errors.New("another entry stands there")
	// ErrUnknown is in the error of an append that may have happened or may yet happen: after a
	// time-out, a lost connection, or a change of the log's own leader.
	ErrUnknown = errors.New("nobody knows whether the entry was appended")
	// ErrClosed is in the error of every call after Close.
	ErrClosed = errors.New("closed")
	// ErrLocked is in the error of Open if another process has the realm open, and only one may.
	ErrLocked = errors.New("in use by another process")
	// ErrNotExist is in the error of a realm or a file that is not there.
	ErrNotExist = errors.New("does not exist")
	// ErrFull is in the error of a call that needs more room than there is.
	ErrFull = errors.New("there is no room left")
	// ErrUnavailable is in the error of an Open or a read that fails for now and has changed nothing:
	// there is no descriptor or no connection, for example. What is kept may be sound.
	ErrUnavailable = errors.New("not available now")
)

// TrimmedError is the error of a read of trimmed entries.
type TrimmedError struct {
	First Cursor // of the oldest entry that is kept, or of the next entry if none is
}

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("the log begins at %d: what came before was trimmed", e.First)
}

// CorruptError is the error of an Open or a read that meets damage. A read never skips damage.
type CorruptError struct {
	Place string // what is damaged, and where
	At    Cursor // of the first damaged entry; 0: there is none, or nobody knows
	Err   error
}

func (e *CorruptError) Error() string { return e.Place + ": " + e.Err.Error() }
func (e *CorruptError) Unwrap() error { return e.Err }

// Driver keeps realms. All methods may be called concurrently.
type Driver interface {
	// Realms returns the names of the realms that exist, ascending.
	Realms(ctx context.Context) ([]string, error)

	// Open opens a realm. Its name is 1 to 64 of a-z, 0-9, '-' and '_', first a letter or digit.
	Open(ctx context.Context, realm string, o Options) (Realm, error)

	// Close closes the driver. Its realms must be closed.
	Close() error
}

// Deleter is a Driver that can delete a realm, which must be closed: its log and all of its files, whole or, after a
// crash, not at all. ErrNotExist: there is no such realm.
type Deleter interface {
	Delete(ctx context.Context, realm string) error
}

// Options say how a realm is opened.
type Options struct {
	MustExist bool // fail with ErrNotExist instead of creating the realm
	ReadOnly  bool // change nothing, not even to repair the end of the log; implies MustExist
	// Check looks at every byte that is kept, for offline verification. It implies ReadOnly. Open then
	// succeeds despite damage if anything can be read. Read ends at the damage, or after the last
	// entry if no entry is damaged.
	Check bool
}

// Realm is what a driver keeps of one realm. All methods may be called concurrently. A writer
// appends one entry at a time, but writers may race, even on one Realm: of two appends after the
// same cursor, a log that can refuse an entry refuses one.
type Realm interface {
	Log
	Files

	// Close releases everything. Appends and reads under way end with ErrClosed, or with their outcome.
	Close() error
}

// Log is a realm's log: entries in one order, which is the same for every reader and never changes.
type Log interface {
	// Append appends an entry after the cursor of what the caller believes to be the last one. It
	// returns the entry's cursor once it is as durable as the driver's policy says. Nothing stands
	// between these cursors then but copies of the entry.
	//
	// ErrDeposed: other entries stand there, and Read finds them. This call has not appended the
	// entry, or, if the log cannot refuse one, the entry stands after those others. To learn which,
	// the caller reads on from the cursor and folds what it finds.
	//
	// ErrUnknown: the entry may be in the log, or may get there later, perhaps twice. The caller
	// sends the same bytes after the same cursor until it gets another answer, or reads on until it
	// sees which entry comes next. That a read finds nothing proves nothing.
	//
	// After any other error, nothing was appended and nothing will be: the writer must give up.
	Append(ctx context.Context, after Cursor, entry []byte) (Cursor, error)

	// Begin is Append without a condition: the entry goes to the log's end. It never returns
	// ErrDeposed. An entry that is sent again after ErrUnknown may be there twice.
	Begin(ctx context.Context, entry []byte) (Cursor, error)

	// Read iterates over the entries after a cursor, in order, up to the one at through, and waits
	// for those to come. It yields what is durable by the driver's policy. If through is 0, it goes
	// on until ctx ends, and yields only what survives a crash under any policy: of a shared log,
	// what a majority has. It ends after the first error, such as *TrimmedError,
	// *CorruptError or that of ctx, which it checks before each entry.
	//
	// A slow reader delays no writer. A reader misses no entry when the log changes its leader.
	Read(ctx context.Context, after, through Cursor) iter.Seq2[Entry, error]

	// Last returns the cursor of the last entry, or 0 if the log never had one. A replicated log's
	// answer may be old. A writer that must know begins an epoch and reads through its own entry.
	Last(ctx context.Context) (Cursor, error)

	// First returns the cursor of the oldest entry kept, or of the next if none is, or a lower one.
	First(ctx context.Context) (Cursor, error)

	// Sync makes every entry that was appended durable, whatever the policy is.
	Sync(ctx context.Context) error

	// Durable returns the cursor of the last entry that is known to survive a crash.
	Durable() Cursor

	// MaxEntry returns how large an entry may be, in bytes: at least 64 KiB. A larger payload goes
	// into a file, and the entry names it.
	MaxEntry() int

	// Trim drops entries before a cursor, but may keep some. The caller has read back a snapshot that
	// covers them.
	Trim(ctx context.Context, before Cursor) error
}

// Sole is a Log whose realm only one process at a time has open. Last is then never old.
type Sole interface{ Sole() }

// Sized is a Log that knows how many bytes it takes where it is kept, at once.
type Sized interface{ Size() int64 }

// Files are a realm's files. A file is written once and never changed. Its name has the SHA-256 of
// its content, so two writers of one name write the same bytes.
type Files interface {
	// Create begins a file. Until it is committed, it has no name and nobody can see it.
	Create(ctx context.Context) (FileWriter, error)

	// OpenFile opens a file. ErrNotExist: there is none with this name.
	OpenFile(ctx context.Context, name string) (File, error)

	// List returns the files, ascending by name.
	List(ctx context.Context) ([]FileInfo, error)

	// Remove removes a file. A missing file is no error. Readers that have it open go on or get an
	// error, but never see other bytes.
	Remove(ctx context.Context, name string) error
}

// FileWriter writes a file. Its methods must not be called concurrently.
type FileWriter interface {
	io.Writer

	// Commit makes the file durable and gives it a name: 1 to 128 of a-z, 0-9, '-', '_' and '.'
	// that does not start with '.'. A file of that name that is there already holds the same bytes.
	// After an error, the file may be there or not.
	Commit(ctx context.Context, name string) error

	// Abort drops the file. After Commit it does nothing.
	Abort()
}

// File reads a file. Its methods may be called concurrently.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// CacheDropper is a File that can make the next reads come from where the file is kept, and not
// from a cache. An error says that what is kept cannot be trusted.
type CacheDropper interface {
	DropCache() error
}

// FileInfo describes a file.
type FileInfo struct {
	Name string
	Size int64 // in bytes
}
