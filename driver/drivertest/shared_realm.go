package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/step"
)

// handle is a realm that a node has open.
type handle struct {
	shared   *Shared
	node     int
	name     string
	realm    *realm
	readOnly bool
	max      int // the size of the largest entry

	// shared.mu guards these:
	closed  bool
	durable driver.Cursor // the last entry that this handle knows of
	calls   []*expected   // under way
}

// expected is a call under way.
type expected struct{ end func() }

var (
	_ driver.Shared = (*node)(nil)
	_ driver.Realm  = (*handle)(nil)
)

// errReadOnly is in the error of a write to a realm that was opened to be read.
var errReadOnly = errors.New("the realm is open for reading only")

// expect notes a call that Close has to end.
func (h *handle) expect(end func()) (forget func(), err error) {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	if h.closed {
		return nil, driver.ErrClosed
	}
	c := &expected{end: end}
	h.calls = append(h.calls, c)
	return func() {
		h.shared.mu.Lock()
		defer h.shared.mu.Unlock()
		h.calls = slices.DeleteFunc(h.calls, func(other *expected) bool { return other == c })
	}, nil
}

// Close implements [driver.Realm].
func (h *handle) Close() error {
	h.shared.mu.Lock()
	if h.closed {
		h.shared.mu.Unlock()
		return driver.ErrClosed
	}
	h.closed = true
	calls := h.calls
	h.shared.wake()
	h.shared.mu.Unlock()
	for _, c := range calls {
		c.end()
	}
	return nil
}

// Append implements [driver.Log].
func (h *handle) Append(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
	return h.append(ctx, &after, entry)
}

// Begin implements [driver.Log].
func (h *handle) Begin(ctx context.Context, entry []byte) (driver.Cursor, error) {
	return h.append(ctx, nil, entry)
}

func (h *handle) append(ctx context.Context, after *driver.Cursor, entry []byte) (driver.Cursor, error) {
	if h.readOnly {
		return 0, errReadOnly
	}
	if len(entry) > h.MaxEntry() {
		return 0, fmt.Errorf("entry of %d bytes: want at most %d", len(entry), h.MaxEntry())
	}
	data := bytes.Clone(entry) // the caller may change it, and the request may arrive later
	at, err := call(ctx, h, driver.ErrUnknown, func() (driver.Cursor, error) { return h.shared.append(h.realm, after, data) })
	if err == nil {
		h.saw(at)
	}
	return at, err
}

// saw notes that an entry is known to be durable.
func (h *handle) saw(at driver.Cursor) {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	h.durable = max(h.durable, at)
}

// Read implements [driver.Log].
func (h *handle) Read(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		for through == 0 || after < through {
			entries, wait, err := h.look(after)
			if err == nil && len(entries) == 0 {
				err = step.Wait(ctx, h.shared.steps, wait)
			} else if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(driver.Entry{}, err)
				return
			}
			for _, e := range entries {
				if err := ctx.Err(); err != nil {
					yield(driver.Entry{}, err)
					return
				}
				if through != 0 && e.Cursor > through {
					return
				}
				if e.damaged {
					yield(driver.Entry{}, &driver.CorruptError{Place: fmt.Sprintf("realm %q, entry at %d", h.name, e.Cursor), At: e.Cursor, Err: errors.New("a test damaged it")})
					return
				}
				h.saw(e.Cursor)
				if !yield(e.Entry, nil) {
					return
				}
				after = e.Cursor
			}
		}
	}
}

// maxLook bounds the entries that a reader takes at a time.
const maxLook = 16

// look returns entries behind a cursor, or what to wait for if there are none.
func (h *handle) look(after driver.Cursor) ([]entry, <-chan struct{}, error) {
	s := h.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case h.closed:
		return nil, nil, driver.ErrClosed
	case s.net.link(h.node).cut:
		return nil, s.grown, nil
	case after < h.realm.trimmed:
		return nil, nil, &driver.TrimmedError{First: h.realm.first()}
	case s.chance(s.o.Faults.Lag):
		later := make(chan struct{})
		step.Go(s.steps, func() { close(later) })
		return nil, later, nil
	}
	entries := h.realm.behind(after)
	return slices.Clone(entries[:min(len(entries), maxLook)]), s.grown, nil
}

// Last implements [driver.Log].
func (h *handle) Last(ctx context.Context) (driver.Cursor, error) {
	return call(ctx, h, driver.ErrUnavailable, func() (driver.Cursor, error) {
		if n := len(h.realm.entries); n > 0 && h.shared.chance(h.shared.o.Faults.Lag) {
			return h.realm.entries[h.shared.o.Rand.IntN(n)].Cursor, nil
		}
		return h.realm.last, nil
	})
}

// First implements [driver.Log].
func (h *handle) First(ctx context.Context) (driver.Cursor, error) {
	return call(ctx, h, driver.ErrUnavailable, func() (driver.Cursor, error) { return h.realm.first(), nil })
}

// Sync implements [driver.Log].
func (h *handle) Sync(ctx context.Context) error { return h.do(ctx, func() error { return nil }) }

// Durable implements [driver.Log].
func (h *handle) Durable() driver.Cursor {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	return h.durable
}

// MaxEntry implements [driver.Log].
func (h *handle) MaxEntry() int { return h.max }

// Trim implements [driver.Log].
func (h *handle) Trim(ctx context.Context, before driver.Cursor) error {
	return h.write(ctx, func() error {
		h.realm.trim(before)
		return nil
	})
}

// do is call for what has nothing to answer.
func (h *handle) do(ctx context.Context, op func() error) error {
	_, err := call(ctx, h, driver.ErrUnavailable, func() (struct{}, error) { return struct{}{}, op() })
	return err
}

// write is do for what changes the realm.
func (h *handle) write(ctx context.Context, op func() error) error {
	if h.readOnly {
		return errReadOnly
	}
	return h.do(ctx, op)
}

// Create implements [driver.Files].
func (h *handle) Create(ctx context.Context) (driver.FileWriter, error) {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	switch {
	case h.closed:
		return nil, driver.ErrClosed
	case h.readOnly:
		return nil, errReadOnly
	}
	return &fileWriter{handle: h}, ctx.Err()
}

// fileWriter implements [driver.FileWriter].
type fileWriter struct {
	handle *handle
	data   []byte
	over   bool // committed or aborted
}

func (w *fileWriter) Write(p []byte) (int, error) {
	if w.over {
		return 0, driver.ErrClosed
	}
	w.data = append(w.data, p...)
	return len(p), nil
}

func (w *fileWriter) Commit(ctx context.Context, name string) error {
	if w.over {
		return driver.ErrClosed
	}
	if err := driver.CheckFile(name); err != nil {
		return err
	}
	w.over = true
	h, data := w.handle, w.data
	return h.write(ctx, func() error {
		if _, there := h.realm.files[name]; there {
			return nil
		}
		if h.shared.full {
			return driver.ErrFull
		}
		h.realm.files[name] = data
		return nil
	})
}

func (w *fileWriter) Abort() { w.over, w.data = true, nil }

// OpenFile implements [driver.Files].
func (h *handle) OpenFile(ctx context.Context, name string) (driver.File, error) {
	return call(ctx, h, driver.ErrUnavailable, func() (driver.File, error) {
		data, there := h.realm.files[name]
		if !there {
			return nil, fmt.Errorf("file %q %w", name, driver.ErrNotExist)
		}
		return file{bytes.NewReader(data)}, nil
	})
}

// file implements [driver.File].
type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

// List implements [driver.Files].
func (h *handle) List(ctx context.Context) ([]driver.FileInfo, error) {
	return call(ctx, h, driver.ErrUnavailable, func() ([]driver.FileInfo, error) {
		var list []driver.FileInfo
		for name, data := range h.realm.files {
			list = append(list, driver.FileInfo{Name: name, Size: int64(len(data))})
		}
		slices.SortFunc(list, func(a, b driver.FileInfo) int { return strings.Compare(a.Name, b.Name) })
		return list, nil
	})
}

// Remove implements [driver.Files].
func (h *handle) Remove(ctx context.Context, name string) error {
	return h.write(ctx, func() error {
		delete(h.realm.files, name)
		return nil
	})
}
