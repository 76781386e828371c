package sim

import (
	"path"
	"reflect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// rot damages copies of the disk that a life left. Damage may be reported, or
// do no harm; it may never be served.
func (w *world) rot() {
	r := stream(w.cfg.Seed, 500+uint64(w.report.Audits))
	if w.cfg.Faults&Rot == 0 || len(w.known) == 0 || r.IntN(2) == 0 {
		return
	}
	disk := w.disk.KillClone()
	dir := path.Join(dataDir, "realms", realmName, "log")
	if s := path.Join(dataDir, "realms", realmName, "snapshots"); r.IntN(2) == 0 {
		if names, err := disk.List(s); err == nil && len(names) > 0 {
			dir = s
		}
	}
	names, err := disk.List(dir)
	if err != nil {
		w.fail("list %s: %w", dir, err)
	}
	name := path.Join(dir, names[r.IntN(len(names))])
	info, err := disk.Stat(name)
	if err != nil {
		w.fail("stat: %w", err)
	}
	if info.Size() == 0 {
		return
	}
	at := r.Int64N(info.Size())
	mask := byte(1) << r.IntN(8)
	if err := disk.Flip(name, at, 1, mask); err != nil {
		w.fail("flip: %w", err)
	}
	w.fired(Rot)
	w.note("rot: %s, byte %d", name, at)
	w.unharmed(disk, "verify")
	l := &life{w: w, runner: &runner{w: w}}
	engine, err := kuji.Open(dataDir, l.options(disk))
	if err != nil {
		w.fail("open the damaged directory: %w", err)
	}
	realm, err := engine.Realm(realmName)
	w.note("rot: open: %v", err)
	if err != nil && realm != nil {
		w.fail("a realm with an error")
	}
	if err := engine.Close(); err != nil {
		w.fail("close after rot: %w", err)
	}
	if err == nil {
		w.unharmed(disk, "open")
	}
}

// unharmed checks that a log that passes for sound holds nothing but what it
// held before it was damaged, in order from the beginning.
func (w *world) unharmed(disk *vfs.Mem, how string) {
	records, rep, err := verified(disk)
	if err != nil {
		w.note("rot: %s: %v", how, err)
		return
	}
	records = w.whole(records, rep.From)
	for i, rec := range records {
		if i >= len(w.known) || !reflect.DeepEqual(rec, w.known[i]) {
			w.fail("%s served damage: %+v", how, rec)
		}
	}
	if len(records) < len(w.known) {
		lost := w.known[len(records)].Position
		if lost <= w.settled {
			w.fail("%s lost position %d to damage and did not say so", how, lost)
		}
	} else if rep.StateHash != w.hash {
		w.fail("%s served a damaged state", how)
	}
}
