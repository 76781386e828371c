package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// maxYAMLDepth is how deeply a file may be nested; an atomic needs six levels.
const maxYAMLDepth = 16

// yamlFile is a YAML (or JSON) document, read strictly: errors name file, line and column.
type yamlFile struct {
	name string
	root *yaml.Node // a mapping
}

// parseYAML reads a document that is a mapping. An empty file is an empty one.
func parseYAML(name string, data []byte) (*yamlFile, error) {
	f := &yamlFile{name, &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxYAMLDepth))))
	if err != nil {
		return nil, fmt.Errorf("%s: the YAML reader failed: %w", name, err)
	}
	var document, second yaml.Node
	switch err := loader.Load(&document); {
	case errors.Is(err, io.EOF), err == nil && len(document.Content) == 0:
		return f, nil
	case err != nil:
		return nil, f.syntax(err)
	}
	if n := document.Content[0]; n.Kind != yaml.ScalarNode || n.Tag != "!!null" || n.Value != "" {
		f.root = n
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return nil, f.errorf(&second, "expected one document, found another one here")
	case !errors.Is(err, io.EOF):
		return nil, f.syntax(err)
	}
	return f, nil
}

// syntax says where a file is no YAML.
func (f *yamlFile) syntax(err error) error {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return usagef("%s: not valid YAML: %w", f.name, err)
	}
	at := e.Mark
	if at.Line == 0 {
		at = e.ContextMark
	}
	return usagef("%s:%d:%d: not valid YAML: %s", f.name, max(1, at.Line), max(1, at.Column), e.Message)
}

// errorf says what is wrong at a place in the file.
func (f *yamlFile) errorf(n *yaml.Node, format string, args ...any) error {
	return usagef("%s: %w", f.place(n), fmt.Errorf(format, args...))
}

func (f *yamlFile) place(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", f.name, n.Line, n.Column)
}

// mapping calls each for every key of a mapping, in order. what names what is expected, for errors.
func (f *yamlFile) mapping(n *yaml.Node, what string, each func(key string, k, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return f.errorf(n, "expected %s", what)
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := f.scalar(n.Content[i])
		if err != nil {
			return err
		}
		if seen[key] {
			return f.errorf(n.Content[i], "%s stands here for the second time", key)
		}
		seen[key] = true
		if err := each(key, n.Content[i], n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// keys calls, for every key of a mapping, the function that all has for it.
func (f *yamlFile) keys(n *yaml.Node, what string, all map[string]func(v *yaml.Node) error) error {
	return f.mapping(n, what, func(key string, k, v *yaml.Node) error {
		if all[key] == nil {
			return f.errorf(k, "unknown key %s; expected one of %s", key, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
		return all[key](v)
	})
}

// text returns a function that reads one value.
func (f *yamlFile) text(to *string) func(*yaml.Node) error {
	return func(v *yaml.Node) (err error) {
		*to, err = f.scalar(v)
		return err
	}
}

// list calls each for every value of a list, in order.
func (f *yamlFile) list(n *yaml.Node, what string, each func(v *yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode {
		return f.errorf(n, "expected %s", what)
	}
	for _, v := range n.Content {
		if err := each(v); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns the text of one value as it stands in the file.
func (f *yamlFile) scalar(n *yaml.Node) (string, error) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Tag == "!!merge":
		return "", f.errorf(n, "expected a plain value, without anchors, aliases, merge keys or tags")
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		return "", f.errorf(n, "expected one value, such as a text or a number")
	}
	return n.Value, nil
}
