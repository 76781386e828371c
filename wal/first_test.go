package wal_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// TestFirstOffset: a log that begins elsewhere than at 0 is like one that was trimmed there, also
// after a crash at any step.
func TestFirstOffset(t *testing.T) {
	const first = 12345
	o := wal.Options{FirstOffset: first, SegmentSize: wal.MinSegmentSize}
	made := false // so far, in the last write
	write := func(fs *vfs.Mem) error {
		o := o
		o = on(fs, o)
		l, err := wal.Open("log", o)
		made = err == nil
		if err != nil {
			return err
		}
		for i := range uint64(300) {
			if at, err := l.AppendSync(t.Context(), fmt.Append(nil, first+i)); err != nil || at != first+i {
				return errors.Join(fmt.Errorf("record %d is at %d", i, at), err, l.Close())
			}
		}
		return l.Close()
	}
	dry := vfs.NewMem()
	if err := write(dry); err != nil {
		t.Fatal(err)
	}
	check := func(fs *vfs.Mem, least uint64) error {
		o := o
		o = on(fs, o)
		o.FirstOffset = 99 // ignored: the log is there
		if least == 0 {
			o.FirstOffset = first
		}
		l, err := wal.Open("log", o)
		if err != nil {
			return err
		}
		if l.First() != first || l.Durable() != l.Next() || l.Next() < first+least {
			err = fmt.Errorf("records %d to %d, durable to %d", l.First(), l.Next(), l.Durable())
		}
		n := uint64(first)
		for rec, wrong := range l.Records(first) {
			if wrong != nil || string(rec.Data) != fmt.Sprint(n) || rec.Offset != n {
				err = errors.Join(err, wrong, fmt.Errorf("record %d is %q", rec.Offset, rec.Data))
			}
			n++
		}
		if n != l.Next() {
			err = errors.Join(err, fmt.Errorf("read to %d of %d", n, l.Next()))
		}
		return errors.Join(err, l.Close())
	}
	if err := check(dry, 300); err != nil {
		t.Fatal(err)
	}
	for step := int64(0); step < 60; step++ {
		fs := vfs.NewMem()
		fs.CutPowerAfter(step)
		if err := write(fs); err == nil {
			t.Fatalf("step %d: nothing happened", step)
		}
		for crashed := range fs.CrashSamples(3, uint64(step), false) {
			if err := check(crashed, 0); err != nil && (made || !errors.Is(err, wal.ErrCorrupt)) {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
		}
	}
	if _, err := wal.Open("log", on(vfs.NewMem(), wal.Options{FirstOffset: wal.MaxOffset + 1})); !errors.Is(err, wal.ErrOptions) {
		t.Errorf("an offset beyond the last: %v", err)
	}
}
