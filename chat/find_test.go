package chat

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// finding returns the phrases that are found in a text, by priority and place.
func finding(t testing.TB, f *finder, text string) (found []string) {
	t.Helper()
	s := f.memory.Get().(*search)
	defer f.memory.Put(s)
	for _, m := range f.find(s, text) {
		found = append(found, fmt.Sprintf("%d:%s", m.trigger, f.phrases[m.phrase].text))
	}
	return found
}

func mustFind(t testing.TB, triggers ...Trigger) *finder {
	t.Helper()
	f, err := newFinder(triggers)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFind(t *testing.T) {
	f := mustFind(t,
		Trigger{Phrases: []string{"box", "open box", "straße", "くじ", "!buy", "🎁", "can"}},
		Trigger{Phrases: []string{"open", "box of", "über"}, Priority: 1},
		Trigger{Phrases: []string{"gg", "!start"}, AtStart: true},
		Trigger{Phrases: []string{"gg"}, Priority: -1},
	)
	for text, want := range map[string]string{
		"":                         "",
		"nothing here":             "",
		"a box":                    "0:box",
		"a BOX!":                   "0:box",
		"boxes, inbox, box_":       "",
		"open  box":                "0:open box",
		"open a box":               "1:open 0:box",
		"Open\u00a0Box of":         "0:open box",
		"the box of ann":           "1:box of",
		"STRASSE":                  "0:straße",
		"strasse Straße ＳＴＲＡＳＳＥ":   "0:straße",
		"UBER":                     "",
		"U\u0308BER":               "1:über",
		"今日くじを引く":                  "0:くじ",
		"!buy sword":               "0:!buy",
		"!buyer":                   "",
		"🎁🎁":                       "0:🎁",
		"can't":                    "",
		"can’t, but I can":         "0:can",
		"gg":                       "2:gg",
		" GG wp":                   "2:gg",
		"wp gg":                    "3:gg",
		"no !start":                "",
		"b\u200box":                "0:box", // an invisible character
		"box\U000e0000":            "0:box", // which some programs add
		"b\xffx \xff box":          "0:box", // no UTF-8
		"box\x00":                  "0:box",
		strings.Repeat("box ", 50): "0:box",
	} {
		if got := strings.Join(finding(t, f, text), " "); got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}

// TestFindsNothing has no phrases.
func TestFindsNothing(t *testing.T) {
	if got := finding(t, mustFind(t), "a box"); got != nil {
		t.Errorf("found %v", got)
	}
}

// naiveFold folds a text as Unicode describes it, without what the finder does for speed.
func naiveFold(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	for range 3 {
		text = cases.Fold().String(norm.NFKC.String(text))
		text = strings.Map(func(c rune) rune {
			switch {
			case ignorable(c):
				return -1
			case unicode.Is(unicode.Cherokee, c):
				return unicode.ToUpper(c)
			}
			return c
		}, text)
	}
	return strings.Join(strings.Fields(norm.NFKC.String(text)), " ")
}

// naive finds phrases by looking at each place for each.
func naive(triggers []Trigger, text string) (found []string) {
	fold := naiveFold(text)
	edges := map[int]bool{0: true}
	for it := words.FromString(fold); it.Next(); {
		edges[it.End()] = true
	}
	type hit struct{ trigger, priority, at int }
	var hits []hit
	names := map[hit]string{}
	for at := 0; at < len(fold); {
		best, length, name := hit{trigger: -1}, 0, ""
		for i, t := range triggers {
			for _, p := range t.Phrases {
				folded := naiveFold(p)
				if !strings.HasPrefix(fold[at:], folded) || !edges[at] || !edges[at+len(folded)] || t.AtStart && at > 0 {
					continue
				}
				if len(folded) > length || len(folded) == length && t.Priority > best.priority {
					best, length, name = hit{i, t.Priority, at}, len(folded), p
				}
			}
		}
		if length == 0 {
			_, size := utf8.DecodeRuneInString(fold[at:])
			at += size
			continue
		}
		at += length
		if !slices.ContainsFunc(hits, func(h hit) bool { return h.trigger == best.trigger }) {
			hits = append(hits, best)
			names[best] = name
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.priority - a.priority })
	for _, h := range hits {
		found = append(found, fmt.Sprintf("%d:%s", h.trigger, names[h]))
	}
	return found
}

// someText draws texts of few characters, so that phrases meet, overlap and end where words do not.
func someText(least, most int) *rapid.Generator[string] {
	parts := []string{"a", "b", "A", "ab", "1", "_", " ", "  ", "\t", ".", "'", "!", "ß", "ss", "ſ", "é", "e", "\u0301", "ｂ", "くじ", "カ", "ﾞ", "\u3099", "가", "\u11a8",
		"я", "Я", "İ", "ﬁ", "\u200b", "\ufe0f", "\u00ad", "🎁", "\u200d", "ไท", "\u0345", "ΐ", "\ufdfa", "\u3164"}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), least, most).Draw(t, "parts"), "")
	})
}

// TestFindAsNaively compares the finder with one that looks at each place for each phrase.
func TestFindAsNaively(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var triggers []Trigger
		phrase := someText(1, 5).Filter(func(s string) bool { return naiveFold(s) != "" })
		for range rapid.IntRange(1, 5).Draw(t, "triggers") {
			triggers = append(triggers, Trigger{
				Phrases:  rapid.SliceOfN(phrase, 1, 4).Draw(t, "phrases"),
				Priority: rapid.IntRange(-1, 1).Draw(t, "priority"),
				AtStart:  rapid.Bool().Draw(t, "at start"),
			})
		}
		text := someText(0, 20).Draw(t, "text")
		if rapid.Bool().Draw(t, "broken") {
			text += rapid.SampledFrom([]string{"\xff", "\xc3", "\x00a"}).Draw(t, "bytes")
		}
		f, err := newFinder(triggers)
		if err != nil {
			t.Fatal(err)
		}
		s := f.memory.Get().(*search)
		defer f.memory.Put(s)
		var got, gotNames []string
		for _, m := range f.find(s, text) {
			got = append(got, fmt.Sprintf("%d:%s", m.trigger, f.phrases[m.phrase].fold))
			gotNames = append(gotNames, f.phrases[m.phrase].text)
		}
		var want []string
		for _, n := range naive(triggers, text) {
			trigger, name, _ := strings.Cut(n, ":")
			want = append(want, trigger+":"+naiveFold(name))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v in %+q: found %q %q, want %q", triggers, text, got, gotNames, want)
		}
	})
}

// TestFold compares both ways to fold, and folds again what was folded.
func TestFold(t *testing.T) {
	f := newFolder()
	check := func(fatal func(string, ...any), text string) {
		got := string(f.any(text))
		if want := naiveFold(text); got != want {
			fatal("%+q: folded to %+q, want %+q", text, got, want)
		}
		if again := string(f.any(got)); again != got {
			fatal("%+q: folded to %+q and then to %+q", text, got, again)
		}
		if f.quick(text) {
			if quick := strings.ReplaceAll(string(f.marked), string([]byte{mark}), ""); quick != got {
				fatal("%+q: folded to %+q, quickly to %+q", text, got, quick)
			}
		}
	}
	for c := range rune(0x110000) {
		few := c < 0x3400 || 0x1f000 <= c && c < 0x20000 || 0xe0000 <= c && c < 0xe1000
		if utf8.ValidRune(c) && (few || c%7 == 0) { // a seventh of the ideographs is enough
			check(t.Errorf, "a"+string(c)+"b")
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t.Fatalf, someText(0, 12).Draw(t, "text")) })
	rapid.Check(t, func(t *rapid.T) { check(t.Fatalf, rapid.String().Draw(t, "text")) })
}
