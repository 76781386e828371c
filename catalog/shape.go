package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/kuji-dev/kuji/internal/document"
)

// A shape is what may stand at one place of a catalog. It reads the place, checks a value, writes it, and
// describes it to editors, so that parser, checks, writer and JSON Schema cannot drift apart. source.go
// puts shapes together into the one table of all keys.
type shape[T any] interface {
	// read checks node n and stores its value. It reports to r what is wrong; then dst may be left as it was.
	read(r *reader, n *yaml.Node, dst *T)
	// check checks a value that was not read, or that may refer to something that is not there.
	check(k *report, v *T)
	// write returns a value that Check accepts, as YAML on one line. scale is that of the pool's weights.
	write(scale uint64, v *T) string
	// schema describes the shape; d gathers definitions used in many places.
	schema(d definitions) *schemaNode
	// expects names the shape in messages: "a whole number from 1 to 10".
	expects() string
}

// A reader walks a YAML tree with shapes.
type reader struct {
	log
	weights []weightRead // of the pool that is read
	clocks  Zone         // of the catalog
	// The language of texts that name none; empty: the source has none that can be read.
	language string
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

// node refuses aliases, which can make a small source huge, and anchors and tags, which change what a
// reader sees. It reports whether there is any point in reading the node.
func (r *reader) node(n *yaml.Node) bool {
	refused := document.Refused(n)
	if refused == "" {
		return true
	}
	r.fail(n, "%s", refused)
	return n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode // what it holds may be wrong too
}

// widen makes the first error after so many name all that is expected, if the whole value is wrong.
func (r *reader) widen(before int, narrow, wide string) {
	if len(r.list) > before && len(r.list[before].at) == len(r.here) {
		e := r.list[before]
		e.Message = strings.Replace(e.Message, "expected "+narrow+", found", "expected "+wide+", found", 1)
	}
}

// key reads a mapping's key as it stands: 007 is the key 007, whatever YAML makes of it.
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

func quoted(n *yaml.Node) bool { return document.Quoted(n) }

func describe(n *yaml.Node) string { return document.Describe(n) }

func clip(s string) string { return document.Clip(s) }

// scalar is a shape of one text or number.
type scalar[T any] struct {
	text   string // see shape.expects
	take   func(r *reader, n *yaml.Node, expects string) (text string, ok bool)
	parse  func(text string) (v T, wrong string, ok bool)
	valid  func(v T) bool
	format func(v T) string
	node   schemaNode
}

func (s *scalar[T]) read(r *reader, n *yaml.Node, dst *T) {
	text, ok := s.take(r, n, s.text)
	if !ok {
		return
	}
	if v, wrong, ok := s.parse(text); wrong != "" || !ok || !s.valid(v) {
		r.mismatch(n, s.text, wrong)
	} else {
		*dst = v
	}
}

func (s *scalar[T]) check(k *report, v *T) {
	if !s.valid(*v) {
		found := s.format(*v)
		if text, ok := any(*v).(string); ok {
			found = quote(text)
		}
		k.fault("expected %s, found %s", s.text, found)
	}
}

func (s *scalar[T]) write(_ uint64, v *T) string    { return s.format(*v) }
func (s *scalar[T]) schema(definitions) *schemaNode { return &s.node }
func (s *scalar[T]) expects() string                { return s.text }

// integer is a whole number from low to high.
func integer[T uint32 | uint64](low, high uint64) *scalar[T] {
	text := fmt.Sprintf("a whole number from %d to %d", low, high)
	if low == high {
		text = fmt.Sprint("the number ", low)
	}
	return &scalar[T]{
		text: text, take: (*reader).number,
		parse: func(text string) (T, string, bool) {
			v, wrong := document.Integer(text)
			return T(v), wrong, v <= high
		},
		valid:  func(v T) bool { return uint64(v) >= low && uint64(v) <= high },
		format: func(v T) string { return strconv.FormatUint(uint64(v), 10) },
		node:   schemaNode{Type: "integer", Minimum: jsonNumber(low), Maximum: jsonNumber(high)},
	}
}

// decimals is a number from 0 to most, with at most so many digits after the point.
func decimals(what string, most uint64, digits uint8) *scalar[decimal] {
	return &scalar[decimal]{
		text: fmt.Sprintf("%s, with at most %d digits after the point", what, digits), take: (*reader).number,
		parse: func(text string) (decimal, string, bool) {
			v, wrong := parseDecimal(text)
			if wrong == "" && v.digits > digits {
				wrong = fmt.Sprintf("it has %d digits after the point", v.digits)
			}
			return v, wrong, true
		},
		valid:  func(v decimal) bool { return !v.above(most) },
		format: decimal.String,
		node:   schemaNode{Type: "number", Minimum: jsonNumber(0), Maximum: jsonNumber(most)},
	}
}

// weightShape is a weight. endPool scales it, and a check of the pool checks all weights together.
type weightShape struct{ *scalar[decimal] }

var (
	weight = weightShape{decimals("a number such as 3 or 0.06, at least 0", MaxWeightSum, maxDigits)}
	chance = weightShape{decimals("a number of percent from 0 to 100", 100, MaxDropDigits)}
	points = decimals("a number of percentage points from 0 to 100", 100, MaxChanceDigits)
)

// weightRead is a weight as it was read, without its scale.
type weightRead struct {
	to     *uint64
	digits uint8
	node   *yaml.Node
}

func (s weightShape) read(r *reader, n *yaml.Node, dst *uint64) {
	var d decimal
	s.scalar.read(r, n, &d)
	*dst = d.mantissa
	r.weights = append(r.weights, weightRead{dst, d.digits, n})
}

func (weightShape) check(*report, *uint64) {}

func (weightShape) write(scale uint64, v *uint64) string { return unscaled(*v, scale).String() }

var displayName = &scalar[string]{
	text: fmt.Sprintf("a text of 1 to %d bytes on one line", MaxName), take: (*reader).text,
	parse:  func(text string) (string, string, bool) { return text, textProblem(text), true },
	valid:  func(v string) bool { return v != "" && textProblem(v) == "" },
	format: yamlText,
	node:   schemaNode{Type: "string", MinLength: 1, MaxLength: MaxName, Pattern: `^[^\x00-\x1f\x7f-\x9f]*$`},
}

// idShape is an id, as a value.
type idShape struct {
	*scalar[string]
	what string // whose
	ref  int    // index in referred
}

// referred is whose ids must stand elsewhere too; those of all others can be anything.
var referred = [...]string{"", "an item", "an item or family", "a pool", "a track", "a counter", "a quest", "a season", "a pot", "a rarity"}

const itemRef = 1 // of an item; what can be a family too follows

// id is an id. what says of what.
func id(what string) idShape {
	return idShape{&scalar[string]{
		text: fmt.Sprintf("the id of %s: a letter or digit, then letters, digits, \".\", \"_\" or \"-\", at most %d in all", what, MaxID),
		take: (*reader).text, valid: ValidID, format: yamlID,
		parse: func(text string) (string, string, bool) { return text, "", true },
		node:  schemaNode{Ref: "#/$defs/id"},
	}, what, max(0, slices.Index(referred[:], what))}
}

func (s idShape) check(k *report, v *string) { s.checkAt(k, *v, k.fault) }

// checkAt checks an id, and that it refers to something that exists. It passes faults to fault.
func (s idShape) checkAt(k *report, id string, fault func(format string, args ...any)) {
	switch all := k.there[s.ref]; {
	case !ValidID(id):
		fault("expected %s, found %s", s.text, quote(id))
	case s.ref == itemRef && all != nil && !all[id] && k.there[itemRef+1][id]:
		fault("expected an item, found family %s: nobody can hold one", quote(id))
	case all != nil && !all[id]:
		_, noun, _ := strings.Cut(s.what, " ")
		fault("there is no %s %s%s", noun, quote(id), k.suggest(id, keys(all)))
	}
}

// instant is a moment, in Unix milliseconds after 0.
var instant = &scalar[int64]{
	text: "a time such as 2026-04-01T09:00:00Z, after 1970 and before 10000, to the millisecond at most",
	take: (*reader).scalar,
	parse: func(text string) (int64, string, bool) {
		v, wrong := parseInstant(text)
		return v, wrong, true
	},
	valid:  func(v int64) bool { return v > 0 && v <= maxInstant },
	format: func(v int64) string { return time.UnixMilli(v).UTC().Format("2006-01-02T15:04:05.999Z07:00") },
	node:   schemaNode{Type: "string", Format: "date-time", Pattern: instantPattern},
}

// duration is a length of time, in multiples of unit.
func duration[T ~int64](unit, low, high time.Duration) *scalar[T] {
	return &scalar[T]{
		text: fmt.Sprintf("a duration such as 12h or 1d12h, from %s to %s", document.FormatDuration(low), document.FormatDuration(high)),
		take: (*reader).scalar,
		parse: func(text string) (T, string, bool) {
			v, wrong := document.Duration(text)
			return T(v / unit), wrong, true
		},
		valid:  func(v T) bool { return int64(v) >= int64(low/unit) && int64(v) <= int64(high/unit) },
		format: func(v T) string { return document.FormatDuration(time.Duration(v) * unit) },
		node:   schemaNode{Type: "string", MinLength: 1, Pattern: durationPattern},
	}
}

var boolean = &scalar[bool]{
	text: "true or false", take: (*reader).number,
	parse:  func(text string) (bool, string, bool) { return text == "true", "", text == "true" || text == "false" },
	valid:  func(bool) bool { return true },
	format: strconv.FormatBool,
	node:   schemaNode{Type: "boolean"},
}

// choiceShape is one of a few words.
type choiceShape[T comparable] []choice[T]

type choice[T comparable] struct {
	word  string
	value T
	doc   string
}

func (s choiceShape[T]) words() []string {
	return texts(s, func(c *choice[T]) string { return c.word })
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
	text, ok := r.text(n, s.expects())
	if !ok {
		return
	}
	i := slices.Index(s.words(), text)
	if i < 0 {
		r.mismatch(n, s.expects(), "")
		return
	}
	*dst = s[i].value
}

func (s choiceShape[T]) check(k *report, v *T) {
	if s.write(1, v) == "" {
		k.fault("expected %s, found %v", s.expects(), *v)
	}
}

func (s choiceShape[T]) schema(definitions) *schemaNode {
	all := &schemaNode{}
	for _, c := range s {
		all.OneOf = append(all.OneOf, &schemaNode{Const: c.word, Description: c.doc})
	}
	return all
}

// write returns "" for any other value.
func (s choiceShape[T]) write(_ uint64, v *T) string {
	for _, c := range s {
		if c.value == *v {
			return c.word
		}
	}
	return ""
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
	shape[T] // the other
	word     string
	value    T
	doc      string
}

func (s wordOr[T]) expects() string { return fmt.Sprintf("%q, or %s", s.word, s.shape.expects()) }

func (s wordOr[T]) read(r *reader, n *yaml.Node, dst *T) {
	if n.Kind == yaml.ScalarNode && n.Value == s.word && r.node(n) {
		*dst = s.value
		return
	}
	*dst = *new(T)
	before := len(r.list)
	s.shape.read(r, n, dst)
	r.widen(before, s.shape.expects(), s.expects())
}

func (s wordOr[T]) schema(d definitions) *schemaNode {
	word := &schemaNode{Const: s.word, Description: s.doc}
	return &schemaNode{OneOf: []*schemaNode{word, s.shape.schema(d)}}
}

func (s wordOr[T]) write(scale uint64, v *T) string {
	if reflect.DeepEqual(*v, s.value) {
		return s.word
	}
	return s.shape.write(scale, v)
}

// part reads a V as one field of a T.
type part[T, V any] struct {
	shape[V]
	field func(*T) *V
}

func (s part[T, V]) read(r *reader, n *yaml.Node, dst *T) { s.shape.read(r, n, s.field(dst)) }
func (s part[T, V]) check(k *report, v *T)                { s.shape.check(k, s.field(v)) }
func (s part[T, V]) write(scale uint64, v *T) string      { return s.shape.write(scale, s.field(v)) }

// pointsShape is by how many percentage points a chance rises: one number, or a list of them.
type pointsShape struct{ oneOrList[decimal] }

var risingPoints = pointsShape{oneOrList[decimal]{points, list[decimal]{"such numbers", points, MaxTrackTable}}}

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

func (s pointsShape) check(k *report, r *Rising) {
	switch {
	case !powerUpTo(r.Scale, MaxChanceDigits):
		k.fault("expected chances scaled by a power of ten up to 10^%d, found %d", MaxChanceDigits, r.Scale)
	case len(r.By) == 0 || len(r.By) > MaxTrackTable || !r.Table && len(r.By) != 1:
		k.fault("expected %s, found %d numbers", s.expects(), len(r.By))
	case slices.ContainsFunc(r.By, func(by uint64) bool { return by > 100*r.Scale }):
		k.fault("expected at most 100 percentage points")
	}
}

func (s pointsShape) write(_ uint64, r *Rising) string {
	all := make([]decimal, len(r.By))
	for i, by := range r.By {
		all[i] = unscaled(by, r.Scale)
	}
	if r.Table {
		return s.many.write(1, &all)
	}
	return s.one.write(1, &all[0])
}

// spanShape is a number that is fixed, or the bounds of one: a mapping with the keys min and max.
type spanShape[T any, V uint32 | uint64] struct {
	fixed   *scalar[V]
	bounds  func(*T) (low, high *V)
	mapping *object[T]
}

func newSpan[T any, V uint32 | uint64](name, doc, low, high string, most uint64, bounds func(*T) (low, high *V), more ...field[T]) spanShape[T, V] {
	s := spanShape[T, V]{fixed: integer[V](1, most), bounds: bounds}
	s.mapping = mapping(name, doc, append([]field[T]{
		key("min", s.fixed, func(v *T) *V { low, _ := bounds(v); return low }, low).must(),
		key("max", s.fixed, func(v *T) *V { _, high := bounds(v); return high }, high).must(),
	}, more...)...)
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

func (s spanShape[T, V]) check(k *report, v *T) {
	if low, high := s.bounds(v); !s.fixed.valid(*low) || !s.fixed.valid(*high) || *low > *high {
		k.fault("expected whole numbers from %s to %s, min not above max, found min %d and max %d",
			s.fixed.node.Minimum, s.fixed.node.Maximum, *low, *high)
	}
}

func (s spanShape[T, V]) schema(d definitions) *schemaNode {
	return &schemaNode{OneOf: []*schemaNode{s.fixed.schema(d), s.mapping.schema(d)}}
}

func (s spanShape[T, V]) write(scale uint64, v *T) string {
	low, high := s.bounds(v)
	if *low != *high || len(s.mapping.present(v)) > 2 {
		return s.mapping.write(scale, v)
	}
	return s.fixed.write(scale, low)
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

func (s rewardParts) check(k *report, w *Reward) {
	if most := s.many.max; len(w.Codes) > most || len(w.Draws) > most {
		k.fault("expected codes from at most %d lists and draws from as many pools, found %d and %d", most, len(w.Codes), len(w.Draws))
		return
	}
	if len(w.Items) > 0 {
		k.enter("items")
		givenItems.check(k, &w.Items)
		k.leave()
	}
	for i, list := range w.Codes {
		k.enterPlace("code", i)
		rewardCode.check(k, &w.Codes[i])
		if slices.Contains(w.Codes[:i], list) {
			k.fault("expected each list of codes once, found %s again", quote(list))
		}
		k.leave()
	}
	for i := range w.Draws {
		in := &w.Draws[i]
		k.enterPlace("pool", i)
		rewardPool.check(k, &in.Pool)
		if slices.ContainsFunc(w.Draws[:i], func(o Inner) bool { return o.Pool == in.Pool }) {
			k.fault("expected each pool once, with times, found %s again", quote(in.Pool))
		}
		timesShape.check(k, in)
		k.leave()
	}
}

// write writes one part, or a list of one for each list of codes and each pool that it draws from.
func (s rewardParts) write(scale uint64, w *Reward) string {
	parts := make([]rewardPart, max(1, len(w.Codes), len(w.Draws)))
	parts[0].items = w.Items
	for i, list := range w.Codes {
		parts[i].code = list
	}
	for i, in := range w.Draws {
		parts[i].inner = in
	}
	return s.oneOrList.write(scale, &parts)
}
