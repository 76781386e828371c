// Package document reads one YAML document as a tree, strictly and within bounds, and says in plain words what is not
// YAML. It is for catalogs and what else people write for Kuji.
//
// What keys and values mean may not enter it.
package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Bounds are how much is read.
type Bounds struct {
	Bytes   int // of the source
	Nesting int // the deepest nesting of mappings and lists
	// Values is the most values (keys, scalars, mappings, lists), by an estimate that is not too low.
	Values int
}

// maxQuiet is the most bytes in which no mapping or list begins outside of flow collections ([] and {},
// and so all of JSON). The YAML scanner may hold a flow collection as tokens of 200 bytes and more, one
// a byte at worst, until it ends, which nothing here can see.
const maxQuiet = 1 << 20

// Report is told what is wrong, and where: lines and columns, in characters, count from 1.
type Report func(line, column int, message string)

// source is a text that is read.
type source struct {
	text   []byte
	bounds Bounds
	report Report
}

func (s *source) add(line, column int, format string, args ...any) {
	s.report(line, column, fmt.Sprintf(format, args...))
}

// Read reads the one YAML document of a text and returns its root, or nil. An empty one is an error: expects names what
// the document should be. Until the context ends: then nil comes soon, and what was reported means nothing.
func Read(ctx context.Context, text []byte, bounds Bounds, expects string, report Report) *yaml.Node {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	s := &source{text, bounds, report}
	if !s.check() {
		return nil
	}
	g := &guard{ctx: ctx, text: text, nesting: bounds.Nesting}
	loader, err := yaml.NewLoader(g, yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthFunc(g.deeper))))
	if err != nil {
		s.add(1, 1, "the YAML reader failed: %v", err)
		return nil
	}
	var document, second yaml.Node
	switch err := readDocument(loader, &document); {
	case errors.Is(err, io.EOF) || err == nil && isEmpty(&document):
		s.add(1, 1, "the document is empty; expected %s", expects)
		return nil
	case g.tripped:
		s.add(1+bytes.Count(text[:g.last], []byte("\n")), 1,
			"expected at most %d bytes within one [] or {} (or without any mapping or list), found more from about here on; "+
				"write large mappings and lists in block style, each entry on lines of its own", maxQuiet)
		return nil
	case err != nil:
		s.syntax(err)
		return nil
	}
	switch err := readDocument(loader, &second); {
	case g.tripped:
		s.add(1+bytes.Count(text[:g.last], []byte("\n")), 1, "expected one document, found more after it")
	case err == nil:
		s.add(second.Line, second.Column, "expected one document, found another one here")
	case !errors.Is(err, io.EOF):
		s.syntax(err)
	}
	return document.Content[0]
}

// guard feeds the YAML scanner, so that it neither nests too deeply nor hoards tokens, and ends with ctx.
type guard struct {
	ctx        context.Context
	text       []byte
	nesting    int
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
	if depth > g.nesting {
		return fmt.Errorf("expected at most %d mappings and lists within each other", g.nesting)
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

// check checks what can be checked before YAML is read.
func (s *source) check() bool {
	text := s.text
	if len(text) > s.bounds.Bytes {
		s.add(1, 1, "expected at most %d bytes, found %d", s.bounds.Bytes, len(text))
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
		s.add(1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[start:]),
			"expected UTF-8, found the byte 0x%02x", text[at])
		return false
	}
	if n := estimateValues(text); n > s.bounds.Values {
		s.add(1, 1, "expected at most about %d values, found about %d", s.bounds.Values, n)
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
