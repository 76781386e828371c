package store

import (
	"cmp"
	"iter"
	"math/bits"
)

// rankKey is a player's place among others, ascending by a, b and player.
type rankKey struct {
	a, b   uint64
	player uint32
}

func (k rankKey) compare(o rankKey) int {
	if k.a != o.a {
		return cmp.Compare(k.a, o.a)
	}
	return cmp.Or(cmp.Compare(k.b, o.b), cmp.Compare(k.player, o.player))
}

// ranks is a sorted set of keys that knows how many of them come before any one. It is a counted B+
// tree: a B-tree with all keys in its leaves (Comer, "The Ubiquitous B-Tree", ACM Computing Surveys
// 11, 1979), in which every inner node has the number of keys below each child (Tatham, "Counted
// B-Trees", 2001). A full node first shares with a neighbour and is split only if that is full too,
// as in a B*-tree (Knuth, "The Art of Computer Programming" 3, 6.2.4). So nodes are about three
// quarters full.
//
//	insert  go down to the leaf; while the node is full: level it with a neighbour, or split it,
//	        which needs room in its parent; put the key in; count one more on the way up
//	remove  go down to the leaf; take the key out; count one less on the way up; while the node is
//	        less than half full: merge it with a neighbour, or level the two
//	rank    go down to the leaf; sum the counts of what is left behind on each level
//
// Nodes lie in memory without pointers, a kilobyte each, which the garbage collector does not scan.
// They are numbers. A pointer to one is valid for good: nodes never move.
type ranks struct {
	mem    *rankNodes
	root   uint32
	height int // of the root; that of leaves is 0
	n      uint64
}

const (
	nodeWords = 256 // a kilobyte
	nodeHead  = 2
	// mostHeight is more than trees of MaxPlayers keys reach.
	mostHeight = 12
)

// rankNode is a leaf or an inner node: how many items it has, in a leaf the number of the next leaf
// plus one (0: none), and the items, in columns.
type rankNode [nodeWords]uint32

func (x *rankNode) len() int { return int(x[0]) }

// form is how items lie in a node. Those of a leaf are keys. Those of an inner node are children,
// with the number of keys below each, and a bound: no key below the child is less, and all keys
// below the children before it are. The bound of the first child has no meaning.
type form struct {
	most int // items
	cols []column
	keys column
}

type column struct{ at, width int } // in words

const (
	children = nodeHead // the column of children in inner nodes
	keyWords = 5        // a, b, player
	sole     = 3        // a, player: the width of keys without b
)

func formOf(inner bool, width int) form {
	if !inner {
		keys := column{nodeHead, width}
		return form{(nodeWords - nodeHead) / width, []column{keys}, keys}
	}
	most := (nodeWords - nodeHead) / (2 + width)
	keys := column{nodeHead + 2*most, width}
	return form{most, []column{{children, 1}, {nodeHead + most, 1}, keys}, keys}
}

// child returns child i of an inner node.
func (x *rankNode) child(i int) uint32 { return x[children+i] }

// counts returns the column of counts of an inner node.
func (m *rankNodes) counts(x *rankNode) []uint32 {
	return x[children+m.inner.most:][:x.len()]
}

// copy copies n items from one node to another, or within one.
func (f *form) copy(to *rankNode, i int, from *rankNode, j, n int) {
	for _, c := range f.cols {
		copy(to[c.at+i*c.width:], from[c.at+j*c.width:c.at+(j+n)*c.width])
	}
}

// open makes room for an item at index i; close removes that item.
func (f *form) open(x *rankNode, i int) {
	f.copy(x, i+1, x, i, x.len()-i)
	x[0]++
}

func (f *form) close(x *rankNode, i int) {
	f.copy(x, i, x, i+1, x.len()-i-1)
	x[0]--
}

func (f *form) key(x *rankNode, i int) rankKey {
	w := x[f.keys.at+i*f.keys.width:][:f.keys.width]
	k := rankKey{a: uint64(w[0])<<32 | uint64(w[1]), player: w[len(w)-1]}
	if len(w) == keyWords {
		k.b = uint64(w[2])<<32 | uint64(w[3])
	}
	return k
}

func (f *form) setKey(x *rankNode, i int, k rankKey) {
	w := x[f.keys.at+i*f.keys.width:][:f.keys.width]
	w[0], w[1], w[len(w)-1] = uint32(k.a>>32), uint32(k.a), k.player
	if len(w) == keyWords {
		w[2], w[3] = uint32(k.b>>32), uint32(k.b)
	}
}

// search returns the index of the first item from low on whose key is not below k, and whether it
// is k.
func (f *form) search(x *rankNode, low int, k rankKey) (at int, found bool) {
	width, keys := f.keys.width, x[f.keys.at:]
	high := x.len()
	for low < high {
		mid := int(uint(low+high) >> 1)
		w := keys[mid*width:]
		order := cmp.Compare(uint64(w[0])<<32|uint64(w[1]), k.a)
		if order == 0 {
			order = f.key(x, mid).compare(k)
		}
		switch {
		case order < 0:
			low = mid + 1
		case order > 0:
			high = mid
		default:
			return mid, true
		}
	}
	return low, false
}

// rankNodes is the memory of nodes, in chunks: one node, another one, 2, 4, and so on up to
// chunkNodes, from then on so many. There are many small realms.
type rankNodes struct {
	leaf, inner form
	chunks      [][]rankNode
	used        uint32 // nodes in chunks so far, in use or free
	free        uint32 // the first free node plus one; its first word has the next one
	spare       uint32 // how many are free
}

const chunkNodes = 64

// newRankNodes returns memory for ranks, whose keys have a b or not.
func newRankNodes(b bool) *rankNodes {
	width := sole
	if b {
		width = keyWords
	}
	return &rankNodes{leaf: formOf(false, width), inner: formOf(true, width)}
}

func (m *rankNodes) form(height int) *form {
	if height == 0 {
		return &m.leaf
	}
	return &m.inner
}

func (m *rankNodes) at(n uint32) *rankNode {
	if n < chunkNodes {
		c := bits.Len32(n)
		return &m.chunks[c][n&^(1<<c>>1)]
	}
	return &m.chunks[n/chunkNodes+6][n%chunkNodes] // there are 7 smaller ones
}

// alloc returns an empty node.
func (m *rankNodes) alloc() (uint32, *rankNode) {
	if n := m.free; n > 0 {
		x := m.at(n - 1)
		m.free = x[0]
		m.spare--
		x[0], x[1] = 0, 0
		return n - 1, x
	}
	n := m.used
	switch {
	case n >= chunkNodes && n%chunkNodes == 0:
		m.chunks = append(m.chunks, make([]rankNode, chunkNodes))
	case n < chunkNodes && n&(n-1) == 0:
		m.chunks = append(m.chunks, make([]rankNode, max(n, 1)))
	}
	m.used++
	return n, m.at(n)
}

func (m *rankNodes) release(n uint32) {
	m.at(n)[0] = m.free
	m.free = n + 1
	m.spare++
}

func newRanks(m *rankNodes) ranks {
	root, _ := m.alloc()
	return ranks{mem: m, root: root}
}

func (r *ranks) len() uint64 { return r.n }

// way is the way down to a leaf: on each level a node and the index of an item in it, the child on
// the way. In the leaf it is where a key is, or would be.
type way [mostHeight]struct {
	node *rankNode
	num  uint32
	at   int
}

// down fills in the way to a key and reports whether it is there.
func (r *ranks) down(w *way, k rankKey) (found bool) {
	num := r.root
	for h := r.height; ; h-- {
		s := &w[h]
		s.num, s.node = num, r.mem.at(num)
		if h == 0 {
			s.at, found = r.mem.leaf.search(s.node, 0, k)
			return found
		}
		at, same := r.mem.inner.search(s.node, 1, k)
		if !same {
			at--
		}
		s.at, num = at, s.node.child(at)
	}
}

// count adds one, or with -1 takes one, on the way up to the root.
func (r *ranks) count(w *way, one uint32) {
	for h := 1; h <= r.height; h++ {
		r.mem.counts(w[h].node)[w[h].at] += one
	}
}

// insert adds a key that is not there.
func (r *ranks) insert(k rankKey) {
	var w way
	if r.down(&w, k) {
		panic("store: an order has a player twice")
	}
	f := &r.mem.leaf
	if w[0].node.len() == f.most {
		r.room(&w, 0)
	}
	f.open(w[0].node, w[0].at)
	f.setKey(w[0].node, w[0].at, k)
	r.count(&w, 1)
	r.n++
}

// room makes room for an item in a full node on the way. The item at its index stays on the way.
func (r *ranks) room(w *way, h int) {
	f := r.mem.form(h)
	if h == r.height {
		num, root := r.mem.alloc()
		r.root, r.height = num, h+1
		root[0], root[children] = 1, w[h].num
		w[h+1].num, w[h+1].node, w[h+1].at = num, root, 0
	}
	up := &w[h+1]
	spare := f.most / 8 // with less room, it would soon be full again
	if up.at+1 < up.node.len() {
		if right := r.mem.at(up.node.child(up.at + 1)); right.len() < f.most-spare {
			r.level(w, h, up.at, (f.most+right.len())/2)
			return
		}
	}
	if up.at > 0 {
		if left := r.mem.at(up.node.child(up.at - 1)); left.len() < f.most-spare {
			r.level(w, h, up.at-1, (f.most+left.len()+1)/2)
			return
		}
	}
	if up.node.len() == r.mem.inner.most {
		r.room(w, h+1)
	}
	num, right := r.mem.alloc()
	r.mem.inner.open(up.node, up.at+1)
	up.node[children+up.at+1] = num
	if h == 0 {
		right[1], w[h].node[1] = w[h].node[1], num+1
	}
	r.level(w, h, up.at, f.most/2)
}

// level moves items between children i and i+1 of the parent of the node of height h on the way, so
// that the left one has so many. The way follows its item.
func (r *ranks) level(w *way, h, i, want int) {
	up, s, f := &w[h+1], &w[h], r.mem.form(h)
	left, right := r.mem.at(up.node.child(i)), r.mem.at(up.node.child(i+1))
	had, all := left.len(), left.len()+right.len()
	at := s.at
	if up.at > i { // the item's place in both together
		at += had
	}
	if more := want - had; more > 0 {
		f.copy(left, had, right, 0, more)
		f.copy(right, 0, right, more, right.len()-more)
	} else {
		f.copy(right, -more, right, 0, right.len())
		f.copy(right, 0, left, want, -more)
	}
	left[0], right[0] = uint32(want), uint32(all-want)
	counts := r.mem.counts(up.node)
	counts[i], counts[i+1] = r.mem.below(left, h), r.mem.below(right, h)
	if all > want {
		r.mem.inner.setKey(up.node, i+1, f.key(right, 0))
	}
	if at < want || at == want && h == 0 {
		up.at, s.at, s.num, s.node = i, at, up.node.child(i), left
	} else {
		up.at, s.at, s.num, s.node = i+1, at-want, up.node.child(i+1), right
	}
}

// below returns how many keys a node of height h has below it.
func (m *rankNodes) below(x *rankNode, h int) (n uint32) {
	if h == 0 {
		return x[0]
	}
	for _, c := range m.counts(x) {
		n += c
	}
	return n
}

// remove removes a key and reports whether it was there.
func (r *ranks) remove(k rankKey) bool {
	var w way
	if !r.down(&w, k) {
		return false
	}
	r.mem.leaf.close(w[0].node, w[0].at)
	r.count(&w, 1<<32-1)
	r.n--
	for h := 0; h < r.height && w[h].node.len() < r.mem.form(h).most/2; h++ {
		if !r.join(&w, h) {
			return true
		}
	}
	for r.height > 0 && r.mem.at(r.root).len() == 1 {
		was := r.root
		r.root = r.mem.at(was).child(0)
		r.mem.release(was)
		r.height--
	}
	return true
}

// join merges a node on the way with a neighbour, or levels them if they have too much for one
// node. It reports whether it merged them.
func (r *ranks) join(w *way, h int) bool {
	up, f := &w[h+1], r.mem.form(h)
	i := min(up.at, up.node.len()-2) // the left one of the two
	left, right := r.mem.at(up.node.child(i)), r.mem.at(up.node.child(i+1))
	all := left.len() + right.len()
	if all > f.most-f.most/8 {
		r.level(w, h, i, all/2)
		return false
	}
	gone := up.node.child(i + 1)
	r.level(w, h, i, all)
	if h == 0 {
		left[1] = right[1]
	}
	r.mem.inner.close(up.node, i+1)
	r.mem.release(gone)
	return true
}

// drop releases the memory of an empty set, which is then no longer used.
func (r *ranks) drop() { r.mem.release(r.root) }

// before returns how many keys come before k.
func (r *ranks) before(k rankKey) (n uint64) {
	var w way
	r.down(&w, k)
	for h := 1; h <= r.height; h++ {
		for _, c := range r.mem.counts(w[h].node)[:w[h].at] {
			n += uint64(c)
		}
	}
	return n + uint64(w[0].at)
}

// leaf returns the leaf with the key before which n others come, and its index there.
func (r *ranks) leaf(n uint64) (x *rankNode, at int) {
	x = r.mem.at(r.root)
	for range r.height {
		i := 0
		for counts := r.mem.counts(x); n >= uint64(counts[i]) && i+1 < len(counts); i++ {
			n -= uint64(counts[i])
		}
		x = r.mem.at(x.child(i))
	}
	return x, int(n)
}

// at returns the key before which n others come, which must be there.
func (r *ranks) at(n uint64) rankKey {
	x, at := r.leaf(n)
	return r.mem.leaf.key(x, at)
}

// from yields at most so many keys, in order, from the one before which n others come.
func (r *ranks) from(n uint64, most int) iter.Seq[rankKey] {
	return func(yield func(rankKey) bool) {
		if n >= r.n {
			return
		}
		x, at := r.leaf(n)
		for ; most > 0; most-- {
			for at == x.len() {
				if x[1] == 0 {
					return
				}
				x, at = r.mem.at(x[1]-1), 0
			}
			if !yield(r.mem.leaf.key(x, at)) {
				return
			}
			at++
		}
	}
}

// fill fills an empty set with sorted keys. Nodes become seven eighths full, so that the next keys
// split few of them.
func (r *ranks) fill(sorted []rankKey) {
	if len(sorted) == 0 {
		return
	}
	m := r.mem
	m.release(r.root)
	r.n = uint64(len(sorted))
	var (
		level []uint32 // the nodes of a level
		last  *rankNode
	)
	for from, to := range shares(len(sorted), m.leaf.most*7/8) {
		num, x := m.alloc()
		for i, k := range sorted[from:to] {
			m.leaf.setKey(x, i, k)
		}
		x[0] = uint32(to - from)
		if last != nil {
			last[1] = num + 1
		}
		level, last = append(level, num), x
	}
	for h := 1; len(level) > 1; h++ {
		var above []uint32
		for from, to := range shares(len(level), m.inner.most*7/8) {
			num, x := m.alloc()
			x[0] = uint32(to - from)
			counts := m.counts(x)
			for i, n := range level[from:to] {
				c := m.at(n)
				x[children+i], counts[i] = n, m.below(c, h-1)
				m.inner.setKey(x, i, m.form(h-1).key(c, 0))
			}
			above = append(above, num)
		}
		level, r.height = above, h
	}
	r.root = level[0]
}

// shares divides n things into as few shares as possible of at most most each, all about as large.
// It yields the bounds of each.
func shares(n, most int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		of := (n + most - 1) / most
		for i := range of {
			if !yield(i*n/of, (i+1)*n/of) {
				return
			}
		}
	}
}

// check reports a defect of the tree: counts, bounds and links that do not agree.
func (r *ranks) check() error {
	c := rankCheck{r: r}
	n, err := c.node(r.root, r.height, rankKey{}, rankKey{^uint64(0), ^uint64(0), ^uint32(0)})
	switch {
	case err != nil:
		return err
	case uint64(n) != r.n || c.next != 0:
		return inconsistent("%d keys counted as %d, and then leaf %d", n, r.n, c.next)
	}
	return nil
}

// rankCheck walks over a tree.
type rankCheck struct {
	r      *ranks
	leaves int
	next   uint32 // what the last leaf says the next one is, plus one
}

// node checks a node whose keys are from low on and below high. It returns how many there are.
func (c *rankCheck) node(num uint32, h int, low, high rankKey) (n uint32, err error) {
	m := c.r.mem
	x, f := m.at(num), m.form(h)
	if x.len() > f.most || x.len() == 0 && c.r.n > 0 || h > 0 && h == c.r.height && x.len() == 1 {
		return 0, inconsistent("node %d of height %d has %d items", num, h, x.len())
	}
	if h == 0 {
		if c.leaves > 0 && c.next != num+1 {
			return 0, inconsistent("leaf %d comes after one that says %d", num, c.next-1)
		}
		c.leaves++
		c.next = x[1]
		for i := range x.len() {
			k := f.key(x, i)
			if k.compare(low) < 0 || k.compare(high) >= 0 {
				return 0, inconsistent("leaf %d: key %v is not between %v and %v", num, k, low, high)
			}
			low = k
			low.player++
		}
		return x[0], nil
	}
	for i := range x.len() {
		from, to := low, high
		if i > 0 {
			from = f.key(x, i)
		}
		if i+1 < x.len() {
			to = f.key(x, i+1)
		}
		if from.compare(to) >= 0 {
			return 0, inconsistent("node %d: bound %v before %v", num, from, to)
		}
		below, err := c.node(x.child(i), h-1, from, to)
		if err == nil && below != m.counts(x)[i] {
			err = inconsistent("node %d: %d keys below child %d, counted as %d", num, below, i, m.counts(x)[i])
		}
		if err != nil {
			return 0, err
		}
		n += below
	}
	return n, nil
}
