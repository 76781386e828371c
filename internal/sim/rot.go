package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// rot damages copies of the disk that a life left. The engine may report damage or be unharmed. It
// may never serve it.
func (w *world) rot() {
	r := stream(w.cfg.Seed, 500+uint64(w.report.Audits))
	g := w.games[r.IntN(len(w.games))]
	if w.cfg.Faults&Rot == 0 || len(g.known) == 0 || r.IntN(2) == 0 {
		return
	}
	disk := w.disk.KillClone()
	if g.closed && r.IntN(3) == 0 {
		g.loseTail(disk, r)
		w.fired(Tail)
		g.reopen(disk, false)
	} else if name := g.flip(disk, r); name != "" {
		w.fired(Rot)
		snapshot := strings.HasSuffix(name, ".snapshot")
		if _, _, err := g.verified(disk); err == nil && snapshot {
			w.fail("verify does not see that %s is damaged", name)
		}
		if snapshot && g.trimmed(disk) {
			w.fired(Chain)
		}
		g.reopen(disk, snapshot)
	}
}

// trimmed reports whether the log has lost its beginning to snapshots.
func (g *game) trimmed(disk *vfs.Mem) bool {
	return !slices.Contains(g.list(disk, "log"), fmt.Sprintf("%020d.wal", 0))
}

// list returns the names in one of the realm's directories, and none if there is no directory.
func (g *game) list(disk *vfs.Mem, dir string) []string {
	names, err := disk.List(path.Join(g.dir(), dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.w.fail("list %s: %w", dir, err)
	}
	return names
}

// flip changes one bit of one of the realm's files and returns the file's name. It returns "" if it
// chose an empty file.
func (g *game) flip(disk *vfs.Mem, r *rand.Rand) string {
	var names []string
	switch dir := []string{"log", "snapshots", ""}[r.IntN(5)/2]; dir {
	case "":
		names = []string{"closed"}
	default:
		for _, name := range g.list(disk, dir) {
			names = append(names, path.Join(dir, name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	name := path.Join(g.dir(), names[r.IntN(len(names))])
	info, err := disk.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return ""
	}
	if err != nil {
		g.w.fail("stat: %w", err)
	}
	at := r.Int64N(info.Size())
	if err := disk.Flip(name, at, 1, byte(1)<<r.IntN(8)); err != nil {
		g.w.fail("flip: %w", err)
	}
	g.w.note("rot: %s, byte %d", name, at)
	return name
}

// loseTail removes the end of a closed log: its last sectors, or its last segments.
func (g *game) loseTail(disk *vfs.Mem, r *rand.Rand) {
	dir := path.Join(g.dir(), "log")
	names := slices.DeleteFunc(g.list(disk, "log"), func(n string) bool { return !strings.HasSuffix(n, ".wal") })
	if r.IntN(2) == 0 {
		name := path.Join(dir, names[len(names)-1])
		info, err := disk.Stat(name)
		if err != nil {
			g.w.fail("stat: %w", err)
		}
		from := max(0, info.Size()-1-r.Int64N(2048)) &^ 511
		if err := disk.Overwrite(name, from, make([]byte, info.Size()-from)); err != nil {
			g.w.fail("overwrite: %w", err)
		}
		g.w.note("rot: %s is zero from byte %d on", name, from)
		return
	}
	for n := 1 + r.IntN(len(names)); n > 0; n-- {
		name := path.Join(dir, names[len(names)-n])
		if err := disk.Remove(name); err != nil {
			g.w.fail("remove: %w", err)
		}
		g.w.note("rot: %s is gone", name)
	}
}

// reopen verifies and opens a disk on which this realm is damaged. The realm must open without any
// one of its snapshots.
func (g *game) reopen(disk *vfs.Mem, mustOpen bool) {
	w := g.w
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
		if err != nil && o == g && mustOpen {
			w.fail("%s does not open without one of its snapshots: %w", g.name, err)
		}
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

// unharmed checks a damaged log that was read without an error. It must hold only what it held before
// the damage, in order from the beginning.
func (g *game) unharmed(disk *vfs.Mem, how string) {
	w := g.w
	records, rep, err := g.verified(disk)
	if err != nil {
		w.note("rot: %s: %v", how, err)
		return
	}
	if rep.Position < g.ended {
		w.fail("%s lost the log behind position %d, and did not say so: it was closed at %d", how, rep.Position, g.ended)
	}
	records = g.whole(records, rep.From)
	n := len(records)
	for how == "open" && n > 0 && records[n-1].Kind == "due" && (n > len(g.known) || !reflect.DeepEqual(records[n-1], g.known[n-1])) {
		n-- // what was due was settled after the realm had opened
	}
	swept := n < len(records)
	records = records[:n]
	for i, rec := range records {
		if how == "open" && i >= len(g.known) && rec.Kind == "due" { // it was open for a moment, in which it swept
			return
		}
		if i >= len(g.known) || !reflect.DeepEqual(rec, g.known[i]) {
			w.fail("%s served damage: %+v", how, rec)
		}
	}
	if len(records) < len(g.known) {
		lost := g.known[len(records)].Position
		if lost <= g.settled {
			w.fail("%s lost position %d to damage and did not say so", how, lost)
		}
	} else if rep.StateHash != g.hash && !swept {
		w.fail("%s served a damaged state", how)
	}
}
