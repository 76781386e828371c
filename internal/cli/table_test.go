package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// hostile is what players and other programs can put into ids, reasons and codes.
var hostile = []string{
	"\x1b]0;owned\x07", "ann\n2.0  2026-01-01T00:00:00.000Z  grant eve 999 gem ok", "ann\r1.0", "a\tb", "\x9b31m", "\u009b2J",
	"\u202eevil", "a\u2028b", "nul\x00", "del\x7f", "bad\xff\xfe", "\U000e0041",
}

// checkShown fails if text has anything that a terminal does not show, or another number of lines.
func checkShown(t *testing.T, text string, lines int) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("not UTF-8: %q", text)
	}
	if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && !unicode.IsGraphic(c) }); i >= 0 {
		t.Errorf("a terminal does not show what stands at %d: %q", i, text)
	}
	if n := strings.Count(text, "\n"); n != lines {
		t.Errorf("%d lines, want %d: %q", n, lines, text)
	}
}

func TestHostileTextIsEscaped(t *testing.T) {
	for _, s := range hostile {
		var out, notes bytes.Buffer
		a := &app{stdout: &out, stderr: &notes}
		balance := uint64(3)
		e := &kujiv1.Event{Position: 1, Kind: "grant", Player: s, To: s, Pool: s, Subject: s, RequestId: s, By: s, Reason: s, Metadata: s, List: s, Track: s,
			Items:    []*kujiv1.Stack{{Item: s, Quantity: 1}},
			Outcomes: []*kujiv1.Outcome{{Entry: s, Items: []*kujiv1.Stack{{Item: s, Quantity: 1}}}},
			Members:  []*kujiv1.Event{{Kind: "draw", Player: s}},
			Changes:  []*kujiv1.BalanceChange{{Player: s, Item: s, Delta: 1, Balance: &balance}}}
		check := func(what string, lines int, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s of %q: %v", what, s, err)
			}
			checkShown(t, out.String(), lines)
			out.Reset()
		}
		check("tail", 1, showEvent(a, e))
		check("history", 4, a.print(nil, func(w io.Writer) { printHistory(w, &kujiv1.GetHistoryResponse{Events: []*kujiv1.Event{e}}) }))
		check("list", 1, a.print(nil, func(w io.Writer) { printLines(w, []string{s}) }))
		check("player", 1, a.print(nil, func(w io.Writer) { printPlayer(w, &kujiv1.Player{Id: s}) }))
		a.say("%v", errors.New(s))
		check("progress", 1, nil)
		a.note("the feed broke off (%v)", errors.New(s))
		checkShown(t, notes.String(), 1)

		a.json = true
		if err := showEvent(a, e); err != nil {
			t.Fatal(err)
		}
		var back struct{ Player string }
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Player != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Errorf("%q came back as %q (%v)", s, back.Player, err)
		}
		check("tail --json", 1, nil)
	}
}

func TestWordsAreTold(t *testing.T) {
	for in, want := range map[string]string{
		"ann": "ann", "": `""`, "ann 5 gem": `"ann 5 gem"`, `"ann"`: `"\"ann\""`, "a\x1b": `"a\x1b"`, `a\x1b`: `a\x1b`, "花子": "花子", "くじ　1": `"くじ　1"`,
	} {
		if got := word(in); got != want {
			t.Errorf("word(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestCellsAreNoFormulas(t *testing.T) {
	for in, want := range map[string]string{
		"=1+1": "'=1+1", "+44": "'+44", "-1+1": "'-1+1", "@sum": "'@sum", "\t=1": "'\t=1", "'=1": "''=1", "'ann": "'ann", "ann": "ann",
		"-0.5": "-0.5", "1e-07": "1e-07", "": "", "-": "'-", "-Inf": "'-Inf", "'": "'",
	} {
		var b bytes.Buffer
		w := newCSV(&b)
		if err := w.Write(in, "x"); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		row, err := csv.NewReader(&b).Read()
		if err != nil || row[0] != want {
			t.Errorf("%q became %q (%v), want %q", in, row, err, want)
		}
		if back := uncell(want); back != in {
			t.Errorf("%q came back as %q", in, back)
		}
	}
}

// TestOneWriter: no file but table.go makes tables, JSON or CSV, or prints what is filled in as it is.
func TestOneWriter(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	own := regexp.MustCompile(`tabwriter\.New|csv\.NewWriter|json\.NewEncoder\((out|a\.stdout)|fmt\.(Fp|P)rint(f|ln)?\((a\.std(out|err)|out|os\.Std)`)
	for _, name := range files {
		if name == "table.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := own.Find(text); at != nil {
			t.Errorf("%s: %q: print with what table.go has, which escapes", name, at)
		}
	}
}
