// Package contract writes and reads the messages of the API's contract. It has two forms:
//
//   - the standard mapping of Protocol Buffers to JSON, which HTTP speaks: [AppendJSON], [ReadJSON];
//   - plain form, for people and scripts: [Form]. The Redis protocol and --json use it.
//
// Both take every name from the contract, so they say the same names for the same things. No other
// room writes JSON of a message by hand.
package contract

import (
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// MaxDepth is how deeply messages in a request may be nested. The deepest one needs 5.
const MaxDepth = 16

// AppendJSON appends a message in the standard mapping: camelCase, 64-bit integers as strings.
func AppendJSON(dst []byte, m proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{}.MarshalAppend(dst, m)
}

// ReadJSON reads a message in the standard mapping. A field that is not in the contract is an
// error: a typing mistake must not draw once instead of ten times.
func ReadJSON(data []byte, m proto.Message) error {
	return protojson.UnmarshalOptions{RecursionLimit: MaxDepth}.Unmarshal(data, m)
}

// Form is plain form: the contract's names in snake_case, enums as words, see [Word], integers as
// integers, bytes in hexadecimal. Fields that are zero, false or empty are left out.
type Form struct {
	// Stacks writes items and quantities as one map. No list of the contract has an item twice.
	Stacks bool
}

// A Writer writes values of plain form in some protocol.
type Writer interface {
	Map(fields int) // begins a map: a Key and a value for each field follow, then End
	Key(name string)
	List(values int) // begins a list: its values follow, then End
	End()
	Text(s string)
	Unsigned(n uint64)
	Integer(n int64)
	Double(x float64)
	Bool(yes bool)
}

// Write writes a message as a map.
func (f Form) Write(w Writer, m protoreflect.Message) {
	fields, n := m.Descriptor().Fields(), 0
	for i := range fields.Len() {
		if m.Has(fields.Get(i)) {
			n++
		}
	}
	w.Map(n)
	for i := range fields.Len() {
		desc := fields.Get(i)
		if !m.Has(desc) {
			continue
		}
		w.Key(string(desc.Name()))
		if v := m.Get(desc); desc.IsList() {
			f.list(w, desc, v.List())
		} else {
			f.value(w, desc, v)
		}
	}
	w.End()
}

func (f Form) list(w Writer, desc protoreflect.FieldDescriptor, list protoreflect.List) {
	if f.Stacks && desc.Message() != nil && desc.Message() == stack {
		w.Map(list.Len())
		for i := range list.Len() {
			one := list.Get(i).Message().Interface().(*kujiv1.Stack)
			w.Key(one.GetItem())
			w.Unsigned(one.GetQuantity())
		}
		w.End()
		return
	}
	w.List(list.Len())
	for i := range list.Len() {
		f.value(w, desc, list.Get(i))
	}
	w.End()
}

var stack = (*kujiv1.Stack)(nil).ProtoReflect().Descriptor()

func (f Form) value(w Writer, desc protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch desc.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		f.Write(w, v.Message())
	case protoreflect.EnumKind:
		w.Text(wordsOf(desc.Enum())[v.Enum()])
	case protoreflect.BoolKind:
		w.Bool(v.Bool())
	case protoreflect.StringKind:
		w.Text(v.String())
	case protoreflect.BytesKind:
		w.Text(hex.EncodeToString(v.Bytes()))
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		w.Double(v.Float())
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		w.Unsigned(v.Uint())
	default:
		w.Integer(v.Int())
	}
}

// Word returns the word for a value of an enum: its name in lower case, without the prefix that all
// values share. STATUS_SOLD_OUT is sold_out.
func Word(e protoreflect.Enum) string { return wordsOf(e.Descriptor())[e.Number()] }

// Value is the inverse of [Word], in capitals or not. The error says which words there are.
func Value(e protoreflect.EnumDescriptor, word string) (protoreflect.EnumNumber, error) {
	var all []string
	for i := 1; i < e.Values().Len(); i++ { // the zero is no choice
		n := e.Values().Get(i).Number()
		if all = append(all, wordsOf(e)[n]); strings.EqualFold(word, wordsOf(e)[n]) {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%.40q, want %s", word, strings.Join(all, ", "))
}

// words are the words of enums: a map[protoreflect.EnumNumber]string for each descriptor.
var words sync.Map

func wordsOf(e protoreflect.EnumDescriptor) map[protoreflect.EnumNumber]string {
	if known, ok := words.Load(e); ok {
		return known.(map[protoreflect.EnumNumber]string)
	}
	// The zero of each enum tells the prefix: STATUS_UNSPECIFIED.
	prefix := strings.TrimSuffix(string(e.Values().ByNumber(0).Name()), "UNSPECIFIED")
	all := make(map[protoreflect.EnumNumber]string)
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		all[v.Number()] = strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix))
	}
	words.Store(e, all)
	return all
}
