package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// object is a mapping with fixed keys.
type object[T any] struct {
	name   string // of the definition in the schema
	doc    string
	fields []field[T]
	// The value of the key by decides which fields there are (see field.when). A missing by means byDefault.
	by, byDefault string
	some          bool                    // at least one of the keys must be there
	begin         func(k *report, v *T)   // if set, prepares a check
	end           func(r *reader, dst *T) // if set, completes what was read
}

// mapping is an object with these keys.
func mapping[T any](name, doc string, fields ...field[T]) *object[T] {
	return &object[T]{name: name, doc: doc, fields: fields}
}

// field is one key of an object. Make it with key or keyOr.
type field[T any] struct {
	shape[T]
	name, doc string
	required  bool
	orNone    bool            // catalogs that were not read can do without a required key
	anything  bool            // no value is wrong
	instead   string          // a required key may be missing if this one is there; "": it may not
	when      string          // only if the object's by key has this value; "": always
	requires  string          // the key that must be there too; "": none
	never     string          // if set, why the key must not be here
	value     string          // what a missing key stands for, as it would be written; "": nothing
	words     []string        // of a choice
	given     func(v *T) bool // whether there is a value
	set       func(v *T) bool // whether there is something to write
	preset    func(dst *T)    // sets what a missing key stands for
}

// key is a field that may be left out.
func key[T, V any](name string, s shape[V], get func(*T) *V, doc string) field[T] {
	f := field[T]{shape: part[T, V]{s, get}, name: name, doc: doc, given: func(v *T) bool { return !blank(get(v)) }}
	f.set = f.given
	switch s := any(s).(type) {
	case interface{ words() []string }:
		f.words = s.words()
	case weightShape, *scalar[bool]:
		f.anything = true
	}
	return f
}

// blank reports whether a value says nothing: it is zero, or only empty lists are in it.
func blank[V any](v *V) bool {
	switch v := any(v).(type) {
	case *string:
		return *v == ""
	case interface{ Empty() bool }:
		return v.Empty()
	}
	return empty(reflect.ValueOf(v).Elem())
}

func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice:
		return v.Len() == 0
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !empty(field) {
				return false
			}
		}
		return true
	default:
		return v.IsZero()
	}
}

// keyOr is a field that stands for value when it is left out.
func keyOr[T, V any](name string, s shape[V], get func(*T) *V, value V, doc string) field[T] {
	f := key(name, s, get, doc)
	f.value = s.write(1, &value)
	f.set = func(v *T) bool { return f.write(1, v) != f.value }
	return f.from(func(dst *T) { *get(dst) = value })
}

// These set what the fields of field say.

func (f field[T]) from(preset func(dst *T)) field[T]      { f.preset = preset; return f }
func (f field[T]) mayBeNone() field[T]                    { f.orNone = true; return f }
func (f field[T]) unless(name string) field[T]            { f.instead = name; return f }
func (f field[T]) writtenIf(set func(v *T) bool) field[T] { f.set = set; return f }
func (f field[T]) givenIf(given func(v *T) bool) field[T] { f.given, f.set = given, given; return f }
func (f field[T]) unchecked() field[T]                    { f.anything = true; return f }
func (f field[T]) only(when string) field[T]              { f.when = when; return f }
func (f field[T]) with(name string) field[T]              { f.requires = name; return f }
func (f field[T]) must() field[T] {
	f.required, f.set = true, func(*T) bool { return true }
	return f
}

// noKey is a key that must not be there, because of why.
func noKey[T any](name, why string) field[T] { return field[T]{name: name, doc: why, never: why} }

func (o *object[T]) names() (names []string) {
	for _, f := range o.fields {
		if f.never == "" && !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	return names
}

func (o *object[T]) expects() string {
	return "a mapping with the keys " + strings.Join(o.names(), ", ")
}

// variant returns the value of the by key, and false if the key cannot have it. Then what belongs to a
// variant is not read: the by key must be put right first.
func (o *object[T]) variant(n *yaml.Node) (string, bool) {
	if o.by == "" {
		return "", true
	}
	v := o.byDefault
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == o.by {
			v = n.Content[i+1].Value
			break
		}
	}
	return v, slices.Contains(o.variants(), v)
}

// variants returns the values that the by key can have.
func (o *object[T]) variants() []string {
	if o.by == "" {
		return nil
	}
	return o.fields[o.find(o.by, "")].words
}

// find returns the index of the field with a name: of this variant, else of another one, else -1.
func (o *object[T]) find(name, variant string) int {
	other := -1
	for i := range o.fields {
		f := &o.fields[i]
		if f.name != name {
			continue
		}
		if f.when == "" || f.when == variant {
			return i
		}
		other = i
	}
	return other
}

func (o *object[T]) read(r *reader, n *yaml.Node, dst *T) {
	if !r.node(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.mismatch(n, o.expects(), "")
		return
	}
	variant, known := o.variant(n)
	for i := range o.fields {
		if f := &o.fields[i]; f.preset != nil && (f.when == "" || f.when == variant) {
			f.preset(dst)
		}
	}
	var seen, meant uint64 // bits by field index; meant: misspelt, probably
	for i := 0; i+1 < len(n.Content) && !r.full(); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		name, ok := r.key(k)
		if !ok {
			continue
		}
		r.enter(name)
		switch at := o.find(name, variant); {
		case at < 0:
			meant |= o.unknown(r, k, variant)
		case seen&(1<<at) != 0:
			r.fail(k, "duplicate key %s", quote(name))
		default:
			seen |= 1 << at
			o.readField(r, &o.fields[at], k, v, variant, known, dst)
		}
		r.leave()
	}
	if !r.full() {
		o.missing(r, n, seen|meant, variant, known)
	}
	if o.end != nil {
		o.end(r, dst)
	}
}

func (o *object[T]) check(k *report, v *T) {
	if o.begin != nil {
		o.begin(k, v)
	}
	variant := o.variantOf(v)
	for i := range o.fields {
		f := &o.fields[i]
		other := f.when != "" && f.when != variant
		switch {
		case f.never != "" || f.anything || other && (variant == "" || o.fields[o.find(f.name, variant)].when == variant):
			continue
		case (other || f.orNone || f.preset == nil && (!f.required || k.line != nil)) && !f.given(v): // what a source lacks was said
			continue
		}
		k.enter(f.name)
		if other {
			k.fault("expected none: it belongs to %s: %s", o.by, f.when)
		} else {
			f.check(k, v)
		}
		k.leave()
	}
}

// variantOf returns what the by key of a value says.
func (o *object[T]) variantOf(v *T) string {
	if o.by == "" {
		return ""
	}
	return o.fields[o.find(o.by, "")].write(1, v)
}

// present returns the fields that are written, in their order.
func (o *object[T]) present(v *T) (all []*field[T]) {
	variant := o.variantOf(v)
	for i := range o.fields {
		if f := &o.fields[i]; f.never == "" && (f.when == "" || f.when == variant) && f.set(v) {
			all = append(all, f)
		}
	}
	return all
}

// settings returns the keys of an object that are written, but for one, and their values.
func (o *object[T]) settings(scale uint64, v *T, except string) (all []Setting) {
	for _, f := range o.present(v) {
		if f.name != except {
			all = append(all, Setting{f.name, f.write(scale, v)})
		}
	}
	return all
}

func (o *object[T]) write(scale uint64, v *T) string {
	return mappingOf(texts(o.settings(scale, v, ""), func(s *Setting) string { return s.Key + ": " + s.Value }))
}

func (o *object[T]) readField(r *reader, f *field[T], k, v *yaml.Node, variant string, known bool, dst *T) {
	switch {
	case f.when != "" && !known:
		return
	case f.never != "":
		r.fail(k, "%s", f.never)
	case f.when != "" && f.when != variant:
		r.fail(k, "this key belongs to %s: %s only, and %s is %s here", o.by, f.when, o.by, clip(variant))
	default:
		f.read(r, v, dst)
	}
}

// unknown reports a key that the object does not have, and returns the bit of the one probably meant.
func (o *object[T]) unknown(r *reader, k *yaml.Node, variant string) uint64 {
	names := o.names()
	if best := nearest(k.Value, slices.Values(names)); best != "" {
		r.fail(k, "unknown key %s; did you mean %q?", quote(k.Value), best)
		return 1 << o.find(best, variant)
	}
	r.fail(k, "unknown key %s; expected one of %s", quote(k.Value), strings.Join(names, ", "))
	return 0
}

func (o *object[T]) missing(r *reader, n *yaml.Node, seen uint64, variant string, known bool) {
	for i := range o.fields {
		f := &o.fields[i]
		if f.instead != "" && seen&(1<<o.find(f.instead, variant)) != 0 {
			continue
		}
		if f.required && seen&(1<<i) == 0 && (f.when == "" || known && f.when == variant) {
			r.enter(f.name)
			r.fail(n, "missing; expected %s", f.expects())
			r.leave()
		}
		if f.requires != "" && seen&(1<<i) != 0 && seen&(1<<o.find(f.requires, variant)) == 0 {
			k, _ := child(n, step{key: f.name})
			r.enter(f.name)
			r.fail(k, "this key belongs to %s, which is missing", f.requires)
			r.leave()
		}
	}
	if o.some && len(n.Content) == 0 {
		names := slices.DeleteFunc(o.names(), func(name string) bool { return o.fields[o.find(name, variant)].requires != "" })
		r.fail(n, "expected at least one of the keys %s, found none", strings.Join(names, ", "))
	}
}

// dict is a mapping from ids to T. It keeps the order of the source.
type dict[T any] struct {
	key   idShape
	value shape[T]
	id    func(*T) *string // where the key goes
	max   int
}

func (s dict[T]) expects() string {
	return fmt.Sprintf("a mapping whose keys are ids, each of %s, with 1 to %d of them", s.key.what, s.max)
}

func (s dict[T]) read(r *reader, n *yaml.Node, dst *[]T) {
	if !r.node(n) {
		return
	}
	size := len(n.Content) / 2
	if n.Kind != yaml.MappingNode || size == 0 {
		r.mismatch(n, s.expects(), emptiness(n))
		return
	}
	if size > s.max {
		r.fail(n, "expected %s, found %d", s.expects(), size)
		return
	}
	all := make([]T, 0, size)
	firstAt := make(map[string]int, size) // the line of each id
	for i := 0; i+1 < len(n.Content) && !r.full(); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		id, ok := r.key(k)
		if !ok {
			continue
		}
		r.enter(id)
		line, dup := firstAt[id]
		switch {
		case dup:
			r.fail(k, "duplicate id, already in line %d", line)
		case !s.key.valid(id):
			r.mismatch(k, s.key.expects(), "")
		default:
			firstAt[id] = k.Line
			var one T
			s.value.read(r, v, &one)
			*s.id(&one) = id
			all = append(all, one)
		}
		r.leave()
	}
	*dst = all
}

func (s dict[T]) check(k *report, all *[]T) {
	n := len(*all)
	if n == 0 || n > s.max {
		k.fault("expected %s, found %d", s.expects(), n)
		return
	}
	var before map[string]int // how often an id was there
	if n > 1 {
		before = make(map[string]int, n)
	}
	for i := range *all {
		v := &(*all)[i]
		id := *s.id(v)
		k.enterPlace(id, before[id])
		if before[id] > 0 {
			k.faultOnKey("duplicate id")
		}
		if n > 1 {
			before[id]++
		}
		s.key.checkAt(k, id, k.faultOnKey)
		s.value.check(k, v)
		k.leave()
	}
}

func (s dict[T]) schema(d definitions) *schemaNode {
	return &schemaNode{
		Type: "object", PropertyNames: &schemaNode{Ref: "#/$defs/id"},
		AdditionalProperties: s.value.schema(d), MinProperties: 1, MaxProperties: s.max,
	}
}

func (s dict[T]) write(scale uint64, all *[]T) string {
	return mappingOf(texts(*all, func(v *T) string { return yamlID(*s.id(v)) + ": " + s.value.write(scale, v) }))
}

// list is a list of T.
type list[T any] struct {
	what  string // "entries": what the list holds
	value shape[T]
	max   int
}

func (s list[T]) expects() string {
	return fmt.Sprintf("a list of 1 to %d %s", s.max, s.what)
}

func (s list[T]) read(r *reader, n *yaml.Node, dst *[]T) {
	if !r.node(n) {
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.mismatch(n, s.expects(), emptiness(n))
		return
	}
	if len(n.Content) > s.max {
		r.fail(n, "expected %s, found %d", s.expects(), len(n.Content))
		return
	}
	all := make([]T, len(n.Content))
	for i := range r.each(len(all)) {
		s.value.read(r, n.Content[i], &all[i])
	}
	*dst = all
}

func (s list[T]) schema(d definitions) *schemaNode {
	return &schemaNode{Type: "array", Items: s.value.schema(d), MinItems: 1, MaxItems: s.max}
}

func (s list[T]) check(k *report, all *[]T) {
	if n := len(*all); n == 0 || n > s.max {
		k.fault("expected %s, found %d", s.expects(), n)
		return
	}
	for i := range k.each(len(*all)) {
		s.value.check(k, &(*all)[i])
	}
}

func (s list[T]) write(scale uint64, all *[]T) string {
	return "[" + strings.Join(texts(*all, func(v *T) string { return s.value.write(scale, v) }), ", ") + "]"
}

// namesShape is a list of different ids.
type namesShape struct{ list[string] }

// names is a list of ids: what says of what.
func names(what string) namesShape { return namesShape{list[string]{"names", id(what), MaxConditions}} }

func (s namesShape) check(k *report, all *[]string) {
	s.list.check(k, all)
	for i := range k.each(min(len(*all), s.max)) {
		if slices.Contains((*all)[:i], (*all)[i]) {
			k.fault("duplicate id")
		}
	}
}

// oneOrList reads lists with one shape, and everything else as the only element.
type oneOrList[T any] struct {
	one  shape[T]
	many list[T]
}

func (s oneOrList[T]) expects() string { return s.one.expects() + ", or " + s.many.expects() }

func (s oneOrList[T]) read(r *reader, n *yaml.Node, dst *[]T) {
	if n.Kind == yaml.SequenceNode {
		s.many.read(r, n, dst)
		return
	}
	*dst = make([]T, 1)
	before := len(r.list)
	s.one.read(r, n, &(*dst)[0])
	r.widen(before, s.one.expects(), s.expects())
}

func (s oneOrList[T]) schema(d definitions) *schemaNode {
	return &schemaNode{OneOf: []*schemaNode{s.one.schema(d), s.many.schema(d)}}
}

func (s oneOrList[T]) check(k *report, all *[]T) {
	if len(*all) == 1 {
		s.one.check(k, &(*all)[0])
	} else {
		s.many.check(k, all)
	}
}

func (s oneOrList[T]) write(scale uint64, all *[]T) string {
	if len(*all) == 1 {
		return s.one.write(scale, &(*all)[0])
	}
	return s.many.write(scale, all)
}

// emptiness says what is wrong with an empty mapping or list: it is likelier to be unfinished than meant.
func emptiness(n *yaml.Node) string {
	if (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && len(n.Content) == 0 {
		return "it is empty"
	}
	return ""
}
