package catalog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/kuji-dev/kuji/catalog"
)

const (
	schemaFile    = "schema.json"
	referenceFile = "../docs/reference/catalog-keys.md"
	referenceFrom = "<!-- keys: generated from the table of the parser by go generate ./catalog -->\n"
	referenceTo   = "<!-- end of keys -->\n"
)

// TestGenerated compares the generated files with what stands in the tree.
func TestGenerated(t *testing.T) {
	current(t, schemaFile, catalog.Schema())
	doc, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), referenceFrom)
	_, after, ok2 := strings.Cut(rest, referenceTo)
	if !ok || !ok2 {
		t.Fatalf("%s has no section for the keys", referenceFile)
	}
	current(t, referenceFile, []byte(before+referenceFrom+reference(t)+referenceTo+after))
}

func current(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not current; run go generate ./catalog (%v)", file, err)
	}
}

// node is the part of the schema that the reference shows.
type node struct {
	Ref         string                    `json:"$ref"`
	Description string                    `json:"description"`
	Type        string                    `json:"type"`
	Const       any                       `json:"const"`
	Default     json.RawMessage           `json:"default"`
	Minimum     json.Number               `json:"minimum"`
	Maximum     json.Number               `json:"maximum"`
	MaxLength   int                       `json:"maxLength"`
	Format      string                    `json:"format"`
	Pattern     string                    `json:"pattern"`
	Items       *node                     `json:"items"`
	MaxItems    int                       `json:"maxItems"`
	Properties  orderedNodes              `json:"properties"`
	Additional  json.RawMessage           `json:"additionalProperties"`
	MaxProps    int                       `json:"maxProperties"`
	Names       *node                     `json:"propertyNames"`
	Required    []string                  `json:"required"`
	OneOf       []*node                   `json:"oneOf"`
	Not         *node                     `json:"not"`
	AllOf       []struct{ If, Then node } `json:"allOf"`
	AnyOf       []node                    `json:"anyOf"`
	Defs        orderedNodes              `json:"$defs"`
}

type orderedNodes []struct {
	name string
	node node
}

func (o *orderedNodes) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var n node
		if err := d.Decode(&n); err != nil {
			return err
		}
		*o = append(*o, struct {
			name string
			node node
		}{name.(string), n})
	}
	return nil
}

// reference renders the schema as tables, one for each mapping with fixed keys.
func reference(t *testing.T) string {
	var root node
	if err := json.Unmarshal(catalog.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	if root.Properties == nil || root.Defs == nil {
		t.Fatal("no keys in the schema")
	}
	var b strings.Builder
	table := func(title string, n *node) {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n| key | value | |\n| --- | --- | --- |\n", title, wrapped(n.Description))
		for _, p := range n.Properties {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.name, value(n, p.name, &p.node), p.node.Description)
		}
		b.WriteString("\n")
	}
	table("The catalog", &root)
	for _, name := range []string{"item", "pool", "bundle", "price_by", "price_step", "free", "redeem", "limit", "budget", "condition", "rolls", "track", "rising", "guarantee",
		"weighted_entry", "raffle_entry", "each_entry", "moments", "luck", "luck_step", "reward", "times", "quantity", "idempotency", "guesses",
		"counter", "facts", "season_period", "streak", "most", "counted", "quest", "tier", "ranked", "prize", "grows", "beyond", "day", "season",
		"round", "stake", "stake_count", "ticket", "entrants", "winners", "winner", "win_by", "rerolls", "rarity"} {
		found := false
		for _, d := range root.Defs {
			if d.name == name {
				table(strings.ToUpper(name[:1])+strings.ReplaceAll(name[1:], "_", " "), &d.node)
				found = true
			}
		}
		if !found {
			t.Fatalf("no definition %s", name)
		}
	}
	if len(root.Defs) != 50 { // those and id
		t.Fatalf("%d definitions", len(root.Defs))
	}
	return b.String()
}

// wrapped breaks a text of one line into lines of at most 100 bytes.
func wrapped(text string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(text) {
		switch {
		case width == 0:
		case width+1+len(word) > 100:
			b.WriteByte('\n')
			width = 0
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String()
}

// value says in words what a key of parent takes.
func value(parent *node, name string, n *node) string {
	if n.Not != nil {
		return "not allowed"
	}
	v := words(n)
	for _, c := range parent.AllOf {
		for _, p := range c.Then.Properties {
			if p.name == name && p.node.Not == nil {
				if len(parent.AllOf) > 1 && v != "" {
					v += "; "
				}
				v += fmt.Sprintf("with `%s: %v`: %s", c.If.Properties[0].name, c.If.Properties[0].node.Const, words(&p.node))
				if !contains(parent.Required, name) && contains(c.Then.Required, name) {
					v += "; required"
				}
			}
		}
	}
	switch {
	case len(parent.AnyOf) > 1 && contains(parent.AnyOf[0].Required, name):
		v += fmt.Sprintf("; required without `%s`", parent.AnyOf[1].Required[0])
	case contains(parent.Required, name):
		v += "; required"
	case n.Default != nil:
		v += fmt.Sprintf("; default `%s`", strings.Trim(string(n.Default), `"`))
	}
	return v
}

func contains(all []string, s string) bool {
	for _, one := range all {
		if one == s {
			return true
		}
	}
	return false
}

func words(n *node) string {
	switch {
	case strings.HasSuffix(n.Ref, "/id"):
		return "an id"
	case n.Ref != "":
		name := n.Ref[strings.LastIndex(n.Ref, "/")+1:]
		return fmt.Sprintf("[%s](#%s)", strings.ReplaceAll(name, "_", " "), strings.ReplaceAll(name, "_", "-"))
	case n.Const != nil:
		return fmt.Sprintf("`%v`", n.Const)
	case len(n.OneOf) > 0:
		var all []string
		for _, one := range n.OneOf {
			w := words(one)
			if one.Const != nil && one.Description != "" {
				w += " (" + strings.TrimSuffix(one.Description, ".") + ")"
			}
			all = append(all, w)
		}
		return strings.Join(all, ", or ")
	case n.Type == "integer" && n.Minimum == n.Maximum:
		return fmt.Sprintf("`%s`", n.Minimum)
	case n.Type == "integer":
		return fmt.Sprintf("a whole number from %s to %s", n.Minimum, n.Maximum)
	case n.Type == "number":
		if n.Minimum == "" {
			return "a number"
		}
		return fmt.Sprintf("a number from %s to %s", n.Minimum, n.Maximum)
	case n.Format == "date-time":
		return "a time"
	case n.Type == "string" && n.MaxLength == 0:
		return "a duration"
	case n.Type == "string":
		return fmt.Sprintf("a text of at most %d bytes", n.MaxLength)
	case n.Type == "array":
		each := words(n.Items)
		if !strings.HasPrefix(each, "a ") && !strings.HasPrefix(each, "an ") {
			each = "a " + each
		}
		return fmt.Sprintf("a list of at most %d, each %s", n.MaxItems, each)
	case n.Type == "boolean":
		return "`true` or `false`"
	case n.Type == "object" && n.MaxProps > 0:
		var inner node
		if json.Unmarshal(n.Additional, &inner) == nil {
			from := "ids"
			if n.Names != nil && n.Names.MaxLength == catalog.MaxLanguage {
				from = "languages"
			}
			return fmt.Sprintf("a mapping from %s, at most %d, to %s", from, n.MaxProps, words(&inner))
		}
	}
	return ""
}

var errNotYAML = errors.New("not one YAML document that JSON can express")

var resolvedSchema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(catalog.Schema(), &s); err != nil {
		return nil, err
	}
	return s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
})

// schemaError validates a source the way an editor does: as YAML turned into
// JSON, by an independent implementation of JSON Schema.
func schemaError(t *testing.T, source []byte) error {
	t.Helper()
	schema, err := resolvedSchema()
	if err != nil {
		t.Fatal(err)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	var doc, rest yaml.Node
	if err := loader.Load(&doc); err != nil {
		return errNotYAML
	}
	if err := loader.Load(&rest); !errors.Is(err, io.EOF) {
		return errNotYAML
	}
	v, err := toJSON(&doc)
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// toJSON turns a YAML tree into what encoding/json would give.
func toJSON(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return toJSON(n.Content[0])
	case yaml.AliasNode:
		return toJSON(n.Alias)
	case yaml.SequenceNode:
		all := []any{}
		for _, c := range n.Content {
			v, err := toJSON(c)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case yaml.MappingNode:
		all := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Kind != yaml.ScalarNode {
				return nil, errNotYAML
			}
			if _, dup := all[n.Content[i].Value]; dup {
				return nil, errNotYAML
			}
			v, err := toJSON(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			all[n.Content[i].Value] = v
		}
		return all, nil
	}
	switch n.Tag {
	case "!!int", "!!float", "!!bool", "!!null":
		var v any
		if err := n.Load(&v); err != nil {
			return nil, errNotYAML
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, errNotYAML // NaN and the like
		}
		d := json.NewDecoder(bytes.NewReader(b))
		err = d.Decode(&v)
		return v, err
	}
	return n.Value, nil
}

// TestDocument parses the catalog that the documentation begins with.
func TestDocument(t *testing.T) {
	doc, err := os.ReadFile("../docs/reference/catalog.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "```yaml\n")
	source, _, ok2 := strings.Cut(rest, "```\n")
	if !ok || !ok2 || !strings.Contains(source, "kuji: 1") {
		t.Fatal("no catalog in the documentation")
	}
	if _, err := catalog.Parse([]byte(source)); err != nil {
		t.Error(err)
	}
	if err := schemaError(t, []byte(source)); err != nil {
		t.Error(err)
	}
}
