package server

import (
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of DrawRequest's fields.
const (
	fieldDrawRealm     = 1
	fieldDrawRequestID = 2
	fieldDrawPlayer    = 3
	fieldDrawPool      = 4
	fieldDrawCount     = 5
)

// decode reads a DrawRequest as the codecs of the other way would. It returns
// false for everything that is wrong, or right in an unusual way: then that way
// decides. Strings are parts of one copy of data.
func (d *direct) decode(data []byte, json bool) bool {
	if json {
		return utf8.Valid(data) && d.decodeJSON(string(data))
	}
	return d.decodeProto(data, string(data))
}

// set gives a text field its value. It returns false for other fields.
func (d *direct) set(field protowire.Number, v string) bool {
	switch field {
	case fieldDrawRealm:
		d.realm = v
	case fieldDrawRequestID:
		d.draw.ID = v
	case fieldDrawPlayer:
		d.draw.Player = v
	case fieldDrawPool:
		d.draw.Pool = v
	default:
		return false
	}
	return true
}

// decodeProto reads the binary form. text is the same bytes as data.
func (d *direct) decodeProto(data []byte, text string) bool {
	for at := 0; at < len(data); {
		field, kind, n := protowire.ConsumeTag(data[at:])
		if n < 0 {
			return false
		}
		at += n
		switch {
		case field == fieldDrawCount && kind == protowire.VarintType:
			v, n := protowire.ConsumeVarint(data[at:])
			if n < 0 {
				return false
			}
			at += n
			d.draw.Count = countOf(uint32(v)) // of more bits the lowest count, as everywhere in this format
		case kind == protowire.BytesType:
			v, n := protowire.ConsumeBytes(data[at:])
			if n < 0 || !utf8.Valid(v) || !d.set(field, text[at+n-len(v):at+n]) {
				return false
			}
			at += n
		default:
			return false
		}
	}
	return true
}

// jsonText reads JSON from a text. Its methods return false when they find
// something else than what they look for.
type jsonText struct {
	text string
	at   int
}

// decodeJSON reads one object with fields of DrawRequest, each at most once,
// text without escapes, and the count in digits.
func (d *direct) decodeJSON(text string) bool {
	t := jsonText{text: text}
	if !t.next('{') {
		return false
	}
	if t.next('}') {
		return t.end()
	}
	var seen [fieldDrawCount + 1]bool
	for {
		name, ok := t.word()
		if !ok || !t.next(':') {
			return false
		}
		field := drawField(name)
		if field == 0 || seen[field] {
			return false
		}
		seen[field] = true
		if field == fieldDrawCount {
			v, ok := t.number()
			if !ok {
				return false
			}
			d.draw.Count = countOf(v)
		} else if v, ok := t.word(); !ok || !d.set(field, v) {
			return false
		}
		switch {
		case t.next(','):
		case t.next('}'):
			return t.end()
		default:
			return false
		}
	}
}

// drawField is the number of DrawRequest's field of a name, 0 if there is none.
func drawField(name string) protowire.Number {
	switch name {
	case "realm":
		return fieldDrawRealm
	case "requestId", "request_id":
		return fieldDrawRequestID
	case "player":
		return fieldDrawPlayer
	case "pool":
		return fieldDrawPool
	case "count":
		return fieldDrawCount
	}
	return 0
}

// space skips white space.
func (t *jsonText) space() {
	for t.at < len(t.text) {
		switch t.text[t.at] {
		case ' ', '\t', '\r', '\n':
			t.at++
		default:
			return
		}
	}
}

// next finds the character c behind white space, and takes it.
func (t *jsonText) next(c byte) bool {
	t.space()
	if t.at == len(t.text) || t.text[t.at] != c {
		return false
	}
	t.at++
	return true
}

// end finds nothing but white space.
func (t *jsonText) end() bool {
	t.space()
	return t.at == len(t.text)
}

// word takes a string without escapes.
func (t *jsonText) word() (string, bool) {
	if !t.next('"') {
		return "", false
	}
	from := t.at
	for ; t.at < len(t.text); t.at++ {
		switch c := t.text[t.at]; {
		case c == '"':
			t.at++
			return t.text[from : t.at-1], true
		case c < ' ' || c == '\\':
			return "", false
		}
	}
	return "", false
}

// number takes digits that fit 32 bits, without leading zeros.
func (t *jsonText) number() (uint32, bool) {
	t.space()
	v, from := uint64(0), t.at
	for ; t.at < len(t.text) && '0' <= t.text[t.at] && t.text[t.at] <= '9' && v <= math.MaxUint32; t.at++ {
		v = v*10 + uint64(t.text[t.at]-'0')
	}
	if t.at == from || v > math.MaxUint32 || t.text[from] == '0' && t.at > from+1 {
		return 0, false
	}
	return uint32(v), true // what follows, if not a comma or the end, is found next
}
