package main

import (
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// schema describes a type as JSON.
func (d *document) schema(name protoreflect.FullName) *object {
	if e := d.enums[name]; e != nil {
		return enumSchema(e)
	}
	m := d.messages[name]
	if m == nil {
		panic(fmt.Sprintf("openapi: %s is no type of the contract", name))
	}
	fields := obj()
	for _, f := range m.Fields {
		s := d.field(f)
		if of := f.Oneof; of != nil && !of.Desc.IsSynthetic() {
			s.set("x-oneof", string(of.Desc.Name()))
		}
		fields.set(f.Desc.JSONName(), s)
	}
	out := obj("type", "object", "description", text(m.Comments.Leading))
	if len(fields.Content) > 0 {
		out.set("properties", fields)
	}
	if strings.HasSuffix(string(name), "Request") { // an unknown field is an error
		out.set("additionalProperties", false)
	}
	return out
}

func enumSchema(e *protogen.Enum) *object {
	about := text(e.Comments.Leading)
	for _, v := range e.Values {
		if says := text(v.Comments.Leading); says != "" {
			about += fmt.Sprintf("\n- `%s`: %s", v.Desc.Name(), strings.ReplaceAll(says, "\n", " "))
		}
	}
	return obj("type", "string", "description", about, "enum", list(e.Values, func(v *protogen.EnumValue) any { return string(v.Desc.Name()) }))
}

// field describes a field of a message.
func (d *document) field(f *protogen.Field) *object {
	about := text(f.Comments.Leading)
	switch {
	case f.Desc.IsMap():
		return obj("type", "object", "description", about, "additionalProperties", d.value(f.Message.Fields[1]))
	case f.Desc.IsList():
		return obj("type", "array", "description", about, "items", d.value(f))
	}
	out := d.value(f)
	out.set("description", about)
	return out
}

// value describes one value of a field.
func (d *document) value(f *protogen.Field) *object {
	integer := func(from, to int64) *object { return obj("type", "integer", "minimum", from, "maximum", to) }
	switch f.Desc.Kind() {
	case protoreflect.BoolKind:
		return obj("type", "boolean")
	case protoreflect.StringKind:
		return obj("type", "string")
	case protoreflect.BytesKind:
		return obj("type", "string", "contentEncoding", "base64")
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return obj("type", "number")
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return integer(math.MinInt32, math.MaxInt32)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return integer(0, math.MaxUint32)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return obj("type", "string", "format", "int64", "pattern", "^-?[0-9]{1,19}$")
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return obj("type", "string", "format", "uint64", "pattern", "^[0-9]{1,20}$")
	case protoreflect.EnumKind:
		return d.ref(string(f.Enum.Desc.FullName()))
	case protoreflect.MessageKind:
		return d.ref(string(f.Message.Desc.FullName()))
	}
	panic(fmt.Sprintf("openapi: %s is of kind %v", f.Desc.FullName(), f.Desc.Kind()))
}
