package store

import (
	"fmt"
	"strings"
	"testing"
)

// found returns the number of the code that a spelling finds in a list, -1 if none.
func found(t *testing.T, codes []string, sent string) int {
	t.Helper()
	l := &codeList{name: "list"}
	l.index.alone, l.used.alone = true, true
	l.index.init()
	s := &State{}
	s.codes.lists = []*codeList{l}
	for _, c := range codes {
		if err := s.addCode(l, []byte(c)); err != nil {
			t.Fatal(err)
		}
	}
	for _, sum := range append([]CodeSum{SumCode([]byte(sent))}, OtherSums(sent)...) {
		if n, ok := s.FindCode(0, sum); ok {
			return int(n)
		}
	}
	return -1
}

// TestSpellings: a code is found however somebody's keyboard writes it, and never in place of one that
// is spelled as it was sent.
func TestSpellings(t *testing.T) {
	for code, spellings := range map[string][]string{
		"dankefür100":  {"dankefür100", "DANKEFÜR100", "DankeFür100", "danke-für 100", "dankefu\u0308r100", "DANKEFU\u0308R_100", "ｄａｎｋｅｆüｒ１００"},
		"STRASSE-7":    {"straße7", "Straße 7", "STRAẞE.7", "strasse_7"},
		"straße7":      {"STRASSE7", "strasse-7", "STRAẞE 7"},
		"K7QD-2MXP":    {"k7qd2mxp", "K7QD.2MXP", "k7qd_2mxp", "Ｋ７ＱＤ－２ＭＸＰ", "k7qd–2mxp", "K7QD\u00a02MXP", "\u200bK7QD2MXP", "k7qd。2mxp", "K7QD\u00ad2MXP"},
		"ab.12_x":      {"AB12X", "ab 12 x", "ab.12_x", "AB_12.X", "ab-12-x"},
		"ΣΊΣΥΦΟΣ":      {"σίσυφος", "Σίσυφος", "σίσυφοσ"},
		"ﬁve ﬂowers":   {"FIVE FLOWERS", "fiveﬂowers"},
		"カード１２":        {"ｶｰﾄﾞ12", "カード12"},
		"İstanbul":     {"i̇stanbul", "I\u0307STANBUL"},
		"...":          {"..."},
		"\u1e9b\u0323": {"\u1e69", "\u1e68"},
	} {
		for _, sent := range spellings {
			if n := found(t, []string{"other", "dankefur100", code}, sent); n != 2 {
				t.Errorf("%q finds number %d, want %q", sent, n, code)
			}
		}
	}
	for code, others := range map[string][]string{
		"dankefür100": {"dankefur100", "dankefuer100", "dankefür10", "dankefür1000", ""},
		"AB12":        {"AB1Z", "AB!12", "...", "-", "_"},
		"---":         {"...", "_"},
	} {
		for _, sent := range others {
			if n := found(t, []string{code}, sent); n >= 0 {
				t.Errorf("%q finds %q", sent, code)
			}
		}
	}
	// Each of those that differ is found by itself, and the first by any other spelling.
	alike := []string{"straße", "STRASSE", "stras.se", "strasſe"}
	for i, sent := range alike {
		if n := found(t, alike, sent); n != i {
			t.Errorf("%q finds number %d, want its own %d", sent, n, i)
		}
	}
	if n := found(t, alike, "Stra_ße"); n != 1 {
		t.Errorf("another spelling finds number %d, want the one whose sum is that of the fold", n)
	}
	// Thousands with the same fold cost no more than some.
	var many []string
	for i := range 2000 {
		many = append(many, strings.ReplaceAll(fmt.Sprintf("a%011b", i), "0", ".")+"z")
	}
	for i := range many {
		many[i] = strings.ReplaceAll(many[i], "1", "_")
	}
	if n := found(t, many, "AZ"); n != 0 {
		t.Errorf("number %d of many, want the first", n)
	}
	if n := found(t, many, many[1999]); n != 1999 {
		t.Errorf("number %d of many, want the last, which is spelled like that", n)
	}
}

// TestOldSumsFindNoFolds: a sum that an older build wrote finds what it found then and nothing else.
func TestOldSumsFindNoFolds(t *testing.T) {
	l := &codeList{name: "list"}
	l.index.alone = true
	l.index.init()
	s := &State{}
	s.codes.lists = []*codeList{l}
	for _, c := range []string{"dankefür100", "ab.12"} {
		if err := s.addCode(l, []byte(c)); err != nil {
			t.Fatal(err)
		}
	}
	for sent, want := range map[string]bool{"dankefür100": true, "Dankefür100": true, "DANKEFÜR100": false, "ab.12": true, "AB12": false, "ab_12": false} {
		if _, ok := s.FindCode(0, SumCode([]byte(sent))); ok != want {
			t.Errorf("%q: %v, older builds %v", sent, ok, want)
		}
	}
}
