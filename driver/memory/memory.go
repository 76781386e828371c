// Package memory is the driver that writes nothing. What it is given is lost when it is closed.
//
// It is a log that is trimmed at once: only an entry that begins an epoch is kept, for its writer to
// read, until another entry follows. Files are kept, in memory.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/kuji-dev/kuji/driver"
)

// maxEntry is the largest entry, in bytes: that of package driver/disk.
const maxEntry = 64 << 20

// Driver keeps realms in memory. The zero value is ready.
type Driver struct {
	mu     sync.Mutex
	realms map[string]*Realm
	closed bool
}

var _ driver.Driver = (*Driver)(nil)

// Realms implements driver.Driver.
func (d *Driver) Realms(context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, driver.ErrClosed
	}
	return slices.Sorted(maps.Keys(d.realms)), nil
}

// Open implements driver.Driver. Each realm can be opened once.
func (d *Driver) Open(_ context.Context, realm string, o driver.Options) (driver.Realm, error) {
	if err := driver.CheckRealm(realm); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, driver.ErrClosed
	}
	if d.realms[realm] != nil {
		return nil, fmt.Errorf("realm %s was opened before, and keeps nothing: %w", realm, driver.ErrLocked)
	}
	if o.MustExist || o.ReadOnly || o.Check {
		return nil, fmt.Errorf("realm %s: %w", realm, driver.ErrNotExist)
	}
	if d.realms == nil {
		d.realms = map[string]*Realm{}
	}
	r := &Realm{changed: make(chan struct{})}
	d.realms[realm] = r
	return r, nil
}

// Close implements driver.Driver.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}

// Realm is a realm in memory.
type Realm struct {
	mu      sync.Mutex
	next    driver.Cursor // cursor of the last entry
	begin   []byte        // the last entry, if it began an epoch
	changed chan struct{} // closed and replaced at every begin, and closed for good by Close
	closed  bool
	files   map[string][]byte
}

var _ driver.Realm = (*Realm)(nil)

// open returns an error if the realm is closed. The caller holds mu.
func (r *Realm) open() error {
	if r.closed {
		return driver.ErrClosed
	}
	return nil
}

// asked returns an error if the realm is closed.
func (r *Realm) asked() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open()
}

// Append implements driver.Log.
func (r *Realm) Append(_ context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after != r.next && !r.closed {
		return 0, fmt.Errorf("append after %d refused: the log has come to %d: %w", after, r.next, driver.ErrDeposed)
	}
	return r.write(entry, nil)
}

// Begin implements driver.Log.
func (r *Realm) Begin(_ context.Context, entry []byte) (driver.Cursor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, err := r.write(entry, bytes.Clone(entry))
	if err == nil {
		close(r.changed)
		r.changed = make(chan struct{})
	}
	return at, err
}

// write appends an entry, of which it keeps what begins an epoch. The caller holds mu.
func (r *Realm) write(entry, begin []byte) (driver.Cursor, error) {
	if len(entry) > maxEntry {
		return 0, fmt.Errorf("entry of %d bytes: want at most %d", len(entry), maxEntry)
	}
	if err := r.open(); err != nil {
		return 0, err
	}
	r.next++
	r.begin = begin
	return r.next, nil
}

// Read implements driver.Log.
func (r *Realm) Read(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		for through == 0 || after < through {
			r.mu.Lock()
			first, begin, at, changed, closed := r.first(), r.begin, r.next, r.changed, r.closed
			r.mu.Unlock()
			switch {
			case closed:
				yield(driver.Entry{}, driver.ErrClosed)
				return
			case after+1 < first:
				yield(driver.Entry{}, &driver.TrimmedError{First: first})
				return
			case after < at:
				if !yield(driver.Entry{Cursor: at, Data: begin}, nil) {
					return
				}
				after = at
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(driver.Entry{}, ctx.Err())
				return
			}
		}
	}
}

// first returns the cursor of the oldest entry. The caller holds mu.
func (r *Realm) first() driver.Cursor {
	if r.begin != nil {
		return r.next
	}
	return r.next + 1
}

// Last implements driver.Log.
func (r *Realm) Last(context.Context) (driver.Cursor, error) { return r.Durable(), r.asked() }

// Sole implements driver.Sole.
func (r *Realm) Sole() {}

// First implements driver.Log.
func (r *Realm) First(context.Context) (driver.Cursor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first(), r.open()
}

// Sync implements driver.Log.
func (r *Realm) Sync(context.Context) error { return r.asked() }

// Durable implements driver.Log: nothing survives a crash, and nobody expects it to.
func (r *Realm) Durable() driver.Cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// MaxEntry implements driver.Log.
func (r *Realm) MaxEntry() int { return maxEntry }

// Trim implements driver.Log.
func (r *Realm) Trim(context.Context, driver.Cursor) error { return r.asked() }

// Close implements driver.Realm.
func (r *Realm) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		close(r.changed)
	}
	return nil
}

// Create implements driver.Files.
func (r *Realm) Create(context.Context) (driver.FileWriter, error) {
	if err := r.asked(); err != nil {
		return nil, err
	}
	return &writer{r: r}, nil
}

type writer struct {
	bytes.Buffer
	r    *Realm
	over bool // committed or aborted
}

func (w *writer) Commit(_ context.Context, name string) error {
	if err := driver.CheckFile(name); err != nil {
		return err
	}
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	if w.over || w.r.closed {
		return driver.ErrClosed
	}
	w.over = true
	if w.r.files == nil {
		w.r.files = map[string][]byte{}
	}
	w.r.files[name] = w.Bytes()
	return nil
}

func (w *writer) Abort() { w.over = true }

// OpenFile implements driver.Files.
func (r *Realm) OpenFile(_ context.Context, name string) (driver.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return nil, err
	}
	b, ok := r.files[name]
	if !ok {
		return nil, fmt.Errorf("file %s: %w", name, driver.ErrNotExist)
	}
	return file{bytes.NewReader(b)}, nil
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

// List implements driver.Files.
func (r *Realm) List(context.Context) ([]driver.FileInfo, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []driver.FileInfo
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		all = append(all, driver.FileInfo{Name: name, Size: int64(len(r.files[name]))})
	}
	return all, r.open()
}

// Remove implements driver.Files.
func (r *Realm) Remove(_ context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return err
	}
	delete(r.files, name)
	return nil
}
