package server

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// An answer over the Redis protocol is the message of the API as a map, with the contract's names. As
// in the API's JSON, what is not there is empty, zero or false. These differ from the JSON:
//
//   - stacks of items are one map of items to quantities;
//   - enums are in lower case, without the prefix that is the same for all: sold_out;
//   - bytes are hexadecimal, and integers are integers.

// replyShape is what is known of a message in order to write it.
type replyShape struct{ fields []replyField }

type replyField struct {
	desc  protoreflect.FieldDescriptor
	key   string // as it is sent
	list  bool
	enum  map[protoreflect.EnumNumber]string
	items bool        // a list of stacks
	inner *replyShape // of a message
}

// replyShapes returns the shapes of the answers to Redis commands.
func replyShapes() map[protoreflect.FullName]*replyShape {
	known := make(map[protoreflect.FullName]*replyShape)
	for _, m := range []protoreflect.ProtoMessage{&kujiv1.Result{}, &kujiv1.Player{}, &kujiv1.Pool{}, &kujiv1.Odds{}} {
		newReplyShape(m.ProtoReflect().Descriptor(), known)
	}
	return known
}

func newReplyShape(m protoreflect.MessageDescriptor, known map[protoreflect.FullName]*replyShape) *replyShape {
	if s := known[m.FullName()]; s != nil {
		return s
	}
	s := &replyShape{fields: make([]replyField, m.Fields().Len())}
	known[m.FullName()] = s
	stack := (&kujiv1.Stack{}).ProtoReflect().Descriptor().FullName()
	for i := range s.fields {
		desc := m.Fields().Get(i)
		var key resp
		key.bulk(string(desc.Name()))
		f := replyField{desc: desc, key: string(key.out), list: desc.IsList()}
		switch desc.Kind() {
		case protoreflect.MessageKind:
			f.items = f.list && desc.Message().FullName() == stack
			f.inner = newReplyShape(desc.Message(), known)
		case protoreflect.EnumKind:
			f.enum = enumWords(desc.Enum())
		}
		s.fields[i] = f
	}
	return s
}

// enumWords returns the values of an enum without their common prefix, which its zero tells:
// STATUS_UNSPECIFIED.
func enumWords(e protoreflect.EnumDescriptor) map[protoreflect.EnumNumber]string {
	prefix := strings.TrimSuffix(string(e.Values().ByNumber(0).Name()), "UNSPECIFIED")
	words := make(map[protoreflect.EnumNumber]string)
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		words[v.Number()] = strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix))
	}
	return words
}

// message writes a message as a map.
func (s *replyShape) message(w *resp, m protoreflect.Message) {
	n := 0
	for i := range s.fields {
		if m.Has(s.fields[i].desc) {
			n++
		}
	}
	w.fields(n)
	for i := range s.fields {
		f := &s.fields[i]
		if !m.Has(f.desc) {
			continue
		}
		w.out = append(w.out, f.key...)
		switch v := m.Get(f.desc); {
		case f.items:
			f.stacks(w, v.List())
		case f.list:
			list := v.List()
			w.array(list.Len())
			for j := range list.Len() {
				f.value(w, list.Get(j))
			}
		default:
			f.value(w, v)
		}
	}
}

// stacks writes items and quantities as one map. No list of the contract has an item twice.
func (f *replyField) stacks(w *resp, list protoreflect.List) {
	w.fields(list.Len())
	for i := range list.Len() {
		stack, ok := list.Get(i).Message().Interface().(*kujiv1.Stack)
		if !ok {
			continue // not in this contract
		}
		w.bulk(stack.GetItem())
		w.unsigned(stack.GetQuantity())
	}
}

func (f *replyField) value(w *resp, v protoreflect.Value) {
	switch f.desc.Kind() {
	case protoreflect.MessageKind:
		f.inner.message(w, v.Message())
	case protoreflect.EnumKind:
		w.bulk(f.enum[v.Enum()])
	case protoreflect.BoolKind:
		w.boolean(v.Bool())
	case protoreflect.StringKind:
		w.bulk(v.String())
	case protoreflect.BytesKind:
		w.bulk(hex.EncodeToString(v.Bytes()))
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		w.double(v.Float())
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		w.unsigned(v.Uint())
	default:
		w.integer(v.Int())
	}
}

// unsigned writes a number. The protocol's integers have 63 bits and a sign: a larger one is a string.
func (w *resp) unsigned(n uint64) {
	if n > math.MaxInt64 {
		w.bulk(strconv.FormatUint(n, 10))
		return
	}
	w.integer(int64(n))
}
