package vfs_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/internal/vfs"
)

const sector = 512

// The reference tells what may survive a crash, in the plainest way: for each
// sector and for each size the list of all states since the last sync, and for
// the directory the list of all changes.

type refFile struct {
	live    string
	disk    map[int]string   // sector → state at the last sync, padded with zeros
	since   map[int][]string // sector → states since
	size    int              // at the last sync
	sizes   []int            // since
	current int              // size now
}

func newRefFile() *refFile {
	return &refFile{disk: map[int]string{}, since: map[int][]string{}}
}

func (f *refFile) sectorNow(i int) string {
	padded := f.live + strings.Repeat("\x00", (i+1)*sector)
	return padded[i*sector : (i+1)*sector]
}

func (f *refFile) touched(from, to int) {
	for i := from / sector; i*sector < to; i++ {
		f.since[i] = append(f.since[i], f.sectorNow(i))
	}
}

func (f *refFile) write(off int, s string) {
	if s == "" {
		return
	}
	end := off + len(s)
	for next := f.current + 1; next < end; next++ { // sizes on the way
		if next%sector == 0 {
			f.sizes = append(f.sizes, next)
		}
	}
	bytes := []byte(f.live)
	for len(bytes) < end {
		bytes = append(bytes, 0)
	}
	copy(bytes[off:], s)
	f.live = string(bytes)
	f.current = len(f.live)
	f.sizes = append(f.sizes, f.current)
	f.touched(off, end)
}

func (f *refFile) truncate(size int) {
	old := f.current
	if size < old {
		f.live = f.live[:size]
	} else {
		f.live += strings.Repeat("\x00", size-old)
	}
	f.current = size
	f.sizes = append(f.sizes, size)
	if size < old {
		f.touched(size, old)
	}
}

// sync makes the newest state of each touched sector durable; drop forgets it.
func (f *refFile) sync(drop bool) {
	if !drop && len(f.sizes) > 0 {
		f.size = f.current
		for i, states := range f.since {
			f.disk[i] = states[len(states)-1]
		}
	}
	f.since, f.sizes = map[int][]string{}, nil
}

// survivors returns every content that the file may have after a crash, or
// nil when they are more than limit.
func (f *refFile) survivors(limit int) []string {
	all := map[string]bool{}
	for _, size := range append([]int{f.size}, f.sizes...) {
		partial := map[string]bool{"": true}
		for i := 0; i*sector < size; i++ {
			onDisk := f.disk[i]
			if onDisk == "" {
				onDisk = strings.Repeat("\x00", sector)
			}
			longer := map[string]bool{}
			for p := range partial {
				for _, state := range append([]string{onDisk}, f.since[i]...) {
					longer[p+state[:min(sector, size-i*sector)]] = true
				}
			}
			if partial = longer; len(partial) > limit {
				return nil
			}
		}
		maps.Copy(all, partial)
	}
	return slices.Sorted(maps.Keys(all))
}

// refDir is a directory.
type refDir struct {
	entries map[string]*refFile // now
	durable map[string]*refFile // at the last SyncDir
	moves   []refMove           // since
}

// refMove is a create, a rename or a remove.
type refMove struct {
	name string   // that it is about
	from string   // of a rename: the name that is gone with it
	file *refFile // that has the name from then on; nil: it is gone
}

func (m refMove) apply(entries map[string]*refFile) {
	delete(entries, m.from)
	if entries[m.name] = m.file; m.file == nil {
		delete(entries, m.name)
	}
}

// follows reports that m cannot survive an earlier move: both are about a name.
func (m refMove) follows(earlier refMove) bool {
	for _, name := range []string{m.name, m.from} {
		if name != "" && (name == earlier.name || name == earlier.from) {
			return true
		}
	}
	return false
}

func (d *refDir) move(m refMove) {
	d.moves = append(d.moves, m)
	m.apply(d.entries)
}

func (d *refDir) sync() { d.durable, d.moves = maps.Clone(d.entries), nil }

// listings returns the names that a crash may leave, with their files. Ordered:
// those of any moment. Unordered: after any of the moves, if of two that are about
// the same name the later one does not come without the earlier one.
func (d *refDir) listings(unordered bool) []map[string]*refFile {
	var all []map[string]*refFile
	kept := make([]bool, len(d.moves))
	var choose func(i int)
	choose = func(i int) {
		if i == len(d.moves) {
			entries := maps.Clone(d.durable)
			for i, m := range d.moves {
				if kept[i] {
					m.apply(entries)
				}
			}
			all = append(all, entries)
			return
		}
		kept[i] = false
		choose(i + 1)
		for j, earlier := range d.moves[:i] {
			if !kept[j] && (!unordered || d.moves[i].follows(earlier)) {
				return
			}
		}
		kept[i] = true
		choose(i + 1)
	}
	choose(0)
	return all
}

// survivors returns the dump of every state of the disk after a crash, or nil
// when they are more than limit.
func (d *refDir) survivors(limit int, unordered bool) map[string]bool {
	all := map[string]bool{}
	for _, entries := range d.listings(unordered) {
		partial := []string{""}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			contents := entries[name].survivors(limit)
			if contents == nil || len(contents)*len(partial) > limit {
				return nil
			}
			var longer []string
			for _, p := range partial {
				for _, c := range contents {
					longer = append(longer, fmt.Sprintf("%s/%s: %s\n", p, name, runs(c)))
				}
			}
			partial = longer
		}
		for _, p := range partial {
			all[p] = true
		}
		if len(all) > limit {
			return nil
		}
	}
	return all
}

// pair is one handle on both sides.
type pair struct {
	ref  *refFile
	file vfs.File
}

// refMachine does the same to a directory of a file system and to the reference.
type refMachine struct {
	fsys  vfs.FS
	root  string
	kinds []string
	dir   refDir
	open  []pair
	stamp byte

	dropping bool // for the hook of a Mem
}

func newRefMachine(fsys vfs.FS, root string) *refMachine {
	return &refMachine{
		fsys: fsys, root: root, dir: refDir{entries: map[string]*refFile{}, durable: map[string]*refFile{}}, stamp: 'a',
		kinds: []string{"write", "write", "write", "truncate", "sync", "syncdir", "rename", "remove"},
	}
}

// newMemMachine knows failing syncs, too.
func newMemMachine() (*vfs.Mem, *refMachine) {
	m := vfs.NewMem()
	r := newRefMachine(m, "/")
	r.kinds = append(r.kinds, "drop")
	m.SetHook(func(op vfs.Op) vfs.Fault {
		if r.dropping && op.Kind == vfs.OpSync {
			return vfs.Fault{Err: errInjected, Drop: true}
		}
		return vfs.Fault{}
	})
	return m, r
}

func (r *refMachine) step(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
	_, exists := r.dir.entries[name]
	kind := rapid.SampledFrom(r.kinds).Draw(t, "kind")
	if !exists {
		if kind == "syncdir" {
			r.syncDir(t)
			return
		}
		r.create(t, name)
		return
	}
	p := r.open[rapid.IntRange(0, len(r.open)-1).Draw(t, "handle")] // unlinked ones too
	switch kind {
	case "write":
		off := rapid.SampledFrom([]int{0, 100, 500, 511, 512, 600, 1024}).Draw(t, "off")
		n := rapid.SampledFrom([]int{0, 1, 12, 100, 512, 700}).Draw(t, "n")
		s := strings.Repeat(string(r.stamp), n)
		r.stamp++
		p.ref.write(off, s)
		if _, err := p.file.WriteAt([]byte(s), int64(off)); err != nil {
			t.Fatal(err)
		}
	case "truncate":
		size := rapid.SampledFrom([]int{0, 1, 300, 512, 900, 1100}).Draw(t, "size")
		p.ref.truncate(size)
		r.check(t, p.file.Truncate(int64(size)))
	case "sync":
		p.ref.sync(false)
		r.check(t, p.file.Sync())
	case "drop":
		p.ref.sync(true)
		r.dropping = true
		if err := p.file.Sync(); err == nil {
			t.Fatal("a dropping Sync without an error")
		}
		r.dropping = false
	case "syncdir":
		r.syncDir(t)
	case "rename":
		r.rename(t, name, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "to"))
	case "remove":
		r.dir.move(refMove{name: name})
		r.check(t, r.fsys.Remove(path.Join(r.root, name)))
	}
}

func (r *refMachine) create(t *rapid.T, name string) {
	ref := newRefFile()
	f, err := r.fsys.Create(path.Join(r.root, name))
	r.check(t, err)
	r.open = append(r.open, pair{ref, f})
	r.dir.move(refMove{name: name, file: ref})
}

func (r *refMachine) rename(t *rapid.T, from, to string) {
	if from != to {
		r.dir.move(refMove{name: to, from: from, file: r.dir.entries[from]})
	}
	r.check(t, r.fsys.Rename(path.Join(r.root, from), path.Join(r.root, to)))
}

func (r *refMachine) syncDir(t *rapid.T) {
	r.dir.sync()
	r.check(t, r.fsys.SyncDir(r.root))
}

func (r *refMachine) check(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// The crash states of a Mem are exactly those that the reference allows, and
// reads see what was written.
func TestCrashStatesMatchReference(t *testing.T) {
	const limit = 4000
	exact, sampled := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		m, r := newMemMachine()
		for range rapid.IntRange(1, 14).Draw(rt, "steps") {
			r.step(rt)
			if rapid.IntRange(0, 9).Draw(rt, "kill") == 0 {
				m.KillClone() // must leave no trace
			}
		}
		for _, p := range r.open {
			got := make([]byte, p.ref.current)
			if _, err := p.file.ReadAt(got, 0); err != nil || string(got) != p.ref.live {
				rt.Fatalf("read: got %s, %v, want %s", runs(string(got)), err, runs(p.ref.live))
			}
		}
		unordered := rapid.Bool().Draw(rt, "unordered")
		want := r.dir.survivors(limit, unordered)
		if want == nil {
			return
		}
		got := map[string]bool{}
		n := 0
		for disk := range m.CrashStates(limit, rapid.Uint64().Draw(rt, "seed"), unordered) {
			d := dump(t, disk)
			if got[d] = true; !want[d] {
				rt.Fatalf("not allowed:\n%sallowed:\n%q", d, sorted(want))
			}
			n++
		}
		if n == limit { // perhaps not all
			sampled++
			return
		}
		exact++
		if !maps.Equal(got, want) {
			rt.Fatalf("got %d states, want %d:\n%q\n%q", len(got), len(want), sorted(got), sorted(want))
		}
	})
	t.Logf("%d scenarios matched exactly, %d by samples", exact, sampled)
	if exact == 0 {
		t.Error("no scenario was small enough to be matched exactly")
	}
}
