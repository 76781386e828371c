package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Bounds on the YAML itself. Its tree takes about 180 bytes a value, so a small source can ask for much.
const (
	maxNesting = 32 // the deepest nesting of mappings and lists; a catalog needs eight levels
	// maxValues is the most values (keys, scalars, mappings, lists), by an estimate that is not too low.
	// It admits MaxEntries entries of an id and a weight.
	maxValues = 8 << 20
	// maxQuiet is the most bytes in which no mapping or list begins outside of flow collections ([] and {},
	// and so all of JSON). The YAML scanner may hold a flow collection as tokens of 200 bytes and more, one
	// a byte at worst, until it ends, which nothing here can see.
	maxQuiet = 1 << 20
)

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
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	root := r.tree(ctx, text) // nearly all of the time and memory
	if root == nil || ctx.Err() != nil {
		return nil
	}
	c := &Catalog{}
	r.readClocks(root)
	rootShape.read(r, root, c)
	if r.full() {
		return nil
	}
	rest := check{c: c, fresh: true, itemsKnown: !r.failedAt("items"), poolsKnown: !r.failedAt("pools")}
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

// tree reads the one YAML document and returns its root, or nil.
func (r *reader) tree(ctx context.Context, text []byte) *yaml.Node {
	if !r.bounds(text) {
		return nil
	}
	g := &guard{ctx: ctx, text: text}
	loader, err := yaml.NewLoader(g, yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthFunc(g.deeper))))
	if err != nil {
		r.add(1, 1, "the YAML reader failed: %v", err)
		return nil
	}
	var document, second yaml.Node
	switch err := readDocument(loader, &document); {
	case errors.Is(err, io.EOF) || err == nil && isEmpty(&document):
		r.add(1, 1, "the document is empty; expected %s", rootShape.expects())
		return nil
	case g.tripped:
		r.add(1+bytes.Count(text[:g.last], []byte("\n")), 1,
			"expected at most %d bytes within one [] or {} (or without any mapping or list), found more from about here on; "+
				"write large mappings and lists in block style, each entry on lines of its own", maxQuiet)
		return nil
	case err != nil:
		r.syntax(text, err)
		return nil
	}
	switch err := readDocument(loader, &second); {
	case g.tripped:
		r.add(1+bytes.Count(text[:g.last], []byte("\n")), 1, "expected one document, found more after it")
	case err == nil:
		r.fail(&second, "expected one document, found another one here")
	case !errors.Is(err, io.EOF):
		r.syntax(text, err)
	}
	return document.Content[0]
}

// guard feeds the YAML scanner, so that it neither nests too deeply nor hoards tokens, and ends with ctx.
type guard struct {
	ctx        context.Context
	text       []byte
	read, last int // bytes read, in all and when one last began outside of [] and {}
	tripped    bool
}

var errQuiet = errors.New("no mapping or list begins in block style for too long")

func (g *guard) Read(b []byte) (int, error) {
	if err := g.ctx.Err(); err != nil {
		return 0, err
	}
	if g.read-g.last > maxQuiet {
		g.tripped = true
		return 0, errQuiet
	}
	if g.read == len(g.text) {
		return 0, io.EOF
	}
	n := copy(b, g.text[g.read:])
	g.read += n
	return n, nil
}

// deeper is called when the scanner finds the beginning of a mapping or list.
func (g *guard) deeper(depth int, at *loaderlimits.DepthContext) error {
	if at.Kind == yaml.DepthKindBlock || depth == 1 {
		g.last = g.read
	}
	if depth > maxNesting {
		return fmt.Errorf("expected at most %d mappings and lists within each other", maxNesting)
	}
	return nil
}

func isEmpty(document *yaml.Node) bool {
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return true
	}
	n := document.Content[0]
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
}

// readDocument reads one document. The YAML library gets what clients send: its panic becomes an error.
func readDocument(loader *yaml.Loader, n *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the YAML reader failed: %v", p)
		}
	}()
	return loader.Load(n)
}

// bounds checks what can be checked before YAML is read.
func (r *reader) bounds(text []byte) bool {
	if len(text) > MaxBytes {
		r.add(1, 1, "expected at most %d bytes, found %d", MaxBytes, len(text))
		return false
	}
	if !utf8.Valid(text) {
		at := 0
		for {
			c, size := utf8.DecodeRune(text[at:])
			if c == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		before := text[:at]
		start := bytes.LastIndexByte(before, '\n') + 1
		r.add(1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[start:]),
			"expected UTF-8, found the byte 0x%02x", text[at])
		return false
	}
	if n := estimateValues(text); n > maxValues {
		r.add(1, 1, "expected at most about %d values, found about %d", maxValues, n)
		return false
	}
	return true
}

// estimateValues returns at least the number of YAML nodes in text: nearly all have an indicator.
func estimateValues(text []byte) int {
	n := 4
	for i, c := range text {
		switch c {
		case ':', '?':
			n += 2
		case ',', '[', '{':
			n++
		case '-':
			if i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t' || text[i+1] == '\n' || text[i+1] == '\r' {
				n++
			}
		}
	}
	return n
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
