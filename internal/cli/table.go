package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji/internal/contract"
)

// Everything that a command prints goes through this file. Ids, reasons, codes and a server's messages can
// hold any characters. A terminal obeys some of them, a new line can look like another event, and a
// spreadsheet takes a cell that begins with = for a formula.

// fprintf writes to a table's buffer, whose Flush reports errors. In its arguments, unless they are [markup],
// it escapes characters that a terminal does not show, as Go does: \x1b, \n, \u202e.
func fprintf(w io.Writer, format string, args ...any) {
	for i := range args {
		args[i] = filling(args[i])
	}
	_, _ = fmt.Fprintf(w, format, args...)
}

// sprintf returns what fprintf would write.
func sprintf(format string, args ...any) string {
	var b strings.Builder
	fprintf(&b, format, args...)
	return b.String()
}

// newColumns returns a table whose columns fprintf separates by tabs. Flush writes it.
func newColumns(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// rows writes a table: the heads, and a row of cells for each of all.
func rows[T any](w io.Writer, heads string, all []T, cells func(T) []any) {
	fprintf(w, "%s\n", markup(heads))
	for _, one := range all {
		row := cells(one)
		fprintf(w, strings.TrimSuffix(strings.Repeat("%v\t", len(row)), "\t")+"\n", row...)
	}
}

// markup is text with tabs and new lines that are meant. All else in it is escaped.
type markup string

// filled is text that fprintf fills in, with whatever verb.
type filled struct {
	text string
	keep string // what is not escaped, though it is not shown
}

// Format implements [fmt.Formatter].
func (s filled) Format(f fmt.State, verb rune) {
	text := s.text
	if verb == 's' || verb == 'v' { // %q and %x escape by themselves
		text = escape(text, s.keep)
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), text)
}

// filling returns what fprintf fills in for an argument.
func filling(arg any) any {
	switch v := arg.(type) {
	case nil, fmt.Formatter:
		return arg
	case string:
		return filled{text: v}
	case []byte:
		return filled{text: string(v)}
	case markup:
		return filled{string(v), "\t\n"}
	case error:
		return filled{text: v.Error()}
	}
	switch v := reflect.ValueOf(arg); v.Kind() {
	case reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return arg // its name, if it has a method String, is Kuji's own
	default:
		return filled{text: fmt.Sprint(arg)}
	}
}

// escape replaces what a terminal does not show, but for the characters in keep.
func escape(s, keep string) string {
	hidden := func(c rune) bool { return !unicode.IsGraphic(c) && !strings.ContainsRune(keep, c) }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		c, n := utf8.DecodeRuneInString(s)
		switch {
		case c == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case hidden(c):
			quoted := strconv.QuoteRune(c)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(c)
		}
		s = s[n:]
	}
	return b.String()
}

// word returns an id as one word of a line. It quotes an id, as Go does, that has spaces, characters that a
// terminal does not show, or a quote in front. No two ids look alike then, nor like the words after them.
func word(id string) string {
	odd := func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsGraphic(c) }
	if id != "" && id[0] != '"' && utf8.ValidString(id) && !strings.ContainsFunc(id, odd) {
		return id
	}
	return strconv.QuoteToGraphic(id)
}

// plain is a message of the API in plain form, with the request id of a command before it.
type plain struct {
	proto.Message
	requestID string
}

// MarshalJSON implements [json.Marshaler].
func (p plain) MarshalJSON() ([]byte, error) {
	text := contract.Form{}.AppendJSON(nil, p.Message)
	if p.requestID == "" {
		return text, nil
	}
	id, err := json.Marshal(p.requestID)
	return slices.Concat([]byte(`{"request_id":`), id, []byte(","), text[1:]), err // a response is never empty
}

// encodeJSON writes a value as JSON, on a line of its own.
func encodeJSON(w io.Writer, v any) error {
	if m, ok := v.(proto.Message); ok {
		if _, done := v.(plain); !done {
			v = plain{Message: m}
		}
	}
	e := json.NewEncoder(jsonWriter{w})
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// jsonWriter writes characters that a terminal does not show as \u009b. Every Write is whole values.
type jsonWriter struct{ w io.Writer }

// Write implements [io.Writer].
func (j jsonWriter) Write(p []byte) (int, error) {
	hidden := func(c rune) bool { return c >= 0x7f && !unicode.IsGraphic(c) }
	out := p
	if bytes.ContainsFunc(p, hidden) {
		out = make([]byte, 0, len(p)+16)
		for _, c := range string(p) {
			if hidden(c) {
				quoted := strconv.QuoteRuneToASCII(c) // \x7f, \u009b or \U000e0001
				if c <= 0xff {
					quoted = fmt.Sprintf(`'\u%04x'`, c)
				} else if c > 0xffff {
					quoted = fmt.Sprintf(`'\u%04x\u%04x'`, 0xd800+(c-0x10000)>>10, 0xdc00+(c-0x10000)&0x3ff)
				}
				out = append(out, quoted[1:len(quoted)-1]...)
				continue
			}
			out = utf8.AppendRune(out, c)
		}
	}
	if _, err := j.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// csvRows writes rows of CSV that a spreadsheet takes for text and numbers.
type csvRows struct{ *csv.Writer }

func newCSV(w io.Writer) csvRows { return csvRows{csv.NewWriter(w)} }

// Write writes a row. A cell that a spreadsheet would take for a formula gets an apostrophe in front, even if
// it has one: uncell takes off exactly what cell has added.
func (r csvRows) Write(row ...string) error {
	cells := make([]string, len(row))
	for i, text := range row {
		cells[i] = cell(text)
	}
	return r.Writer.Write(cells)
}

// formulaStarts are the characters at the beginning of a cell that make a spreadsheet compute.
const formulaStarts = "=+-@\t\r\n"

func cell(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil && text[0] != '+' && strings.Trim(text, "0123456789.e+-") == "" {
		return text // -0.5 is a number
	}
	if bare := strings.TrimLeft(text, "'"); bare != "" && strings.ContainsRune(formulaStarts, rune(bare[0])) {
		return "'" + text
	}
	return text
}

func uncell(text string) string {
	if rest, ok := strings.CutPrefix(text, "'"); ok && cell(rest) == text {
		return rest
	}
	return text
}

// counted returns a number with its noun: 1 pool, 2 pools, 3 entries.
func counted[N int | int64 | uint64](n N, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// when returns a text if something is so.
func when(so bool, text string) string { return choose(so, text, "") }

// choose returns yes if something is so, and otherwise no.
func choose[T any](so bool, yes, no T) T {
	if so {
		return yes
	}
	return no
}

// joined joins the texts that are not empty.
func joined(parts []string, with string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), with)
}

// each returns what is made of each value; nil of none.
func each[From, To any](all []From, of func(From) To) (out []To) {
	for _, one := range all {
		out = append(out, of(one))
	}
	return out
}
