package chat

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Phrases and messages are compared by their folds:
//
//	text      "  Open  my ＢＯＸ, Straße "
//	fold      "open my box, strasse"                            NFKC, full case folding, one space
//	marked    "|open| |my| |box|, |strasse|"                    with a mark at each edge of [a-z0-9_]
//
// The fold is that of Unicode for identifiers (NFKC_Casefold): without the characters that nobody sees, which some
// programs add so that a message differs from the one before. The marks make the search find no "my" in "enemy":
// Unicode (UAX #29) has no boundary there. Where there is a mark, it may have one, which is looked up for the few
// phrases that are found.

// mark is no byte of any UTF-8 text.
const mark = 0xff

// simple is what characters fold to that fold by themselves, whatever stands around them; 0: others. White space is a
// space. They are the letters of most living languages.
var simple = sync.OnceValue(func() *[0x3400]rune {
	t := new([0x3400]rune)
	f := folder{caser: cases.Fold()}
	for i := range t {
		c := rune(i)
		fold := []rune(string(f.any("a" + string(c) + "a")))
		if len(fold) == 3 && norm.NFKC.PropertiesString(string(c)).BoundaryBefore() && norm.NFKC.PropertiesString(string(fold[1])).BoundaryBefore() {
			t[i] = fold[1]
		}
	}
	t[0] = 0
	return t
})

// itself reports whether a character beyond those of simple folds to itself, whatever stands around it: ideographs,
// syllables of Hangul, and most emoji.
func itself(c rune) bool {
	return 0x4e00 <= c && c < 0xa000 || 0xac00 <= c && c <= 0xd7a3 || 0x1f300 <= c && c < 0x1f3fb || 0x1f400 <= c && c < 0x1fb00
}

// isWord says which bytes of a fold have no boundary between them.
var isWord = func() (t [256]bool) {
	for c := range t {
		t[c] = wordByte(byte(c))
	}
	return t
}()

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_'
}

func newFolder() folder { return folder{caser: cases.Fold(), simple: simple()} }

// folder folds texts. Its memory is used again.
type folder struct {
	caser  cases.Caser
	simple *[0x3400]rune // for quick
	a, b   []byte
	fold   []byte // of the last text, if it was marked from it
	marked []byte
}

// quick folds and marks a text, unless one of its characters does not fold by itself.
func (f *folder) quick(text string) bool {
	out, word, space := f.marked[:0], false, false
	for i := 0; i < len(text); {
		c, size := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(text[i:])
		}
		i += size
		if int(c) < len(f.simple) {
			c = f.simple[c]
		} else if !itself(c) {
			c = 0
		}
		switch {
		case c == 0:
			return false
		case c == ' ':
			space = len(out) > 0
			continue
		case space:
			if space = false; word {
				word, out = false, append(out, mark)
			}
			out = append(out, ' ')
		}
		if w := c < utf8.RuneSelf && isWord[c]; w != word {
			word, out = w, append(out, mark)
		}
		if c < utf8.RuneSelf {
			out = append(out, byte(c))
		} else {
			out = utf8.AppendRune(out, c)
		}
	}
	if word {
		out = append(out, mark)
	}
	f.marked = out
	return true
}

// mark folds a text and sets marked.
func (f *folder) mark(text string) {
	if f.quick(text) {
		return
	}
	f.fold = f.any(text)
	out, word := f.marked[:0], false
	for _, c := range f.fold {
		if w := isWord[c]; w != word {
			word, out = w, append(out, mark)
		}
		out = append(out, c)
	}
	if word {
		out = append(out, mark)
	}
	f.marked = out
}

// any returns the fold of a text. It is overwritten by the next call.
func (f *folder) any(text string) []byte {
	f.a = append(f.a[:0], text...)
	for range 2 { // folding can undo what NFKC did; what is left out then can, too
		f.b = norm.NFKC.Append(f.b[:0], f.a...)
		f.cases()
		if f.a = seen(f.a); norm.NFKC.IsNormal(f.a) {
			break
		}
	}
	f.b = norm.NFKC.Append(f.b[:0], f.a...)
	f.a = spaced(f.a[:0], f.b)
	return f.a
}

// cases folds the case of b into a.
func (f *folder) cases() {
	f.a = f.a[:cap(f.a)]
	for {
		n, _, err := f.caser.Transform(f.a, f.b, true)
		if err == nil {
			f.a = f.a[:n]
			return
		}
		f.a = make([]byte, 2*len(f.a)+64) // it was too short: there is no other error
	}
}

// seen leaves out the characters that nobody sees, and replaces what is not UTF-8. It works in place if it can.
func seen(text []byte) []byte {
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && size == 1 || ignorable(c) || cherokee(c) != c {
			return seenFrom(text, i)
		}
		i += size
	}
	return text
}

func seenFrom(text []byte, from int) []byte {
	out := append([]byte(nil), text[:from]...)
	for i := from; i < len(text); {
		c, size := utf8.DecodeRune(text[i:])
		if !ignorable(c) {
			out = utf8.AppendRune(out, cherokee(c))
		}
		i += size
	}
	return out
}

// cherokee folds small letters of Cherokee to large ones, as Unicode does. Package cases turns each into the other.
func cherokee(c rune) rune {
	switch {
	case 0xab70 <= c && c <= 0xabbf:
		return c - 0xab70 + 0x13a0
	case 0x13f8 <= c && c <= 0x13fd:
		return c - 8
	}
	return c
}

// ignorable is Default_Ignorable_Code_Point of Unicode.
func ignorable(c rune) bool {
	switch {
	case c < 0xad, 0x370 <= c && c < 0x600, 0x3000 <= c && c < 0x3164, 0x3165 <= c && c < 0xd800: // nearly all text
		return false
	case 0xfff9 <= c && c <= 0xfffb || 0x13430 <= c && c <= 0x13440:
		return false
	}
	return unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, c)
}

// spaced appends a text with single spaces for all white space, and none at its ends.
func spaced(to, text []byte) []byte {
	space := false
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRune(text[i:])
		if unicode.IsSpace(c) {
			space = len(to) > 0
		} else {
			if space {
				space, to = false, append(to, ' ')
			}
			to = append(to, text[i:i+size]...)
		}
		i += size
	}
	return to
}
