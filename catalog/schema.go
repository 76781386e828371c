package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

//go:generate go test -run ^TestGenerated$ . -update

// SchemaID is the address under which editors find the JSON Schema.
const SchemaID = "https://raw.githubusercontent.com/kuji-dev/kuji/main/catalog/schema.json"

// Schema returns the JSON Schema (draft 2020-12) of the YAML format for editors, as indented JSON, always
// the same bytes. Only [Parse] checks what spans several places (references, sums of weights, cycles) and
// how numbers are spelt.
func Schema() []byte {
	d := definitions{}
	root := rootShape.schema(d)
	schema := d[rootShape.name]
	if root.Ref == "" || schema == nil {
		panic("catalog: the root of the schema is not a definition")
	}
	delete(d, rootShape.name)
	d["id"] = &schemaNode{
		Type: "string", MinLength: 1, MaxLength: MaxID, Pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`,
		Description: "A letter or digit, then letters, digits, \".\", \"_\" or \"-\", at most 64 in all.",
	}
	out := *schema
	out.Draft = "https://json-schema.org/draft/2020-12/schema"
	out.ID = SchemaID
	out.Title = "Kuji catalog"
	out.Defs = d
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(&out); err != nil {
		panic(fmt.Sprintf("catalog: the schema cannot be encoded: %v", err)) // only a fault in the table can
	}
	return b.Bytes()
}

// definitions are the $defs of the schema, by name.
type definitions map[string]*schemaNode

// schemaNode is the part of JSON Schema that is needed here.
type schemaNode struct {
	Draft                string                 `json:"$schema,omitempty"`
	ID                   string                 `json:"$id,omitempty"`
	Ref                  string                 `json:"$ref,omitempty"`
	Title                string                 `json:"title,omitempty"`
	Description          string                 `json:"description,omitempty"`
	Type                 string                 `json:"type,omitempty"`
	Const                any                    `json:"const,omitempty"`
	Default              any                    `json:"default,omitempty"`
	Minimum              json.Number            `json:"minimum,omitempty"`
	Maximum              json.Number            `json:"maximum,omitempty"`
	MinLength            int                    `json:"minLength,omitempty"`
	MaxLength            int                    `json:"maxLength,omitempty"`
	Pattern              string                 `json:"pattern,omitempty"`
	Format               string                 `json:"format,omitempty"`
	Items                *schemaNode            `json:"items,omitempty"`
	MinItems             int                    `json:"minItems,omitempty"`
	MaxItems             int                    `json:"maxItems,omitempty"`
	Properties           properties             `json:"properties,omitempty"`
	PropertyNames        *schemaNode            `json:"propertyNames,omitempty"`
	AdditionalProperties any                    `json:"additionalProperties,omitempty"`
	MinProperties        int                    `json:"minProperties,omitempty"`
	MaxProperties        int                    `json:"maxProperties,omitempty"`
	Required             []string               `json:"required,omitempty"`
	DependentRequired    map[string][]string    `json:"dependentRequired,omitempty"`
	OneOf                []*schemaNode          `json:"oneOf,omitempty"`
	AnyOf                []*schemaNode          `json:"anyOf,omitempty"`
	Not                  *schemaNode            `json:"not,omitempty"`
	If                   *schemaNode            `json:"if,omitempty"`
	Then                 *schemaNode            `json:"then,omitempty"`
	AllOf                []*schemaNode          `json:"allOf,omitempty"`
	Defs                 map[string]*schemaNode `json:"$defs,omitempty"`
}

// properties keep the order of the table, which is the order to write in.
type properties []property

type property struct {
	name  string
	value *schemaNode
}

// MarshalJSON writes the properties as one object.
func (p properties) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, one := range p {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(one.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(one.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

func jsonNumber(v uint64) json.Number { return json.Number(strconv.FormatUint(v, 10)) }

// schema describes the object as a definition and returns a reference to it.
func (o *object[T]) schema(d definitions) *schemaNode {
	ref := &schemaNode{Ref: "#/$defs/" + o.name}
	if d[o.name] != nil {
		return ref
	}
	n := &schemaNode{Description: o.doc, Type: "object", AdditionalProperties: false}
	d[o.name] = n
	for i := range o.fields {
		f := &o.fields[i]
		at := slices.IndexFunc(n.Properties, func(p property) bool { return p.name == f.name })
		switch {
		case f.when == "":
			n.Properties = append(n.Properties, property{f.name, f.describe(d)})
		case at < 0: // what it holds is said for each variant below
			n.Properties = append(n.Properties, property{f.name, &schemaNode{Description: f.doc}})
		}
		if f.instead != "" {
			n.AnyOf = []*schemaNode{{Required: []string{f.name}}, {Required: []string{f.instead}}}
			continue
		}
		if f.required && (f.when == "" || o.everyVariant(f.name)) && !slices.Contains(n.Required, f.name) {
			n.Required = append(n.Required, f.name)
		}
		if f.requires != "" {
			if n.DependentRequired == nil {
				n.DependentRequired = map[string][]string{}
			}
			n.DependentRequired[f.name] = []string{f.requires}
		}
	}
	if o.some {
		n.MinProperties = 1
	}
	for _, v := range o.variants() {
		if then := o.variantSchema(d, v); then != nil {
			is := &schemaNode{Properties: properties{{o.by, &schemaNode{Const: v}}}}
			if v != o.byDefault {
				is.Required = []string{o.by}
			}
			n.AllOf = append(n.AllOf, &schemaNode{If: is, Then: then})
		}
	}
	return ref
}

// describe is the field's own schema, with its text and its default.
func (f *field[T]) describe(d definitions) *schemaNode {
	if f.never != "" {
		return &schemaNode{Description: f.doc, Not: &schemaNode{}}
	}
	n := *f.schema(d)
	n.Description = f.doc
	if f.value != "" {
		n.Default = f.value
		if json.Valid([]byte(f.value)) { // a number, true or false
			n.Default = json.RawMessage(f.value)
		}
	}
	return &n
}

// everyVariant tells whether the key is required whatever the by key says.
func (o *object[T]) everyVariant(name string) bool {
	for _, v := range o.variants() {
		at := o.find(name, v)
		if f := &o.fields[at]; f.when != "" && f.when != v || !f.required {
			return false
		}
	}
	return true
}

// variantSchema describes the keys that depend on the by key when it is v.
func (o *object[T]) variantSchema(d definitions, v string) *schemaNode {
	then := &schemaNode{}
	for i := range o.fields {
		f := &o.fields[i]
		if f.when == "" || slices.ContainsFunc(then.Properties, func(p property) bool { return p.name == f.name }) {
			continue
		}
		if mine := &o.fields[o.find(f.name, v)]; mine.when == v {
			then.Properties = append(then.Properties, property{f.name, mine.describe(d)})
			if mine.required {
				then.Required = append(then.Required, f.name)
			}
		} else {
			then.Properties = append(then.Properties, property{f.name, &schemaNode{Not: &schemaNode{}}})
		}
	}
	if len(then.Properties) == 0 {
		return nil
	}
	return then
}
