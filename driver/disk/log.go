package disk

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sync"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/wal"
)

// realm is a realm in its directory.
type realm struct {
	files
	sole
	dir    string
	steps  step.Runner
	policy Sync
	last   lastClose

	placing sync.Mutex // held while a writer looks at the log's end and puts its entry there

	log     *wal.Log                     // nil: it cannot be opened, and Check reads what can be salvaged
	salvage iter.Seq2[wal.Record, error] // if log is nil
	first   uint64                       // offset, if log is nil
	damage  *driver.CorruptError         // with Check: the first that touches an entry, or else any
}

var _ driver.Realm = (*realm)(nil)

// openLog opens the log. It creates a missing one only if there is no sign that there was one.
//
// For a copy whose log is to be created, begins is the cursor of its first entry; otherwise it is 0.
func (r *realm) openLog(do Options, o driver.Options, begins driver.Cursor) error {
	last, closed, err := readLastClose(r.fs, r.dir)
	if err != nil {
		return err
	}
	relic, err := r.relic()
	if err != nil {
		return err
	}
	wo := wal.Options{SegmentSize: do.SegmentSize, ReadOnly: o.ReadOnly, CheckTail: !o.ReadOnly, MustExist: relic != "" || o.MustExist}
	if begins > 0 { // the files were copied first, and are no sign of a log
		wo.FirstOffset, wo.MustExist = uint64(begins-1), false
	}
	if do.Sync == Interval {
		wo.SyncInterval = do.SyncEvery
	}
	wo.DurableUpto = last.next
	r.log, err = wal.Open(r.dir+"/log", r.here(wo))
	if errors.Is(err, fs.ErrNotExist) && relic != "" {
		return r.missing(relic, err)
	}
	if err != nil {
		return err
	}
	r.last = last
	if err = r.checkLast(); err == nil && !closed && !o.ReadOnly {
		err = writeLastClose(r.fs, r.dir, &lastClose{}) // a sign that there is a log
	}
	if err != nil {
		return errors.Join(err, r.log.Close())
	}
	return nil
}

// here returns options for a log on the realm's file system.
func (r *realm) here(o wal.Options) wal.Options {
	hook.WAL(&o, r.fs, r.steps)
	return o
}

// openChecked opens the log for offline verification.
func (r *realm) openChecked() error {
	err := r.check()
	if errors.Is(err, fs.ErrNotExist) {
		if relic, failed := r.relic(); failed != nil || relic != "" {
			return cmp.Or(failed, r.missing(relic, err))
		}
	}
	return err
}

func (r *realm) check() error {
	found, err := wal.Verify(context.Background(), r.dir+"/log", r.here(wal.Options{}))
	if err != nil {
		return err
	}
	r.last, _, err = readLastClose(r.fs, r.dir)
	if err != nil && !errors.As(err, &r.damage) {
		return err
	}
	for _, d := range found.Damage {
		if d == found.Footer { // opening the log writes it again
			continue
		}
		if d := corrupt(d); r.damage == nil || r.damage.At == 0 {
			r.damage = d
		}
	}
	r.log, err = wal.Open(r.dir+"/log", r.here(wal.Options{ReadOnly: true, SegmentSize: wal.MinSegmentSize}))
	if err == nil {
		return nil
	}
	if r.damage == nil {
		d, ok := errors.AsType[*wal.CorruptionError](err)
		if !ok {
			return err
		}
		r.damage = corrupt(d)
	}
	r.first, r.salvage, err = wal.Salvage(r.dir+"/log", r.here(wal.Options{}))
	return err
}

// corrupt returns the log's error as one of package driver.
func corrupt(d *wal.CorruptionError) *driver.CorruptError {
	e := &driver.CorruptError{Place: "log", Err: d}
	if d.Offset <= wal.MaxOffset {
		e.At = driver.Cursor(d.Offset + 1)
	}
	return e
}

func (r *realm) Append(_ context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
	return r.write(entry, func() error {
		if next := r.log.Next(); next != uint64(after) {
			return fmt.Errorf("append after %d refused: the log ends at %d: %w", after, next, driver.ErrDeposed)
		}
		return nil
	})
}

func (r *realm) Begin(_ context.Context, entry []byte) (driver.Cursor, error) {
	return r.write(entry, func() error { return nil })
}

// write appends an entry if may allows it, and makes it as durable as the policy says. Between may
// and the append there is no other. Writers share fsyncs.
func (r *realm) write(entry []byte, may func() error) (driver.Cursor, error) {
	if err := r.mayWrite(); err != nil {
		return 0, err
	}
	r.placing.Lock()
	offset, err := uint64(0), may()
	if err == nil {
		offset, err = r.log.Append(entry)
	}
	r.placing.Unlock()
	if err == nil && r.policy == Always {
		err = r.log.Sync()
	} else if err == nil {
		err = r.log.Flush()
	}
	if err != nil {
		return 0, classify(err)
	}
	return driver.Cursor(offset + 1), nil
}

func (r *realm) Read(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		at := after // yielded last
		first, err := r.First(ctx)
		if err == nil && after+1 < first {
			err = &driver.TrimmedError{First: first}
		}
		damaged := ^uint64(0) // offset
		if r.damage != nil && r.damage.At > 0 {
			damaged = uint64(r.damage.At) - 1
		}
		if err == nil && damaged < uint64(after) {
			err = r.damage
		}
		if err != nil {
			yield(driver.Entry{}, err)
			return
		}
		for rec, err := range r.records(uint64(after)) {
			if err == nil && through == 0 && r.log != nil && rec.Offset >= r.log.Durable() {
				break // follow waits until it is durable
			}
			switch {
			case err != nil:
			case through != 0 && rec.Offset >= uint64(through):
				return
			case rec.Offset >= damaged:
				err = r.damage
			default:
				err = cmp.Or(ctx.Err(), r.last.agrees(r.dir, rec.Offset, rec.Data))
			}
			if err != nil {
				yield(driver.Entry{}, classify(err))
				return
			}
			at = driver.Cursor(rec.Offset + 1)
			if !yield(driver.Entry{Cursor: at, Data: rec.Data}, nil) {
				return
			}
		}
		if err := r.wrong(at); err != nil {
			yield(driver.Entry{}, err)
		} else if through == 0 || at < through {
			r.follow(ctx, at, through, yield)
		}
	}
}

// records iterates over the log as far as it goes.
func (r *realm) records(from uint64) iter.Seq2[wal.Record, error] {
	if r.log != nil {
		return r.log.Records(from)
	}
	return func(yield func(wal.Record, error) bool) {
		for rec, err := range r.salvage {
			if (err != nil || rec.Offset >= from) && !yield(rec, err) {
				return
			}
		}
	}
}

// wrong returns damage that reading all entries, up to the last one, does not find.
func (r *realm) wrong(last driver.Cursor) error {
	if r.damage != nil {
		return r.damage
	}
	if uint64(last) < r.last.next && r.readOnly {
		return &driver.CorruptError{Place: r.dir + "/log", At: last + 1, Err: fmt.Errorf("the log ends here, but when it was closed its last entry was %d", r.last.next)}
	}
	return nil
}

// follow reads on after an entry, and waits for those to come.
func (r *realm) follow(ctx context.Context, after, through driver.Cursor, yield func(driver.Entry, error) bool) {
	if r.log == nil {
		yield(driver.Entry{}, fmt.Errorf("the log ends at %d", after))
		return
	}
	horizon := wal.UpToDurable
	if r.policy != Always && through != 0 {
		horizon = wal.UpToAppended
	}
	for rec, err := range r.log.Follow(ctx, uint64(after), horizon) {
		if err != nil {
			yield(driver.Entry{}, classify(err))
			return
		}
		at := driver.Cursor(rec.Offset + 1)
		if !yield(driver.Entry{Cursor: at, Data: bytes.Clone(rec.Data)}, nil) || at == through {
			return
		}
	}
}

// Last implements driver.Log. If there is damage, a read through the cursor finds it.
func (r *realm) Last(context.Context) (driver.Cursor, error) {
	if err := r.mayRead(); err != nil {
		return 0, err
	}
	at := r.first
	if r.log != nil {
		at = r.log.Next()
	} else {
		for rec, err := range r.salvage {
			if err != nil {
				break // Read says so
			}
			at = rec.Offset + 1
		}
	}
	if r.damage != nil {
		at = max(at, uint64(r.damage.At), 1)
	}
	return driver.Cursor(at), nil
}

// sole marks what only one process at a time has open.
type sole struct{}

// Sole implements [driver.Sole].
func (sole) Sole() {}

// Size implements [driver.Sized].
func (r *realm) Size() int64 {
	if r.log == nil {
		return 0
	}
	return r.log.Stat().Bytes
}

func (r *realm) First(context.Context) (driver.Cursor, error) {
	if err := r.mayRead(); err != nil {
		return 0, err
	}
	first := r.first
	if r.log != nil {
		first = r.log.First()
	}
	return driver.Cursor(first + 1), nil
}

func (r *realm) Sync(context.Context) error { return classify(r.log.Sync()) }

func (r *realm) Durable() driver.Cursor { return driver.Cursor(r.log.Durable()) }

func (r *realm) MaxEntry() int { return wal.MaxRecord }

func (r *realm) Trim(_ context.Context, before driver.Cursor) error {
	if before == 0 {
		return nil
	}
	return classify(r.log.TrimBefore(uint64(before - 1)))
}

// Close implements driver.Realm. It notes where the log ends, if that has changed.
func (r *realm) Close() error { return r.close(true) }

func (r *realm) close(note bool) error {
	if r.closed.Swap(true) || r.log == nil {
		return nil
	}
	last, err := r.end()
	if err = errors.Join(err, r.log.Close()); err != nil || !note || r.readOnly || last.next == r.last.next {
		return classify(err)
	}
	if err := writeLastClose(r.fs, r.dir, &last); err != nil {
		return classify(fmt.Errorf("noting where the log was closed: %w", err))
	}
	return nil
}

// end returns where the log ends.
func (r *realm) end() (last lastClose, err error) {
	last.next = r.log.Next()
	if r.readOnly || last.next == r.log.First() {
		return last, nil
	}
	data, err := r.log.Read(last.next-1, nil)
	if errors.Is(err, wal.ErrFailed) {
		err = nil // Close says so
	}
	last.hash = sha256.Sum256(data)
	return last, err
}
