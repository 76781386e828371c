package document

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// syntax reports an error of the YAML library, with its place. If the cause is a common one (a tab,
// indentation, a colon or another sign in a text), it says so and shows the line.
func (s *source) syntax(err error) {
	e := (*yaml.LoadError)(nil)
	if !errors.As(err, &e) {
		s.add(1, 1, "not valid YAML: %s", err)
		return
	}
	begins := ""
	if c := e.ContextMark; c.Line > 0 && c != e.Mark {
		begins = fmt.Sprintf(" that begins at %d:%d", c.Line, c.Column)
	}
	mark := e.Mark
	if mark.Line == 0 {
		mark = e.ContextMark
	}
	line, column := max(1, mark.Line), max(1, mark.Column)
	cause := slip{message: e.Message, begins: begins, column: column, sameLine: e.ContextMark.Line == mark.Line}
	cause.line, cause.before = lineOf(s.text, line)
	if said := cause.said(); said != "" {
		s.add(line, column, "not valid YAML: %s", said)
		return
	}
	message := e.Message
	if e.ContextMsg != "" {
		message += " (" + e.ContextMsg + begins + ")"
	}
	s.add(line, column, "not valid YAML: %s", message)
}

// slip is what the YAML library says of a line, and the line.
type slip struct {
	message, begins string
	line, before    string // before is the last line before it with more than spaces and comments
	column          int
	sameLine        bool // what cannot go on began in the line
}

var (
	leadingTab  = regexp.MustCompile(`^ *\t`)
	noSpace     = regexp.MustCompile(`^\s*(?:- )?([A-Za-z0-9._-]+):[^\s/:]`)
	isKey       = regexp.MustCompile(`^\s*(?:- )?["']?[^\s"'{}\[\],:]+["']?\s*:(\s|$)`)
	colonInText = regexp.MustCompile(`:\s*[^\s"'{\[#|>][^"'{}\[\]]*:(\s|$)`)
)

// said says in plain words what is wrong; "": the library's words are all that is known.
func (s *slip) said() string {
	at := "" // the character at the column
	if chars := []rune(s.line); s.column <= len(chars) {
		at = string(chars[s.column-1])
	}
	shown := ", found " + Quote(s.line)
	switch {
	case leadingTab.MatchString(s.line), at == "\t":
		return "a tab stands in front of a value: YAML takes only spaces there" + shown
	case s.message == "found character that cannot start any token":
		return fmt.Sprintf("a text cannot begin with %s: put the text in quotes%s", at, shown)
	case strings.HasPrefix(s.message, "unknown anchor"):
		return "a text cannot begin with *: put the text in quotes" + shown
	case s.message == "found unexpected end of stream" && s.begins != "":
		return "the quotes are not closed: the text" + s.begins + " has no end"
	case s.message == "mapping values are not allowed in this context":
		return s.colon(shown)
	case strings.HasPrefix(s.message, "did not find expected ',' or "):
		closing := s.message[len(s.message)-2 : len(s.message)-1]
		if at == ":" && s.sameLine {
			return "a text that has a colon must be in quotes" + shown
		}
		return fmt.Sprintf("expected a comma or %s, to end the list or mapping%s%s", closing, s.begins, shown)
	case s.message == "did not find expected key", s.message == "did not find expected '-' indicator":
		return s.indentation(shown)
	}
	return ""
}

// colon says why a colon stands in the wrong place.
func (s *slip) colon(shown string) string {
	if m := noSpace.FindStringSubmatch(s.before); m != nil && !isKey.MatchString(s.before) {
		return fmt.Sprintf("expected a space after the colon of %s:, found %s in the line before", m[1], Quote(s.before))
	}
	if colonInText.MatchString(s.line) {
		return "a text that has a colon must be in quotes" + shown
	}
	if !isKey.MatchString(s.before) && strings.TrimSpace(s.before) != "" {
		return "expected a key with a colon in the line before, found " + Quote(s.before)
	}
	return s.indentation(shown)
}

// indentation says how lines are indented.
func (s *slip) indentation(shown string) string {
	if spaces(s.line) == spaces(s.before) {
		return "expected a line like those before it: the list or mapping" + s.begins + " cannot continue with" + strings.TrimPrefix(shown, ", found")
	}
	return fmt.Sprintf("wrong indentation: the keys of a mapping, and the dashes of a list, begin in the same column. This line begins with %d spaces, the one before it with %d%s",
		spaces(s.line), spaces(s.before), shown)
}

func spaces(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// lineOf returns a line of a text, counted from 1, and the last one before it that says something.
func lineOf(text []byte, n int) (line, before string) {
	var last []byte
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if n--; n < 1 {
			return string(line), string(last)
		}
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] != '#' {
			last = line
		}
	}
	return "", string(last)
}
