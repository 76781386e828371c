package store

import (
	"crypto/sha256"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// People write a code as their keyboard does: full-width letters, another case, ß as SS, a dot in
// place of a hyphen. So a code that is not found by its sum (see [SumCode]) is looked for by its
// fold: as Unicode compares texts without regard to case (NFKC, full case folding), without spaces,
// hyphens, dots and underscores. The fold of most codes has the sum of the code itself, and the
// index of sums finds it. The others are in an index of their own, by a sum that no text has.
//
// So the log needs only the sum that found the code, and a verifier finds the same code by it:
// Unicode promises that the folds of its characters never change.

// fold returns the fold of a code. It can be empty.
func fold(code string) string {
	for range 2 { // folding can undo what NFKC did, and what that undoes folds to itself
		code = cases.Fold().String(norm.NFKC.String(code))
	}
	return strings.Map(func(c rune) rune {
		switch {
		case c == '.', c == '。', unicode.In(c, unicode.Zs, unicode.Pd, unicode.Pc, unicode.Cf):
			return -1
		}
		return c
	}, norm.NFKC.String(code))
}

// sumFold returns the sum under which codes with a fold are found that have another sum than the
// fold.
func sumFold(fold string) CodeSum {
	sum := sha256.Sum256(append([]byte{0}, fold...)) // no code has a zero in it
	return CodeSum(sum[:])
}

// OtherSums returns the sums under which to look for a code that a player sends, if SumCode finds
// none.
func OtherSums(code string) (all []CodeSum) {
	f := fold(code)
	if f == "" {
		return nil
	}
	if sum := SumCode([]byte(f)); sum != SumCode([]byte(code)) {
		all = append(all, sum)
	}
	return append(all, sumFold(f))
}

// folded returns the sum under which a code of a list is found by its fold, and false if SumCode of
// the fold finds it.
func folded(code []byte) (sum CodeSum, ok bool) {
	usual := true
	for _, c := range code {
		usual = usual && c < 0x80 && c != '.' && c != '_'
	}
	if usual {
		return CodeSum{}, false
	}
	f := fold(string(code))
	if f == "" || SumCode([]byte(f)) == SumCode(code) {
		return CodeSum{}, false
	}
	return sumFold(f), true
}

// addFold adds a code to the index of folds, if it belongs there. Of codes that all have the same
// fold, some cannot be found by it: no index separates them.
func (l *codeList) addFold(code []byte, number uint32) {
	sum, ok := folded(code)
	if !ok {
		return
	}
	if _, n := l.folds.among(sum.hash(), func(uint32) bool { return true }); n < MaxAlike {
		l.folds.addAlone(sum.hash(), number)
	}
}
