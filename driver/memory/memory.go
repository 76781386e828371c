// Package memory is the driver that writes nothing to disk. A realm that is closed is lost.
//
// It trims the log at once. It keeps only an entry that begins an epoch, until the next entry,
// because its writer reads it. It keeps files in memory.
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
	realms map[string]*realm
	closed bool
}

var (
	_ driver.Driver   = (*Driver)(nil)
	_ driver.Volatile = (*Driver)(nil)
)

// Volatile implements driver.Volatile.
func (*Driver) Volatile() {}

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
func (d *Driver) Open(_ context.Context, name string, o driver.Options) (driver.Realm, error) {
	if err := driver.CheckRealm(name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, driver.ErrClosed
	}
	if d.realms[name] != nil {
		return nil, fmt.Errorf("realm %s was opened before, and keeps nothing: %w", name, driver.ErrLocked)
	}
	if o.MustExist || o.ReadOnly || o.Check {
		return nil, fmt.Errorf("realm %s: %w", name, driver.ErrNotExist)
	}
	if d.realms == nil {
		d.realms = map[string]*realm{}
	}
	r := &realm{changed: make(chan struct{}), files: map[string][]byte{}}
	d.realms[name] = r
	return r, nil
}

// Close implements driver.Driver.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}

// realm is a realm in memory.
type realm struct {
	mu      sync.Mutex
	last    driver.Cursor // of the last entry
	begin   []byte        // the last entry, if it began an epoch
	changed chan struct{} // each Begin closes and replaces it, and Close closes it
	closed  bool
	files   map[string][]byte
}

var _ driver.Realm = (*realm)(nil)

// locked calls f with the realm locked, unless the realm is closed.
func (r *realm) locked(f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return driver.ErrClosed
	}
	return f()
}

// asked returns an error if the realm is closed.
func (r *realm) asked() error { return r.locked(func() error { return nil }) }

func (r *realm) Append(_ context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after != r.last && !r.closed {
		return 0, fmt.Errorf("append after %d refused: the log ends at %d: %w", after, r.last, driver.ErrDeposed)
	}
	return r.write(entry, nil)
}

func (r *realm) Begin(_ context.Context, entry []byte) (driver.Cursor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, err := r.write(entry, bytes.Clone(entry))
	if err == nil {
		close(r.changed)
		r.changed = make(chan struct{})
	}
	return at, err
}

// write appends an entry. It keeps begin: the entry, if it begins an epoch. The caller holds mu.
func (r *realm) write(entry, begin []byte) (driver.Cursor, error) {
	if r.closed {
		return 0, driver.ErrClosed
	}
	if len(entry) > maxEntry {
		return 0, fmt.Errorf("entry of %d bytes: want at most %d", len(entry), maxEntry)
	}
	r.last++
	r.begin = begin
	return r.last, nil
}

func (r *realm) Read(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		for through == 0 || after < through {
			r.mu.Lock()
			first, begin, at, changed, closed := r.first(), r.begin, r.last, r.changed, r.closed
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
func (r *realm) first() driver.Cursor {
	if r.begin != nil {
		return r.last
	}
	return r.last + 1
}

func (r *realm) Last(context.Context) (driver.Cursor, error) { return r.Durable(), r.asked() }

func (r *realm) Sole() {}

func (r *realm) First(context.Context) (at driver.Cursor, err error) {
	err = r.locked(func() error {
		at = r.first()
		return nil
	})
	return at, err
}

func (r *realm) Sync(context.Context) error { return r.asked() }

// Durable implements driver.Log. Nothing survives a crash, and nobody expects it to.
func (r *realm) Durable() driver.Cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *realm) MaxEntry() int { return maxEntry }

func (r *realm) Trim(context.Context, driver.Cursor) error { return r.asked() }

func (r *realm) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		close(r.changed)
	}
	return nil
}

func (r *realm) Create(context.Context) (driver.FileWriter, error) {
	if err := r.asked(); err != nil {
		return nil, err
	}
	return &writer{r: r}, nil
}

type writer struct {
	bytes.Buffer
	r    *realm
	over bool // committed or aborted
}

func (w *writer) Commit(_ context.Context, name string) error {
	if err := driver.CheckFile(name); err != nil {
		return err
	}
	return w.r.locked(func() error {
		if w.over {
			return driver.ErrClosed
		}
		w.over = true
		w.r.files[name] = w.Bytes()
		return nil
	})
}

func (w *writer) Abort() { w.over = true }

func (r *realm) OpenFile(_ context.Context, name string) (opened driver.File, err error) {
	err = r.locked(func() error {
		b, ok := r.files[name]
		if !ok {
			return fmt.Errorf("file %s: %w", name, driver.ErrNotExist)
		}
		opened = file{bytes.NewReader(b)}
		return nil
	})
	return opened, err
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

func (r *realm) List(context.Context) (all []driver.FileInfo, err error) {
	err = r.locked(func() error {
		for _, name := range slices.Sorted(maps.Keys(r.files)) {
			all = append(all, driver.FileInfo{Name: name, Size: int64(len(r.files[name]))})
		}
		return nil
	})
	return all, err
}

func (r *realm) Remove(_ context.Context, name string) error {
	return r.locked(func() error {
		delete(r.files, name)
		return nil
	})
}
