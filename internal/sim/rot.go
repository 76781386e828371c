package sim

import (
	"path"
	"reflect"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// rot damages copies of the disk that a life left. Damage may be reported or do no harm, but never
// be served.
func (w *world) rot() {
	r := stream(w.cfg.Seed, 500+uint64(w.report.Audits))
	g := w.games[r.IntN(len(w.games))]
	if w.cfg.Faults&Rot == 0 || len(g.known) == 0 || r.IntN(2) == 0 {
		return
	}
	disk := w.disk.KillClone()
	dir := path.Join(g.dir(), "log")
	if s := path.Join(g.dir(), "snapshots"); r.IntN(2) == 0 {
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
	g.unharmed(disk, "verify")
	l := &life{w: w, runner: &runner{w: w}}
	o := l.options()
	o.ClockConfirmed = l.runner.Now()
	engine, err := openIn(disk, l.runner, o)
	if err != nil {
		w.fail("open the damaged directory: %w", err)
	}
	var sound []*game // those that opened
	for _, o := range w.games {
		realm, err := engine.Realm(o.name)
		w.note("rot: open %s: %v", o.name, err)
		if err != nil && realm != nil {
			w.fail("a realm with an error")
		}
		if err != nil && o != g {
			w.fail("%s is damaged, and %s does not open: %w", g.name, o.name, err)
		}
		if err == nil && len(o.known) > 0 {
			sound = append(sound, o)
		}
	}
	if err := engine.Close(); err != nil {
		w.fail("close after rot: %w", err)
	}
	for _, o := range sound {
		o.unharmed(disk, "open")
	}
}

// unharmed checks a damaged log that is taken for sound. It must hold only what it held before the
// damage, in order from the beginning.
func (g *game) unharmed(disk *vfs.Mem, how string) {
	w := g.w
	records, rep, err := g.verified(disk)
	if err != nil {
		w.note("rot: %s: %v", how, err)
		return
	}
	records = g.whole(records, rep.From)
	for i, rec := range records {
		if i >= len(g.known) || !reflect.DeepEqual(rec, g.known[i]) {
			w.fail("%s served damage: %+v", how, rec)
		}
	}
	if len(records) < len(g.known) {
		lost := g.known[len(records)].Position
		if lost <= g.settled {
			w.fail("%s lost position %d to damage and did not say so", how, lost)
		}
	} else if rep.StateHash != g.hash {
		w.fail("%s served a damaged state", how)
	}
}
