package vfs

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// Chooser decides what survives a crash. It is asked once for each thing whose
// fate is open, in an order that depends only on the state of the [Mem]. 0 is
// the state at the last sync, n-1 the newest, and the numbers between are the
// states between, in order. n is at least 2.
type Chooser func(n int) int

// Oldest is a [Chooser]: only what was synced survives.
func Oldest(int) int { return 0 }

// Newest is a [Chooser]: everything survives.
func Newest(n int) int { return n - 1 }

// Seeded returns a [Chooser] that decides by chance, the same for the same
// seed. It has moods that last for some choices: keep all, lose all, toss each.
// Long runs that are lost or kept find other faults than a fair coin does.
func Seeded(seed uint64) Chooser {
	const moods, meanRun = 5, 16
	r := rand.New(rand.NewPCG(seed, 0x6b756a69))
	mood := r.IntN(moods)
	return func(n int) int {
		if r.IntN(meanRun) == 0 {
			mood = r.IntN(moods)
		}
		switch mood {
		case 0:
			return 0
		case 1:
			return n - 1
		default:
			return r.IntN(n)
		}
	}
}

// Crash says how a power cut goes.
type Crash struct {
	// Choose decides what survives; nil is [Oldest].
	Choose Chooser
	// Unordered lets the creates, removes and renames of a directory that were
	// not synced survive in any combination that keeps the order of those on
	// the same name. Otherwise those survive that came before some point.
	Unordered bool
}

// Crash cuts the power (see [Mem.PowerOff]) and returns a disk as the next
// start may find it.
func (m *Mem) Crash(c Crash) *Mem {
	m.PowerOff()
	return m.CrashClone(c)
}

// CrashClone returns a disk as the next start may find it if the power were
// cut now. The Mem itself goes on undisturbed. On the clone everything is
// durable; it has no hook, limit or trace, and counts from 0.
func (m *Mem) CrashClone(c Crash) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Choose == nil {
		c.Choose = Oldest
	}
	k := &crasher{Crash: c, seen: make(map[*memNode]*memNode)}
	return k.finish(m, k.node(m.root))
}

// KillClone returns what the next process finds if this one were killed now
// and the machine ran on: every byte written is there, no lock is, and what was
// not durable is still not. The Mem itself goes on undisturbed.
func (m *Mem) KillClone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := &killer{seen: make(map[*memNode]*memNode)}
	next := &Mem{memTree: memTree{root: k.node(m.root), now: m.now, seq: m.seq}}
	next.used = usedPages(next.root, make(map[*memNode]bool))
	return next
}

// CrashStates returns disks as the next start may find them if the power were
// cut now, without disturbing the Mem. It returns every one if there are
// certainly no more than limit, and otherwise limit samples: see
// [Mem.CrashSamples]. The Mem must not change while the states are ranged over.
// Different choices can lead to equal disks, so some may come more than once.
func (m *Mem) CrashStates(limit int, seed uint64, unordered bool) iter.Seq[*Mem] {
	m.mu.Lock()
	bound := m.stateBound(unordered)
	m.mu.Unlock()
	if bound > limit {
		return m.CrashSamples(limit, seed, unordered)
	}
	return func(yield func(*Mem) bool) {
		var o odometer
		for {
			if !yield(m.CrashClone(Crash{Choose: o.choose, Unordered: unordered})) || !o.next() {
				return
			}
		}
	}
}

// CrashSamples returns n disks as the next start may find them if the power
// were cut now: the one where only what was synced survived, the one where
// all did, and others by chance, the same for the same seed.
func (m *Mem) CrashSamples(n int, seed uint64, unordered bool) iter.Seq[*Mem] {
	return func(yield func(*Mem) bool) {
		for i := range n {
			choose := Seeded(seed + uint64(i)*0x9E3779B97F4A7C15)
			switch i {
			case 0:
				choose = Oldest
			case 1:
				choose = Newest
			}
			if !yield(m.CrashClone(Crash{Choose: choose, Unordered: unordered})) {
				return
			}
		}
	}
}

// odometer is a Chooser that goes through every sequence of choices.
type odometer struct {
	digits []digit
	at     int
}

type digit struct{ value, n int }

func (o *odometer) choose(n int) int {
	if o.at == len(o.digits) {
		o.digits = append(o.digits, digit{n: n})
	}
	d := o.digits[o.at]
	if d.n != n {
		panic("vfs: the file system changed while its crash states were ranged over")
	}
	o.at++
	return d.value
}

// next moves to the sequence after this one; false after the last.
func (o *odometer) next() bool {
	o.at = 0
	for i := len(o.digits) - 1; i >= 0; i-- {
		if o.digits[i].value+1 < o.digits[i].n {
			o.digits[i].value++
			o.digits = o.digits[:i+1]
			return true
		}
	}
	return false
}

// crasher copies nodes as a crash leaves them.
type crasher struct {
	Crash
	seen map[*memNode]*memNode
}

func (k *crasher) finish(m *Mem, root *memNode) *Mem {
	next := &Mem{memTree: memTree{root: root, now: m.now}}
	for _, n := range k.seen {
		if !n.isDir {
			next.used += n.live.allocated
		}
	}
	return next
}

func (k *crasher) node(n *memNode) *memNode {
	if c, ok := k.seen[n]; ok {
		c.names++
		return c
	}
	if !n.isDir {
		c := &memNode{modified: n.modified, live: n.survivor(k.Choose), names: 1}
		c.disk = c.live.share()
		k.seen[n] = c
		return c
	}
	c := &memNode{isDir: true, modified: n.modified}
	k.seen[n] = c
	entries := k.entries(n)
	c.entries = make(map[string]*memNode, len(entries))
	for _, name := range slices.Sorted(maps.Keys(entries)) { // choices need an order
		c.entries[name] = k.node(entries[name])
	}
	c.durable = maps.Clone(c.entries)
	return c
}

// entries returns a directory's entries as a crash leaves them.
func (k *crasher) entries(n *memNode) map[string]*memNode {
	if len(n.moves) == 0 {
		return n.durable
	}
	entries := maps.Clone(n.durable)
	if !k.Unordered {
		for _, mv := range n.moves[:k.Choose(len(n.moves)+1)] {
			applyMove(entries, mv)
		}
		return entries
	}
	lost := make(map[string]bool) // names with a change that did not happen
	for _, mv := range n.moves {
		if lost[mv.name] || lost[mv.from] || k.Choose(2) == 0 {
			lost[mv.name] = true
			if mv.from != "" {
				lost[mv.from] = true
			}
			continue
		}
		applyMove(entries, mv)
	}
	return entries
}

// survivor returns a file's bytes as a crash leaves them.
func (n *memNode) survivor(choose Chooser) image {
	im := n.disk.share()
	if len(n.writes) == 0 {
		return im
	}
	size := n.disk.size
	if c := n.sizes(); c > 1 {
		size = n.sizeAt(choose(c))
	}
	n.versions(size, func(sector int64, states [][]byte) {
		if c := choose(len(states) + 1); c > 0 {
			im.put(states[c-1], sector*sectorSize)
		}
	})
	im.resize(size)
	return im
}

// between returns how many multiples of a sector lie between two sizes, both
// excluded, and the first of them.
func between(from, to int64) (count int, first int64) {
	first = (from/sectorSize + 1) * sectorSize
	if first >= to {
		return 0, first
	}
	return int((to-1-first)/sectorSize) + 1, first
}

// eachSize calls f for each step of the size: how many sizes the step adds,
// itself included, the first of them if there are several, and itself.
func (n *memNode) eachSize(f func(count int, first, size int64) bool) {
	size := n.disk.size
	for _, w := range n.writes {
		if w.size == size {
			continue
		}
		count, first := 0, w.size
		if w.grew {
			count, first = between(w.from, w.size)
		}
		size = w.size
		if !f(count+1, first, size) {
			return
		}
	}
}

// sizes returns how many choices there are for the size after a crash.
func (n *memNode) sizes() int {
	total := 1
	n.eachSize(func(count int, _, _ int64) bool {
		total += count
		return true
	})
	return total
}

// sizeAt returns one of the sizes, 0 being that of the last Sync.
func (n *memNode) sizeAt(choice int) int64 {
	at := n.disk.size
	choice--
	n.eachSize(func(count int, first, size int64) bool {
		switch {
		case choice < 0:
			return false
		case choice < count-1:
			at = first + int64(choice)*sectorSize
		default:
			at = size
		}
		choice -= count
		return choice >= 0
	})
	return at
}

// versions calls f for each sector below size that can be in more than one
// state after a crash, in order, with the states after that on disk, cut off
// at size. States that equal the one before are left out.
func (n *memNode) versions(size int64, f func(sector int64, states [][]byte)) {
	type version struct {
		sector int64
		data   []byte
	}
	var all []version
	for _, w := range n.writes {
		for _, r := range w.runs {
			for i := 0; i < len(r.data); i += sectorSize {
				sector := r.first + int64(i/sectorSize)
				if sector*sectorSize >= size {
					break
				}
				all = append(all, version{sector, r.data[i : i+sectorSize]})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b version) int { return cmp.Compare(a.sector, b.sector) })
	var states [][]byte
	for i := 0; i < len(all); {
		sector := all[i].sector
		at := sector * sectorSize
		width := min(sectorSize, size-at)
		last := n.disk.at(at / pageSize)[at%pageSize:][:width]
		states = states[:0]
		for ; i < len(all) && all[i].sector == sector; i++ {
			if state := all[i].data[:width]; !bytes.Equal(state, last) {
				last = state
				states = append(states, last)
			}
		}
		if len(states) > 0 {
			f(sector, states)
		}
	}
}

// stateBound returns a number that is certainly not below the number of crash
// states. math.MaxInt32 stands for all above it.
func (t *memTree) stateBound(unordered bool) int {
	bound := 1
	times := func(n int) {
		bound = int(min(int64(bound)*int64(min(n, math.MaxInt32)), math.MaxInt32))
	}
	seen := make(map[*memNode]bool)
	var walk func(n *memNode)
	walk = func(n *memNode) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if !n.isDir {
			times(n.sizes())
			n.versions(math.MaxInt64, func(_ int64, states [][]byte) { times(len(states) + 1) })
			return
		}
		if unordered {
			times(1 << min(len(n.moves), 31))
		} else {
			times(len(n.moves) + 1)
		}
		for _, c := range n.durable {
			walk(c)
		}
		for _, mv := range n.moves {
			walk(mv.node)
		}
	}
	walk(t.root)
	return bound
}

// killer copies nodes as the page cache has them.
type killer struct {
	seen map[*memNode]*memNode
}

func (k *killer) node(n *memNode) *memNode {
	if n == nil {
		return nil
	}
	if c, ok := k.seen[n]; ok {
		return c
	}
	c := &memNode{modified: n.modified, isDir: n.isDir}
	k.seen[n] = c
	if !n.isDir {
		c.live, c.disk = n.live.share(), n.disk.share()
		c.writes = slices.Clone(n.writes)
		return c
	}
	c.entries, c.durable = k.nodes(n.entries), k.nodes(n.durable)
	c.moves = slices.Clone(n.moves)
	for i := range c.moves {
		c.moves[i].node = k.node(c.moves[i].node)
	}
	for _, e := range c.entries {
		e.names++
	}
	return c
}

func (k *killer) nodes(entries map[string]*memNode) map[string]*memNode {
	copied := make(map[string]*memNode, len(entries))
	for name, n := range entries {
		copied[name] = k.node(n)
	}
	return copied
}

// usedPages counts the pages of the files below a directory.
func usedPages(n *memNode, seen map[*memNode]bool) int64 {
	if seen[n] {
		return 0
	}
	seen[n] = true
	used := n.live.allocated
	for _, e := range n.entries {
		used += usedPages(e, seen)
	}
	return used
}
