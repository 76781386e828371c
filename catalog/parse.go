package catalog

import (
	"context"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/kuji-dev/kuji/internal/document"
)

// bounds are those on the YAML itself. Its tree takes about 180 bytes a value, so a small source can ask for much. A
// catalog needs eight levels. The values admit MaxEntries entries of an id and a weight.
var bounds = document.Bounds{Bytes: MaxBytes, Nesting: 32, Values: 8 << 20}

// Parse reads a catalog from YAML and checks everything. A catalog with any fault is refused as a whole,
// with an error that wraps *[Errors].
//
// The source is one YAML document in UTF-8 of at most [MaxBytes] bytes, without aliases, anchors, tags and
// merge keys. docs/reference/catalog.md describes its keys. Reading takes about fifty times the source's
// size in memory: 1.5 GB for the largest sources, and not much more for hostile ones. A server should
// accept no larger sources from clients than it needs.
func Parse(yaml []byte) (*Catalog, error) {
	return ParseContext(context.Background(), yaml)
}

// ParseContext is Parse until the context ends. Then reading stops soon, with the context's error.
func ParseContext(ctx context.Context, yaml []byte) (*Catalog, error) {
	r := &reader{}
	c := r.parse(ctx, yaml)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (r *reader) parse(ctx context.Context, text []byte) *Catalog {
	report := func(line, column int, message string) { r.add(line, column, "%s", message) }
	root := document.Read(ctx, text, bounds, rootShape.expects(), report) // nearly all of the time and memory
	if root == nil || ctx.Err() != nil {
		return nil
	}
	c := &Catalog{}
	r.readClocks(root)
	r.readLanguage(root)
	rootShape.read(r, root, c)
	if r.full() {
		return nil
	}
	rest := check{c: c, fresh: true, itemsKnown: !r.failedAt("items"), poolsKnown: !r.failedAt("pools"), raritiesKnown: !r.failedAt("rarities")}
	rest.language = r.language
	rest.send = func(at *log, onKey bool, message string) {
		var n *yaml.Node
		n, r.here = locate(root, at.here, onKey)
		if !r.covers() { // else an error there explains it
			r.fail(n, "%s", message)
		}
		r.here = nil
	}
	rest.line = func(at []step) int {
		n, _ := locate(root, at, true)
		return n.Line
	}
	rest.unreadable = func(at []step) bool {
		_, r.here = locate(root, at, true)
		defer func() { r.here = nil }()
		return r.covers()
	}
	rest.run()
	return c
}

// failedAt reports whether a key of the root as a whole could not be read.
func (r *reader) failedAt(key string) bool {
	return slices.ContainsFunc(r.list, func(e *Error) bool { return len(e.at) == 1 && e.at[0].key == key })
}

// locate finds the node that a path leads to, or the nearest above it, and the path in the source: where
// that has a list of mappings and the path a key, the key of one of them. onKey asks for the last key
// itself rather than for its value.
func locate(n *yaml.Node, path []step, onKey bool) (*yaml.Node, []step) {
	exact := make([]step, 0, len(path)+1)
	for i, s := range path {
		if !s.inList && n.Kind == yaml.SequenceNode {
			at := elementOf(n, path[i:])
			if at < 0 {
				return n, append(exact, path[i:]...)
			}
			n, exact = n.Content[at], append(exact, step{index: at, inList: true})
		}
		k, next := child(n, s)
		if other := otherKey[s.key]; next == nil && other != "" && !s.inList {
			s.key = other
			k, next = child(n, s)
		}
		if next == nil {
			return n, append(exact, path[i:]...)
		}
		exact = append(exact, s)
		if n = next; onKey && i == len(path)-1 && k != nil {
			n = k
		}
	}
	return n, exact
}

// child returns what one step leads to, and its key.
func child(n *yaml.Node, s step) (k, v *yaml.Node) {
	switch {
	case s.inList && n.Kind == yaml.SequenceNode && s.index < len(n.Content):
		return nil, n.Content[s.index]
	case !s.inList && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == s.key {
				return n.Content[i], n.Content[i+1]
			}
		}
	}
	return nil, nil
}

// elementOf returns which mapping of a list has the first key of a path, and the key after it; -1: none.
// If several have, the path says which.
func elementOf(n *yaml.Node, path []step) int {
	path = path[:min(2, len(path))]
	found, place := -1, path[len(path)-1].index
	for i := range n.Content {
		v := n.Content[i]
		for _, s := range path {
			if v != nil && !s.inList {
				_, v = child(v, s)
			}
		}
		if v != nil {
			if found = i; place == 0 {
				break
			}
			place--
		}
	}
	return found
}

// endPool completes a pool that was read: it scales the weights, and sets what follows from other keys.
func (r *reader) endPool(p *Pool) {
	var digits uint8
	for _, w := range r.weights {
		digits = max(digits, w.digits)
	}
	p.WeightScale = powerOfTen(digits)
	for i, w := range r.weights {
		var ok bool
		if *w.to, ok = (decimal{*w.to, w.digits}).scaleTo(digits); !ok {
			depth := len(r.here)
			r.here = append(r.here, p.stepsTo(w.to)...)
			r.fail(w.node, "expected weights whose sum fits in 63 bits, found one that does not when scaled by %d, as another weight of the pool has %d digits after the point",
				p.WeightScale, digits)
			r.here = r.here[:depth]
		}
		r.weights[i] = weightRead{}
	}
	r.weights = r.weights[:0]
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Moments.Count > 0 && e.Stock.Unlimited {
			e.Stock = Stock{Count: uint64(e.Moments.Count)}
		}
	}
	for i := range p.Tracks {
		if t := &p.Tracks[i]; len(t.Of) == 0 {
			t.Of = []string{t.Name}
		}
	}
}

// stepsTo returns the way from a pool to one of its weights.
func (p *Pool) stepsTo(weight *uint64) []step {
	for i := range p.Entries {
		to := []step{{key: "entries"}, {index: i, inList: true}}
		if weight == &p.Entries[i].Weight {
			return append(to, step{key: "weight"})
		}
		for j := range p.Entries[i].Luck.Steps {
			if weight == &p.Entries[i].Luck.Steps[j].Weight {
				return append(to, step{key: "luck"}, step{key: "weights"}, step{index: j, inList: true}, step{key: "weight"})
			}
		}
	}
	return nil
}
