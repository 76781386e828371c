package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// A shape is what may stand at one place of a catalog. It reads the place, writes it, and describes it
// to editors, so that parser, writer and JSON Schema cannot drift apart: source.go puts shapes
// together into the one table of all keys.
type shape[T any] interface {
	// read checks node n and stores its value. What is wrong goes to r; then
	// dst may be left as it was.
	read(r *reader, n *yaml.Node, dst *T)
	// write returns a value that Check accepts, as YAML on one line.
	write(v *T) string
	// schema describes the shape; d gathers definitions used in many places.
	schema(d *definitions) *schemaNode
	// expects names the shape in messages: "a whole number from 1 to 10".
	expects() string
}

// A reader walks a YAML tree with shapes.
type reader struct {
	log
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	r.add(n.Line, n.Column, format, args...)
}

// mismatch reports that n is not what is expected here.
func (r *reader) mismatch(n *yaml.Node, expects, wrong string) {
	if wrong != "" {
		wrong = ": " + wrong
	}
	r.fail(n, "expected %s, found %s%s", expects, describe(n), wrong)
}

// node refuses what catalogs do without: aliases, which can make a small
// source huge, and anchors and tags, which change what a reader sees. It tells
// whether there is any point in reading the node.
func (r *reader) node(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		r.fail(n, "aliases (*%s) are not supported; write the value out", clip(n.Value))
		return false
	case n.Anchor != "":
		r.fail(n, "anchors (&%s) are not supported; write the value out where it is needed", clip(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0 || n.Tag == "!":
		r.fail(n, "tags (%s) are not supported", clip(n.Tag))
	default:
		return true
	}
	return n.Kind != yaml.ScalarNode // what a mapping or list holds may be wrong too
}

// widen makes the first error after so many name all that is expected, if the
// whole value is wrong and not something in it.
func (r *reader) widen(before int, narrow, wide string) {
	if len(r.list) > before && len(r.list[before].at) == len(r.here) {
		e := r.list[before]
		e.Message = strings.Replace(e.Message, "expected "+narrow+", found", "expected "+wide+", found", 1)
	}
}

// key reads the text of a mapping's key as it stands: 007 is the key 007,
// whatever YAML makes of it.
func (r *reader) key(k *yaml.Node) (string, bool) {
	switch {
	case k.Kind == yaml.ScalarNode && k.Value == "<<" && !quoted(k):
		r.fail(k, "merge keys (<<) are not supported; write the keys out")
	case !r.node(k) && k.Kind != yaml.ScalarNode:
	case k.Kind != yaml.ScalarNode:
		r.fail(k, "expected a text as key, found %s", describe(k))
	default:
		return k.Value, true
	}
	return "", false
}

// scalar returns the text of a scalar node.
func (r *reader) scalar(n *yaml.Node, expects string) (string, bool) {
	if !r.node(n) {
		return "", false
	}
	if n.Kind != yaml.ScalarNode {
		r.mismatch(n, expects, "")
		return "", false
	}
	return n.Value, true
}

// number returns the text of a scalar that must not be in quotes.
func (r *reader) number(n *yaml.Node, expects string) (string, bool) {
	s, ok := r.scalar(n, expects)
	if ok && (quoted(n) || s == "") {
		wrong := ""
		if quoted(n) {
			wrong = "write it without quotes"
		}
		r.mismatch(n, expects, wrong)
		return "", false
	}
	return s, ok
}

// text returns the text of a scalar that YAML takes for a text.
func (r *reader) text(n *yaml.Node, expects string) (string, bool) {
	s, ok := r.scalar(n, expects)
	if ok && n.Tag != "!!str" && n.Tag != "!!timestamp" {
		wrong := "put it in quotes"
		if s == "" {
			wrong = ""
		}
		r.mismatch(n, expects, wrong)
		return "", false
	}
	return s, ok
}

// readScalar reads the text of a scalar with take, and what it stands for with parse, which says what is
// wrong with it. ok is false if it is not what is expected.
func readScalar[T any](r *reader, n *yaml.Node, expects string, dst *T, take func(*yaml.Node, string) (string, bool), parse func(text string) (v T, wrong string, ok bool)) {
	text, ok := take(n, expects)
	if !ok {
		return
	}
	v, wrong, ok := parse(text)
	if wrong != "" || !ok {
		r.mismatch(n, expects, wrong)
		return
	}
	*dst = v
}

const anyQuotes = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func quoted(n *yaml.Node) bool { return n.Style&anyQuotes != 0 }

// describe names what stands in the source.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind != yaml.ScalarNode:
		return "something else"
	case n.Value == "" && !quoted(n):
		return "an empty value"
	case quoted(n) || n.Tag == "!!str" || n.Tag == "!!timestamp":
		return quote(n.Value)
	default: // a number, true, false or null: as it stands, without quotes
		return clip(n.Value)
	}
}

// clip cuts and escapes like quote, without the quotes.
func clip(s string) string {
	q := quote(s)
	return q[1 : len(q)-1]
}

// integerShape is a whole number from min to max.
type integerShape[T uint32 | uint64] struct{ min, max uint64 }

func (s integerShape[T]) expects() string {
	if s.min == s.max {
		return fmt.Sprint("the number ", s.min)
	}
	return fmt.Sprintf("a whole number from %d to %d", s.min, s.max)
}

func (s integerShape[T]) read(r *reader, n *yaml.Node, dst *T) {
	readScalar(r, n, s.expects(), dst, r.number, func(text string) (T, string, bool) {
		v, wrong := parseInteger(text)
		return T(v), wrong, v >= s.min && v <= s.max
	})
}

func (s integerShape[T]) schema(*definitions) *schemaNode {
	return &schemaNode{Type: "integer", Minimum: number(s.min), Maximum: number(s.max)}
}

func (integerShape[T]) write(v *T) string { return strconv.FormatUint(uint64(*v), 10) }

// decimalShape is a number from 0 to most.
type decimalShape struct {
	what   string
	most   uint64
	digits uint8 // the most after the point
}

var (
	weightShape = decimalShape{"a number such as 3 or 0.06, at least 0", MaxWeightSum, maxDigits}
	chanceShape = decimalShape{"a number of percent from 0 to 100", 100, MaxDropDigits}
	pointShape  = decimalShape{"a number of percentage points from 0 to 100", 100, MaxChanceDigits}
)

func (s decimalShape) expects() string {
	return fmt.Sprintf("%s, with at most %d digits after the point", s.what, s.digits)
}

func (s decimalShape) read(r *reader, n *yaml.Node, dst *decimal) {
	readScalar(r, n, s.expects(), dst, r.number, func(text string) (decimal, string, bool) {
		v, wrong := parseDecimal(text)
		if wrong == "" && v.digits > s.digits {
			wrong = fmt.Sprintf("it has %d digits after the point", v.digits)
		}
		return v, wrong, !v.above(s.most)
	})
}

func (s decimalShape) schema(*definitions) *schemaNode {
	return &schemaNode{Type: "number", Minimum: number(0), Maximum: number(s.most)}
}

func (decimalShape) write(v *decimal) string { return v.String() }

// nameShape is a display name.
type nameShape struct{}

func (nameShape) expects() string {
	return fmt.Sprintf("a text of 1 to %d bytes on one line", MaxName)
}

func (s nameShape) read(r *reader, n *yaml.Node, dst *string) {
	readScalar(r, n, s.expects(), dst, r.text, func(text string) (string, string, bool) {
		return text, textProblem(text), text != ""
	})
}

func (nameShape) schema(*definitions) *schemaNode {
	return &schemaNode{Type: "string", MinLength: 1, MaxLength: MaxName, Pattern: `^[^\x00-\x1f\x7f-\x9f]*$`}
}

func (nameShape) write(v *string) string { return yamlText(*v) }

// idShape is an id, as a value. what says whose.
type idShape struct{ what string }

func (s idShape) expects() string {
	return fmt.Sprintf("the id of %s: a letter or digit, then letters, digits, \".\", \"_\" or \"-\", at most %d in all", s.what, MaxID)
}

func (s idShape) read(r *reader, n *yaml.Node, dst *string) {
	readScalar(r, n, s.expects(), dst, r.text, func(text string) (string, string, bool) { return text, "", ValidID(text) })
}

func (idShape) schema(*definitions) *schemaNode { return &schemaNode{Ref: "#/$defs/id"} }

func (idShape) write(v *string) string { return yamlID(*v) }

// instantShape is a moment, in Unix milliseconds after 0.
type instantShape struct{}

func (instantShape) expects() string {
	return "a time such as 2026-04-01T09:00:00Z, after 1970 and before 10000, to the millisecond at most"
}

func (s instantShape) read(r *reader, n *yaml.Node, dst *int64) {
	readScalar(r, n, s.expects(), dst, r.scalar, func(text string) (int64, string, bool) {
		v, wrong := parseInstant(text)
		return v, wrong, v > 0 && v <= maxInstant
	})
}

func (instantShape) schema(*definitions) *schemaNode {
	return &schemaNode{Type: "string", Format: "date-time", Pattern: instantPattern}
}

func (instantShape) write(v *int64) string {
	return time.UnixMilli(*v).UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

// durationShape is a length of time from min to max.
type durationShape struct{ min, max time.Duration }

func (s durationShape) expects() string {
	return fmt.Sprintf("a duration such as 12h or 1d12h, from %s to %s", formatDuration(s.min), formatDuration(s.max))
}

func (s durationShape) read(r *reader, n *yaml.Node, dst *time.Duration) {
	readScalar(r, n, s.expects(), dst, r.scalar, func(text string) (time.Duration, string, bool) {
		v, wrong := parseDuration(text)
		return v, wrong, v >= s.min && v <= s.max
	})
}

func (durationShape) schema(*definitions) *schemaNode {
	return &schemaNode{Type: "string", MinLength: 1, Pattern: durationPattern}
}

func (durationShape) write(v *time.Duration) string { return formatDuration(*v) }

// choiceShape is one of a few words.
type choiceShape[T comparable] []choice[T]

type choice[T comparable] struct {
	word  string
	value T
	doc   string
}

func (s choiceShape[T]) words() []string {
	words := make([]string, len(s))
	for i, c := range s {
		words[i] = c.word
	}
	return words
}

func (s choiceShape[T]) expects() string {
	words := s.words()
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func (s choiceShape[T]) read(r *reader, n *yaml.Node, dst *T) {
	*dst = *new(T) // not the default, if it is wrong: nothing may be concluded from it
	readScalar(r, n, s.expects(), dst, r.text, func(text string) (T, string, bool) {
		i := slices.Index(s.words(), text)
		if i < 0 {
			return *dst, "", false
		}
		return s[i].value, "", true
	})
}

func (s choiceShape[T]) schema(*definitions) *schemaNode {
	all := &schemaNode{}
	for _, c := range s {
		all.OneOf = append(all.OneOf, &schemaNode{Const: c.word, Description: c.doc})
	}
	return all
}

func (s choiceShape[T]) write(v *T) string {
	for _, c := range s {
		if c.value == *v {
			return c.word
		}
	}
	return "" // Check refuses such a catalog
}

// freePerShape is over what time free draws are counted. Of other times it says what there is.
type freePerShape struct{ choiceShape[Per] }

func (s freePerShape) read(r *reader, n *yaml.Node, dst *Per) {
	before := len(r.list)
	if s.choiceShape.read(r, n, dst); len(r.list) > before && n.Kind == yaml.ScalarNode {
		r.list[before].Message += ". For a free draw over another time, make a pool without a price, with a limit such as {per: window, window: 720h, draws: 1}"
	}
}

// wordOr is either one word, which stands for value, or what other reads.
type wordOr[T any] struct {
	word  string
	value T
	doc   string
	other shape[T]
}

func (s wordOr[T]) expects() string {
	return fmt.Sprintf("%q, or %s", s.word, s.other.expects())
}

func (s wordOr[T]) read(r *reader, n *yaml.Node, dst *T) {
	if n.Kind == yaml.ScalarNode && n.Value == s.word && r.node(n) {
		*dst = s.value
		return
	}
	before := len(r.list)
	s.other.read(r, n, dst)
	r.widen(before, s.other.expects(), s.expects())
}

func (s wordOr[T]) schema(d *definitions) *schemaNode {
	word := &schemaNode{Const: s.word, Description: s.doc}
	return &schemaNode{OneOf: []*schemaNode{word, s.other.schema(d)}}
}

func (s wordOr[T]) write(v *T) string {
	if reflect.DeepEqual(*v, s.value) {
		return s.word
	}
	other := *v
	return s.other.write(&other)
}

// part reads a V as one field of a T.
type part[T, V any] struct {
	shape[V]
	field func(*T) *V
}

func (s part[T, V]) read(r *reader, n *yaml.Node, dst *T) { s.shape.read(r, n, s.field(dst)) }
func (s part[T, V]) write(v *T) string                    { return s.shape.write(s.field(v)) }

// windowShape is a durationShape in milliseconds.
type windowShape struct{ durationShape }

func (s windowShape) read(r *reader, n *yaml.Node, dst *int64) {
	var d time.Duration
	s.durationShape.read(r, n, &d)
	*dst = d.Milliseconds()
}

func (windowShape) write(v *int64) string {
	return formatDuration(time.Duration(*v) * time.Millisecond)
}

// boolShape is true or false.
type boolShape struct{}

func (boolShape) expects() string { return "true or false" }

func (s boolShape) read(r *reader, n *yaml.Node, dst *bool) {
	readScalar(r, n, s.expects(), dst, r.number, func(text string) (bool, string, bool) {
		return text == "true", "", text == "true" || text == "false"
	})
}

func (boolShape) schema(*definitions) *schemaNode { return &schemaNode{Type: "boolean"} }

func (boolShape) write(v *bool) string { return strconv.FormatBool(*v) }

// pointsShape is by how many percentage points a chance rises: one number, or a list of them.
type pointsShape struct{ oneOrList[decimal] }

var risingPoints = pointsShape{oneOrList[decimal]{pointShape, list[decimal]{"such numbers", pointShape, MaxTrackTable}}}

func (s pointsShape) read(r *reader, n *yaml.Node, dst *Rising) {
	var all []decimal
	s.oneOrList.read(r, n, &all)
	dst.Table = n.Kind == yaml.SequenceNode
	digits := uint8(0)
	for _, d := range all {
		digits = max(digits, d.digits)
	}
	dst.Scale = powerOfTen(digits)
	for _, d := range all {
		v, _ := d.scaleTo(digits) // it is at most 100, with few digits
		dst.By = append(dst.By, v)
	}
}

func (s pointsShape) write(r *Rising) string {
	all := make([]decimal, len(r.By))
	for i, by := range r.By {
		all[i] = unscaled(by, r.Scale)
	}
	if r.Table {
		return s.many.write(&all)
	}
	return s.one.write(&all[0])
}

// spanShape is a number that is fixed, or the bounds of one: a mapping with the keys min and max.
type spanShape[T any, V uint32 | uint64] struct {
	fixed   integerShape[V]
	bounds  func(*T) (low, high *V)
	mapping *object[T]
}

func newSpan[T any, V uint32 | uint64](name, doc, low, high string, most uint64, bounds func(*T) (low, high *V), more ...field[T]) spanShape[T, V] {
	s := spanShape[T, V]{fixed: integerShape[V]{1, most}, bounds: bounds}
	s.mapping = &object[T]{name: name, doc: doc, fields: append([]field[T]{
		key("min", s.fixed, func(v *T) *V { low, _ := bounds(v); return low }, low).must(),
		key("max", s.fixed, func(v *T) *V { _, high := bounds(v); return high }, high).must(),
	}, more...)}
	return s
}

func (s spanShape[T, V]) expects() string { return s.fixed.expects() + ", or " + s.mapping.expects() }

func (s spanShape[T, V]) read(r *reader, n *yaml.Node, dst *T) {
	switch n.Kind {
	case yaml.MappingNode:
		s.mapping.read(r, n, dst)
	case yaml.ScalarNode:
		low, high := s.bounds(dst)
		s.fixed.read(r, n, low)
		*high = *low
	default:
		if r.node(n) {
			r.mismatch(n, s.expects(), "")
		}
	}
}

func (s spanShape[T, V]) schema(d *definitions) *schemaNode {
	return &schemaNode{OneOf: []*schemaNode{s.fixed.schema(d), s.mapping.schema(d)}}
}

func (s spanShape[T, V]) write(v *T) string {
	low, high := s.bounds(v)
	if *low != *high || len(s.mapping.present(v)) > 2 {
		return s.mapping.write(v)
	}
	return s.fixed.write(low)
}

// rewardParts puts the parts of a reward together.
type rewardParts struct{ oneOrList[rewardPart] }

func (s rewardParts) read(r *reader, n *yaml.Node, dst *Reward) {
	var parts []rewardPart
	s.oneOrList.read(r, n, &parts)
	*dst = Reward{}
	for _, w := range parts {
		dst.Items = append(dst.Items, w.items...)
		if w.code != "" {
			dst.Codes = append(dst.Codes, w.code)
		}
		if w.inner.Pool != "" {
			dst.Draws = append(dst.Draws, w.inner)
		}
	}
}

// write writes one part, or a list of one for each list of codes and each pool that it draws from.
func (s rewardParts) write(w *Reward) string {
	parts := make([]rewardPart, max(1, len(w.Codes), len(w.Draws)))
	parts[0].items = w.Items
	for i, list := range w.Codes {
		parts[i].code = list
	}
	for i, in := range w.Draws {
		parts[i].inner = in
	}
	return s.oneOrList.write(&parts)
}
