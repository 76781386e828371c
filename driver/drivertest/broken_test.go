package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/driver"
)

// tweak is a realm of which some methods are replaced.
type tweak struct {
	driver.Realm
	shared *Shared
	append func(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error)
	begin  func(ctx context.Context, entry []byte) (driver.Cursor, error)
	read   func(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error]
	last   func(ctx context.Context) (driver.Cursor, error)
	first  func(ctx context.Context) (driver.Cursor, error)
	sync   func(ctx context.Context) error
	trim   func(ctx context.Context, before driver.Cursor) error
	create func(ctx context.Context) (driver.FileWriter, error)
	open   func(ctx context.Context, name string) (driver.File, error)
	list   func(ctx context.Context) ([]driver.FileInfo, error)
	remove func(ctx context.Context, name string) error
	close  func() error
	max    int
}

func newTweak(r driver.Realm, s *Shared) *tweak {
	return &tweak{Realm: r, shared: s, append: r.Append, begin: r.Begin, read: r.Read, last: r.Last, first: r.First, sync: r.Sync,
		trim: r.Trim, create: r.Create, open: r.OpenFile, list: r.List, remove: r.Remove,
		close: r.Close, max: r.MaxEntry()}
}

func (t *tweak) Append(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
	return t.append(ctx, after, entry)
}
func (t *tweak) Begin(ctx context.Context, entry []byte) (driver.Cursor, error) {
	return t.begin(ctx, entry)
}
func (t *tweak) Read(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
	return t.read(ctx, after, through)
}
func (t *tweak) Last(ctx context.Context) (driver.Cursor, error)             { return t.last(ctx) }
func (t *tweak) First(ctx context.Context) (driver.Cursor, error)            { return t.first(ctx) }
func (t *tweak) Sync(ctx context.Context) error                              { return t.sync(ctx) }
func (t *tweak) MaxEntry() int                                               { return t.max }
func (t *tweak) Trim(ctx context.Context, before driver.Cursor) error        { return t.trim(ctx, before) }
func (t *tweak) Create(ctx context.Context) (driver.FileWriter, error)       { return t.create(ctx) }
func (t *tweak) OpenFile(ctx context.Context, n string) (driver.File, error) { return t.open(ctx, n) }
func (t *tweak) List(ctx context.Context) ([]driver.FileInfo, error)         { return t.list(ctx) }
func (t *tweak) Remove(ctx context.Context, name string) error               { return t.remove(ctx, name) }
func (t *tweak) Close() error                                                { return t.close() }

// map1 replaces the entries that a reader gets.
func (t *tweak) map1(f func(i int, e driver.Entry) (driver.Entry, bool)) {
	read := t.read
	t.read = func(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
		return func(yield func(driver.Entry, error) bool) {
			i := 0
			for e, err := range read(ctx, after, through) {
				keep := true
				if err == nil {
					e, keep = f(i, e)
					i++
				}
				if keep && !yield(e, err) {
					return
				}
			}
		}
	}
}

// brokenDriver is a driver whose realms are broken in one way.
type brokenDriver struct {
	driver.Shared
	shared *Shared
	realm  func(*tweak)
	update func(d *brokenDriver, ctx context.Context, change change) error
	nudge  func(d *brokenDriver, at driver.Cursor)
	kept   []byte        // of the board
	nudged driver.Cursor // what to believe of a nudge
	tell   func(realm string, at driver.Cursor)
	mute   bool // it tells nobody
	open   func(d driver.Driver, ctx context.Context, name string, o driver.Options) (driver.Realm, error)
	realms func(d driver.Driver, ctx context.Context) ([]string, error)
}

func (d *brokenDriver) Open(ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
	open := d.Shared.Open
	if d.open != nil {
		open = func(ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
			return d.open(d.Shared, ctx, name, o)
		}
	}
	r, err := open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	t := newTweak(r, d.shared)
	d.tells(t, name)
	if d.realm != nil {
		d.realm(t)
	}
	return t, nil
}

func (d *brokenDriver) Realms(ctx context.Context) ([]string, error) {
	if d.realms != nil {
		return d.realms(d.Shared, ctx)
	}
	return d.Shared.Realms(ctx)
}

// replace returns err with one of the contract's errors replaced by another.
func replace(err, from, to error) error {
	if errors.Is(err, from) {
		return to
	}
	return err
}

// patch is a file writer of which some methods are replaced.
type patch struct {
	driver.FileWriter
	write  func(p []byte) (int, error)
	commit func(ctx context.Context, name string) error
	abort  func()
}

func (p *patch) Write(b []byte) (int, error)                   { return p.write(b) }
func (p *patch) Commit(ctx context.Context, name string) error { return p.commit(ctx, name) }
func (p *patch) Abort()                                        { p.abort() }

func (t *tweak) patch(f func(p *patch)) {
	create := t.create
	t.create = func(ctx context.Context) (driver.FileWriter, error) {
		w, err := create(ctx)
		if err != nil {
			return nil, err
		}
		p := &patch{FileWriter: w, write: w.Write, commit: w.Commit, abort: w.Abort}
		f(p)
		return p, nil
	}
}

// shortFile loses the end of every read.
type shortFile struct{ driver.File }

func (f shortFile) ReadAt(p []byte, off int64) (int, error) { return f.File.ReadAt(p[:len(p)/2], off) }

// lateEOF does not say where the file ends.
type lateEOF struct{ driver.File }

func (f lateEOF) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	return n, replace(err, io.EOF, nil)
}

// breach is a driver that breaks the contract in one way, and a check that finds it.
type breach struct {
	name, check string
	d           brokenDriver
}

var breaches = []breach{
	{"realms unsorted", "Realms", brokenDriver{realms: func(d driver.Driver, ctx context.Context) ([]string, error) {
		names, err := d.Realms(ctx)
		slices.Reverse(names)
		return names, err
	}}},
	{"any name", "Realms", brokenDriver{open: func(d driver.Driver, ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
		if driver.CheckRealm(name) != nil {
			name = "other"
		}
		return d.Open(ctx, name, o)
	}}},
	{"creates what must exist", "Realms", brokenDriver{open: func(d driver.Driver, ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
		o.MustExist = false
		return d.Open(ctx, name, o)
	}}},
	{"one log for all realms", "RealmsApart", brokenDriver{open: func(d driver.Driver, ctx context.Context, _ string, o driver.Options) (driver.Realm, error) {
		return d.Open(ctx, "all", o)
	}}},
	{"writes although read-only", "ReadOnly", brokenDriver{open: func(d driver.Driver, ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
		o.ReadOnly = false
		return d.Open(ctx, name, o)
	}}},
	{"readers do not wait", "Empty", brokenDriver{realm: func(t *tweak) {
		read := t.read
		t.read = func(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
			return func(yield func(driver.Entry, error) bool) {
				ctx, cancel := context.WithTimeout(ctx, time.Nanosecond)
				defer cancel()
				for e, err := range read(ctx, after, through) {
					if err != nil || !yield(e, nil) {
						return
					}
				}
			}
		}
	}}},
	{"an entry is left out", "Order", brokenDriver{realm: func(t *tweak) {
		t.map1(func(i int, e driver.Entry) (driver.Entry, bool) { return e, i != 7 })
	}}},
	{"two entries change places", "Order", brokenDriver{realm: func(t *tweak) {
		var kept driver.Entry
		t.map1(func(i int, e driver.Entry) (driver.Entry, bool) {
			if i == 5 {
				kept, e = e, kept
				return e, false
			}
			if i == 6 {
				kept, e = e, kept
			}
			return e, true
		})
	}}},
	{"reads from one entry too early", "Order", brokenDriver{realm: func(t *tweak) {
		read := t.read
		t.read = func(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
			return read(ctx, max(after, 1)-1, through)
		}
	}}},
	{"reads on behind the last that was asked for", "Order", brokenDriver{realm: func(t *tweak) {
		read := t.read
		t.read = func(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
			last, _ := t.last(ctx)
			return read(ctx, after, max(through, last))
		}
	}}},
	{"keeps the caller's buffer", "Aliasing", brokenDriver{realm: func(t *tweak) {
		var given [][]byte
		add := t.append
		t.append = func(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
			given = append(given, entry)
			return add(ctx, after, entry)
		}
		t.map1(func(i int, e driver.Entry) (driver.Entry, bool) {
			return driver.Entry{Cursor: e.Cursor, Data: given[i]}, true
		})
	}}},
	{"uses a reader's buffer again", "Aliasing", brokenDriver{realm: func(t *tweak) {
		buffer := make([]byte, 1<<20)
		t.map1(func(_ int, e driver.Entry) (driver.Entry, bool) {
			e.Data = buffer[:copy(buffer, e.Data)]
			return e, true
		})
	}}},
	{"entries too small", "Largest", brokenDriver{realm: func(t *tweak) { t.max = 1000 }}},
	{"largest entry is refused", "Largest", brokenDriver{realm: func(t *tweak) { t.max++ }}},
	{"forgets where the log ends", "Reopen", brokenDriver{realm: func(t *tweak) {
		t.last = func(context.Context) (driver.Cursor, error) { return 0, nil }
	}}},
	{"durable is ahead", "Durable", brokenDriver{realm: func(t *tweak) {
		t.sync = func(context.Context) error { return nil }
		t.Realm = ahead{t.Realm}
	}}},
	{"the second writer is not refused", "TwoWriters", brokenDriver{realm: appendsAnywhere}},
	{"both of two writers are told yes", "Contention", brokenDriver{realm: appendsAnywhere}},
	{"a deposed writer goes on", "Begin", brokenDriver{realm: appendsAnywhere}},
	{"begin is deposed", "Begin", brokenDriver{realm: func(t *tweak) {
		t.begin = func(ctx context.Context, entry []byte) (driver.Cursor, error) { return t.append(ctx, 0, entry) }
	}}},
	{"a refusal looks like a broken log", "TwoWriters", brokenDriver{realm: func(t *tweak) {
		add := t.append
		t.append = func(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
			at, err := add(ctx, after, entry)
			return at, replace(err, driver.ErrDeposed, errors.New("no"))
		}
	}}},
	{"a cancelled append looks like a broken log", "Cancelled", brokenDriver{realm: unknownAs(errors.New("no"))}},
	{"a lost answer looks like a refusal", "AnswerLost", brokenDriver{realm: unknownAs(driver.ErrDeposed)}},
	{"a lost request looks like a refusal", "RequestLost", brokenDriver{realm: unknownAs(driver.ErrDeposed)}},
	{"a lost request looks like success", "RequestLost", brokenDriver{realm: unknownAs(nil)}},
	{"a late request looks like success", "RequestLate", brokenDriver{realm: unknownAs(nil)}},
	{"the same append again is another entry", "AnswerLost", brokenDriver{realm: func(t *tweak) {
		add := t.append
		t.append = func(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
			at, err := add(ctx, after, entry)
			if errors.Is(err, driver.ErrDeposed) {
				return t.begin(ctx, entry)
			}
			return at, err
		}
	}}},
	{"late requests go anywhere", "RequestLate", brokenDriver{realm: appendsAnywhere}},
	{"queued requests go anywhere", "DeposedWriter", brokenDriver{realm: appendsAnywhere}},
	{"readers go on after their context", "ContextEnds", brokenDriver{realm: func(t *tweak) {
		read := t.read
		t.read = func(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
			if through > 0 {
				ctx = context.WithoutCancel(ctx)
			}
			return read(ctx, after, through)
		}
	}}},
	{"followers end with the log", "Follow", brokenDriver{realm: func(t *tweak) {
		read := t.read
		t.read = func(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
			last, _ := t.last(ctx)
			if through == 0 {
				through = max(1, last)
			}
			return read(ctx, after, through)
		}
	}}},
	{"a slow reader misses entries", "SlowReader", brokenDriver{realm: func(t *tweak) {
		t.map1(func(i int, e driver.Entry) (driver.Entry, bool) { return e, i < 200 || i > 205 })
	}}},
	{"a failover hides an entry", "Failover", brokenDriver{realm: func(t *tweak) {
		t.map1(func(i int, e driver.Entry) (driver.Entry, bool) { return e, i != 12 })
	}}},
	{"trims one too many", "Trim", brokenDriver{realm: func(t *tweak) {
		trim := t.trim
		t.trim = func(ctx context.Context, before driver.Cursor) error { return trim(ctx, before+1) }
	}}},
	{"trims on its own", "Trim", brokenDriver{realm: func(t *tweak) {
		first := t.first
		t.first = func(ctx context.Context) (driver.Cursor, error) {
			at, err := first(ctx)
			return at + 1, err
		}
	}}},
	{"reads over what was trimmed", "TrimUnderReader", brokenDriver{realm: overTrimmed}},
	{"reads from the start over what was trimmed", "Trim", brokenDriver{realm: overTrimmed}},
	{"reads over damage", "Damage", brokenDriver{realm: func(t *tweak) {
		read := t.read
		t.read = func(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
			return func(yield func(driver.Entry, error) bool) {
				for {
					again := false
					for e, err := range read(ctx, after, through) {
						var corrupt *driver.CorruptError
						if errors.As(err, &corrupt) {
							after, again = corrupt.At, true
							break
						}
						if !yield(e, err) {
							return
						}
					}
					if !again {
						return
					}
				}
			}
		}
	}}},
	{"success on a full disk", "FullDisk", brokenDriver{realm: func(t *tweak) {
		add := t.append
		t.append = func(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
			at, err := add(ctx, after, entry)
			if errors.Is(err, driver.ErrFull) {
				return after + 1, nil
			}
			return at, err
		}
	}}},
	{"a full disk looks like another writer", "FullDisk", brokenDriver{realm: func(t *tweak) {
		add := t.append
		t.append = func(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
			at, err := add(ctx, after, entry)
			return at, replace(err, driver.ErrFull, driver.ErrDeposed)
		}
	}}},
	{"an entry appears after all", "FullDisk", brokenDriver{realm: func(t *tweak) {
		add, begin := t.append, t.begin
		t.append = func(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
			at, err := add(ctx, after, entry)
			if errors.Is(err, driver.ErrFull) {
				t.shared.SetFull(false)
				begin(ctx, entry)
				t.shared.SetFull(true)
			}
			return at, err
		}
	}}},
	{"close leaves readers waiting", "CloseInTheMiddle", brokenDriver{realm: func(t *tweak) {
		t.close = func() error { return nil }
	}}},
	{"closed realms go on", "Closed", brokenDriver{realm: func(t *tweak) {
		t.close = func() error { return nil }
	}}},
	{"files are cut off", "FileOnce", brokenDriver{realm: func(t *tweak) {
		t.patch(func(p *patch) {
			p.write = func(b []byte) (int, error) {
				p.FileWriter.Write(b[:len(b)/2])
				return len(b), nil
			}
		})
	}}},
	{"files keep the caller's buffer", "FileOnce", brokenDriver{realm: func(t *tweak) {
		t.patch(func(p *patch) {
			var pieces [][]byte
			p.write = func(b []byte) (int, error) {
				pieces = append(pieces, b)
				return len(b), nil
			}
			p.commit = func(ctx context.Context, name string) error {
				p.FileWriter.Write(bytes.Join(pieces, nil))
				return p.FileWriter.Commit(ctx, name)
			}
		})
	}}},
	{"any file name", "FileOnce", brokenDriver{realm: func(t *tweak) {
		t.patch(func(p *patch) {
			p.commit = func(ctx context.Context, name string) error {
				if driver.CheckFile(name) != nil {
					name = "other"
				}
				return p.FileWriter.Commit(ctx, name)
			}
		})
	}}},
	{"reads are short", "FileReads", brokenDriver{realm: func(t *tweak) {
		open := t.open
		t.open = func(ctx context.Context, name string) (driver.File, error) {
			f, err := open(ctx, name)
			return shortFile{f}, err
		}
	}}},
	{"no end of file", "FileReads", brokenDriver{realm: func(t *tweak) {
		open := t.open
		t.open = func(ctx context.Context, name string) (driver.File, error) {
			f, err := open(ctx, name)
			return lateEOF{f}, err
		}
	}}},
	{"files unsorted", "FileList", brokenDriver{realm: func(t *tweak) {
		list := t.list
		t.list = func(ctx context.Context) ([]driver.FileInfo, error) {
			files, err := list(ctx)
			slices.Reverse(files)
			return files, err
		}
	}}},
	{"dropped files appear", "FileAbort", brokenDriver{realm: func(t *tweak) {
		t.patch(func(p *patch) {
			p.abort = func() { p.FileWriter.Commit(context.Background(), "aborted") }
		})
	}}},
	{"the second writer of a name fails", "FileOfTwoWriters", brokenDriver{realm: func(t *tweak) {
		t.patch(func(p *patch) {
			p.commit = func(ctx context.Context, name string) error {
				if list, _ := t.list(ctx); slices.ContainsFunc(list, func(f driver.FileInfo) bool { return f.Name == name }) {
					return errors.New("it exists")
				}
				return p.FileWriter.Commit(ctx, name)
			}
		})
	}}},
	{"removed files stay", "FileRemoved", brokenDriver{realm: func(t *tweak) {
		t.remove = func(context.Context, string) error { return nil }
	}}},
	{"removing nothing is an error", "FileRemoved", brokenDriver{realm: func(t *tweak) {
		remove := t.remove
		t.remove = func(ctx context.Context, name string) error {
			if _, err := t.open(ctx, name); err != nil {
				return err
			}
			return remove(ctx, name)
		}
	}}},
}

// ahead says that more is durable than there is.
type ahead struct{ driver.Realm }

func (a ahead) Durable() driver.Cursor { return a.Realm.Durable() + 1 }

func appendsAnywhere(t *tweak) {
	t.append = func(ctx context.Context, _ driver.Cursor, entry []byte) (driver.Cursor, error) {
		return t.begin(ctx, entry)
	}
}

// unknownAs answers an append of unknown fate as if it were known.
func unknownAs(answer error) func(*tweak) {
	return func(t *tweak) {
		add := t.append
		t.append = func(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
			at, err := add(ctx, after, entry)
			if errors.Is(err, driver.ErrUnknown) {
				return after + 1, answer
			}
			return at, err
		}
	}
}

// overTrimmed goes on behind what was trimmed.
func overTrimmed(t *tweak) {
	read := t.read
	t.read = func(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
		return func(yield func(driver.Entry, error) bool) {
			for e, err := range read(ctx, after, through) {
				var gone *driver.TrimmedError
				if errors.As(err, &gone) {
					read(ctx, gone.First-1, through)(yield)
					return
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// recorder takes the place of a test that is expected to fail.
type recorder struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	failures []string
	skipped  bool
	cleanups []func()
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Cleanup(f func())         { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any)        { r.fail(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) {
	r.fail(fmt.Sprintf(f, args...))
}
func (r *recorder) Fatal(args ...any) {
	r.fail(fmt.Sprint(args...))
	runtime.Goexit()
}
func (r *recorder) Fatalf(f string, args ...any) {
	r.fail(fmt.Sprintf(f, args...))
	runtime.Goexit()
}
func (r *recorder) Skipf(string, ...any) {
	r.skipped = true
	runtime.Goexit()
}

func (r *recorder) fail(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, message)
}

// run runs one check and returns its failures.
func (r *recorder) run(c check, w *World) []string {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			for _, f := range slices.Backward(r.cleanups) {
				f()
			}
		}()
		c.in(r, w)
	}()
	<-ended
	return r.failures
}

// TestBreachesAreFound runs the suite's checks against drivers that break its promises.
func TestBreachesAreFound(t *testing.T) {
	used := map[string]bool{}
	for _, b := range slices.Concat(breaches, boardBreaches) {
		used[b.check] = true
		t.Run(strings.ReplaceAll(b.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(checks, func(c check) bool { return c.name == b.check })
			if i < 0 {
				t.Fatalf("there is no check %s", b.check)
			}
			s := NewShared(SharedOptions{})
			w := worldOf(s, SharedOptions{})
			w.Patience = 2 * time.Second // for what hangs
			w.Open = func(_ testing.TB, node int) driver.Driver {
				d := b.d
				d.Shared, d.shared = s.Node(node), s
				return &d
			}
			r := &recorder{TB: t, ctx: t.Context()}
			if failures := r.run(checks[i], w); len(failures) == 0 {
				t.Errorf("%s found nothing wrong with it", b.check)
			}
		})
	}
	for _, c := range checks {
		// Nobody can break what the operating system does: two processes, one lock.
		if !used[c.name] && c.name != "Locked" {
			t.Errorf("no driver here breaks what %s checks", c.name)
		}
	}
}

// TestNoBreachIsFound: a driver that is not broken passes every check, also one that is nudged.
func TestNoBreachIsFound(t *testing.T) {
	Run(t, func(testing.TB) *World {
		s := NewShared(SharedOptions{})
		w := worldOf(s, SharedOptions{})
		w.Open = func(_ testing.TB, node int) driver.Driver { return &brokenDriver{Shared: s.Node(node), shared: s} }
		return w
	})
}

// TestSkipsAreSaid: a world that can do nothing skips what it cannot show, and no more.
func TestSkipsAreSaid(t *testing.T) {
	var skipped []string
	for _, c := range checks {
		s := NewShared(SharedOptions{})
		r := &recorder{TB: t, ctx: t.Context()}
		failures := r.run(c, &World{
			Open: func(_ testing.TB, node int) driver.Driver { return s.Node(node) },
		})
		if len(failures) > 0 {
			t.Errorf("%s: %v", c.name, failures)
		}
		if r.skipped {
			skipped = append(skipped, c.name)
		}
	}
	want := []string{"Locked", "AnswerLost", "RequestLost", "RequestLate", "DeposedWriter", "Failover", "Damage", "FullDisk",
		"BoardAnswerLost", "BoardRequestLate", "BoardFailover", "Nudged"}
	if !slices.Equal(skipped, want) {
		t.Errorf("skipped %v, want %v", skipped, want)
	}
}
