package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Bounds on the YAML itself. The tree of a YAML document takes about 180 bytes
// for each value, so that a small source can ask for much memory.
const (
	// maxNesting is the deepest nesting of mappings and lists. A catalog
	// needs eight levels.
	maxNesting = 32
	// maxValues is the most values (keys, scalars, mappings, lists), estimated
	// from above by counting their indicators. It admits MaxEntries entries
	// of an id and a weight.
	maxValues = 8 << 20
	// maxFlowValues is the same for a document that is one flow collection, as
	// all JSON is: the YAML scanner keeps it in memory as tokens, whole.
	maxFlowValues = 1 << 19
)

// Parse reads a catalog from YAML. It checks everything before it returns: a
// catalog with any fault is refused whole, with an error that wraps *[Errors].
//
// The source is one YAML document in UTF-8 of at most [MaxBytes] bytes. Its
// keys are described in docs/catalog.md. Aliases, anchors, tags and merge keys
// are refused. Reading takes memory of up to about fifty times the source's
// size, while it lasts.
func Parse(yaml []byte) (*Catalog, error) {
	r := &reader{}
	c := r.parse(yaml)
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (r *reader) parse(text []byte) *Catalog {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	root := r.tree(text)
	if root == nil {
		return nil
	}
	s := &source{}
	rootShape.read(r, root, s)
	if r.full() {
		return nil
	}
	c := s.compile(r, root)
	lookUp := check{c: c, report: func(at *log, onKey bool, message string) {
		r.consequence(root, at, onKey, message)
	}}
	lookUp.itemsKnown, lookUp.poolsKnown = !r.failedAt("items"), !r.failedAt("pools")
	lookUp.run()
	return c
}

// failedAt tells whether a key of the root as a whole could not be read.
func (r *reader) failedAt(key string) bool {
	for _, e := range r.list {
		if len(e.at) == 1 && e.at[0].key == key {
			return true
		}
	}
	return false
}

// consequence reports what a check of the compiled form found, at the place in
// the source, unless an error reported there before explains it.
func (r *reader) consequence(root *yaml.Node, at *log, onKey bool, message string) {
	r.here = at.here
	if !r.covers() {
		n := locate(root, at.here, onKey)
		r.fail(n, "%s", message)
	}
	r.here = nil
}

// locate finds the node that a path leads to, or the nearest above it. onKey
// asks for the last key itself rather than for its value.
func locate(n *yaml.Node, path []step, onKey bool) *yaml.Node {
	for i, s := range path {
		next := (*yaml.Node)(nil)
		if s.inList {
			if n.Kind == yaml.SequenceNode && s.index < len(n.Content) {
				next = n.Content[s.index]
			}
		} else if n.Kind == yaml.MappingNode {
			for k := 0; k+1 < len(n.Content); k += 2 {
				if n.Content[k].Value != s.key {
					continue
				}
				next = n.Content[k+1]
				if onKey && i == len(path)-1 {
					next = n.Content[k]
				}
				break
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// tree reads the one YAML document and returns its root, or nil.
func (r *reader) tree(text []byte) *yaml.Node {
	if !r.bounds(text) {
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxNesting))))
	if err != nil {
		r.add(1, 1, "the YAML reader failed: %v", err)
		return nil
	}
	var document, second yaml.Node
	switch err := load(loader, &document); {
	case errors.Is(err, io.EOF) || err == nil && isEmpty(&document):
		r.add(1, 1, "the document is empty; expected %s", rootShape.expects())
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	switch err := load(loader, &second); {
	case err == nil:
		r.fail(&second, "expected one document, found another one here")
	case !errors.Is(err, io.EOF):
		r.syntax(err)
	}
	return document.Content[0]
}

func isEmpty(document *yaml.Node) bool {
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return true
	}
	n := document.Content[0]
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
}

// load reads one document. A panic of the YAML library, which is fed with
// whatever a client sends, becomes an error.
func load(loader *yaml.Loader, n *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the YAML reader failed: %v", p)
		}
	}()
	return loader.Load(n)
}

// syntax reports an error of the YAML library with its place, if it has one.
func (r *reader) syntax(err error) {
	line, column, message := 1, 1, err.Error()
	if e := (*yaml.LoadError)(nil); errors.As(err, &e) {
		message = e.Message
		if e.ContextMsg != "" {
			message += " (" + e.ContextMsg
			if c := e.ContextMark; c.Line > 0 && c != e.Mark {
				message += fmt.Sprintf(" that begins at %d:%d", c.Line, c.Column)
			}
			message += ")"
		}
		mark := e.Mark
		if mark.Line == 0 {
			mark = e.ContextMark
		}
		line, column = max(1, mark.Line), max(1, mark.Column)
	}
	r.add(line, column, "not valid YAML: %s", message)
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
	most, kind := maxValues, "values"
	if isFlow(text) {
		most, kind = maxFlowValues, "values in a document written as JSON or as one flow collection; block style admits more"
	}
	if n := estimateValues(text); n > most {
		r.add(1, 1, "expected at most about %d %s, found about %d", most, kind, n)
		return false
	}
	return true
}

// estimateValues bounds the number of YAML nodes in text from above: each node
// but a few is announced by an indicator of its own.
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

// isFlow tells whether the first thing in text, after comments, directives and
// document markers, opens a flow collection.
func isFlow(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("---")))
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return line[0] == '{' || line[0] == '['
		}
	}
	return false
}

// compile turns a source into the form that rules work on, scaling the weights
// of each pool.
func (s *source) compile(r *reader, root *yaml.Node) *Catalog {
	c := &s.out
	if len(s.pools) > 0 {
		c.Pools = make([]Pool, len(s.pools))
	}
	for i := range s.pools {
		from, to := &s.pools[i], &c.Pools[i]
		*to = from.out
		to.WeightScale = 1
		if len(from.entries) > 0 {
			to.Entries = make([]Entry, len(from.entries))
		}
		var digits uint8
		for j := range from.entries {
			digits = max(digits, from.entries[j].weight.digits)
		}
		to.WeightScale = powerOfTen(digits)
		for j := range from.entries {
			e := &from.entries[j]
			to.Entries[j] = e.out
			var ok bool
			if to.Entries[j].Weight, ok = e.weight.scaleTo(digits); !ok {
				r.here = []step{{key: "pools"}, {key: to.ID}, {key: "entries"}, {index: j, inList: true}, {key: "weight"}}
				n := locate(root, r.here, false)
				r.fail(n, "expected weights whose sum fits in 63 bits, found one that does not when scaled by %d, as another weight of the pool has %d digits after the point",
					to.WeightScale, digits)
				r.here = nil
			}
		}
		from.entries = nil
	}
	return c
}
