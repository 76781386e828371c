package document

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// Quote shows a text found in a source, cut to a length fit for a message.
func Quote(s string) string {
	const most = 48
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 { // not inside a character
		cut--
	}
	return strconv.Quote(s[:cut] + "…")
}

const anyQuotes = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// Quoted reports whether a scalar is written in quotes, or as a block.
func Quoted(n *yaml.Node) bool { return n.Style&anyQuotes != 0 }

// Describe names what stands in the source.
func Describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind != yaml.ScalarNode:
		return "something else"
	case n.Value == "" && !Quoted(n):
		return "an empty value"
	case Quoted(n) || n.Tag == "!!str" || n.Tag == "!!timestamp":
		return Quote(n.Value)
	default: // a number, true, false or null: as it stands, without quotes
		return Clip(n.Value)
	}
}

// Clip cuts and escapes like Quote, without the quotes.
func Clip(s string) string {
	q := Quote(s)
	return q[1 : len(q)-1]
}

// Refused says why a node is refused, or nothing: aliases can make a small source huge, and anchors and tags change what
// a reader sees.
func Refused(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return fmt.Sprintf("aliases (*%s) are not supported; write the value out", Clip(n.Value))
	case n.Anchor != "":
		return fmt.Sprintf("anchors (&%s) are not supported; write the value out where it is needed", Clip(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0 || n.Tag == "!":
		return fmt.Sprintf("tags (%s) are not supported", Clip(n.Tag))
	}
	return ""
}
