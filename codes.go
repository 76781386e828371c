package kuji

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

const (
	// MaxCode is the longest code, in bytes.
	MaxCode = 128
	// MaxImport is the most codes in one Import, and MaxImportBytes their bytes with one more for each.
	MaxImport      = 10_000
	MaxImportBytes = 1 << 20
)

// RewardCode is a code that a reward gave: its player's secret. JSON has it; package fmt prints its place.
type RewardCode struct {
	List   string `json:"list"`   // the name of the list
	Number uint64 `json:"number"` // its place in the list, from 0
	Code   string `json:"code"`   // Redacted in a Record
}

// Redacted stands in place of a code where somebody other than its player may read.
const Redacted = "****"

// String returns the code's place in its list, and not the code.
func (c RewardCode) String() string { return fmt.Sprintf("%s/%d %s", c.List, c.Number, Redacted) }

// GoString is String, for %#v.
func (c RewardCode) GoString() string { return "kuji.RewardCode(" + c.String() + ")" }

// CodesView is a list of codes.
type CodesView struct {
	List     string
	Codes    uint64 // imported so far
	Given    uint64 // of them; Codes - Given are left
	Redeemed uint64 // of them: those that a player used at all
	Uses     uint64 // how often players used codes of the list
	Position uint64 // of the last batch that changed the list
}

// Imported is what an import did.
type Imported struct {
	Added uint64    // the others were in the list before, or twice in the import
	List  CodesView // after it
}

// GivenCode says who got a code, or used one.
type GivenCode struct {
	Code     RewardCode
	Player   string
	Position uint64 // of the batch in which the player got or used it
	Time     int64  // of that batch, Unix milliseconds
}

// Codes is the view of a realm's lists of codes.
type Codes struct{ w *writer }

// Import adds codes to the end of a list, in order, and returns once that is durable. Codes that the list
// has are passed over: an interrupted import can be repeated. The list need not be in the catalog yet. A
// code is 1 to MaxCode bytes of UTF-8, without control characters and without space around it. CodeInvalid:
// a code is not like that, or they are too many; none was added. CodeConflict: the realm has no room for
// the codes or the list, or more than 16 codes of the list would differ only in spaces, hyphens and case.
func (c Codes) Import(ctx context.Context, list string, codes []string) (Imported, error) {
	if err := CheckImport(list, codes); err != nil {
		return Imported{}, err
	}
	i := imported{list: list}
	_, err := c.w.carry(ctx, &i, func() error {
		if err := c.w.gate.usable(); err != nil {
			return err
		}
		var added int
		i.event, added, i.refused = rules.Import(c.w.state, list, codes)
		i.Added = uint64(added)
		return nil
	})
	return value(i.Imported, err)
}

type imported struct {
	Imported
	list    string
	event   []byte // nil: the list has all codes already
	refused error
}

func (i *imported) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	if i.refused != nil {
		return until(w.state.Position()), &Error{Code: CodeConflict, Field: "codes", Message: "do not fit the realm", Err: i.refused}
	}
	if i.event == nil {
		i.describe(w)
		return until(i.List.Position), nil
	}
	w.stamp(b)
	event.Buf = append(event.Buf, i.event...)
	return nil, nil
}

func (i *imported) entered(w *writer, _ *ledger.Batch) { i.describe(w) }

func (i *imported) describe(w *writer) {
	num, _ := w.state.CodeListNum(i.list)
	i.List = Codes{w}.view(num)
}

// CheckImport refuses a malformed import with CodeInvalid. It does not repeat the codes: errors are logged.
func CheckImport(list string, codes []string) error {
	if err := checkList(list); err != nil {
		return err
	}
	if n := len(codes); n < 1 || n > MaxImport {
		return errf(CodeInvalid, "codes", "%d codes; 1 to %d are allowed", n, MaxImport)
	}
	size := 0
	for i, code := range codes {
		if wrong := CheckCode(code); wrong != "" {
			return errf(CodeInvalid, fmt.Sprintf("codes[%d]", i), "%s", wrong)
		}
		size += 1 + len(code)
	}
	if size > MaxImportBytes {
		return errf(CodeInvalid, "codes", "%d bytes with one more for each code; at most %d are allowed", size, MaxImportBytes)
	}
	return nil
}

func checkList(list string) error {
	if !catalog.ValidID(list) {
		return errf(CodeInvalid, "list", "%q; want the name of a list of codes, written like the id of an item", list)
	}
	return nil
}

// CheckCode says what is wrong with a code, without repeating it, or returns the empty string.
func CheckCode(code string) string {
	switch {
	case code == "" || len(code) > MaxCode:
		return fmt.Sprintf("%d bytes long; want 1 to %d", len(code), MaxCode)
	case !utf8.ValidString(code):
		return "not UTF-8"
	case strings.TrimSpace(code) != code:
		return "begins or ends with a space; want none around it"
	}
	for _, c := range code {
		if unicode.IsControl(c) {
			return fmt.Sprintf("has the control character %U; want none", c)
		}
	}
	return ""
}

// checkRedeem says what is wrong with a code that a player sends, or returns the empty string.
func checkRedeem(code string) string {
	if wrong := CheckCode(strings.Trim(code, " ")); wrong != "" {
		return wrong
	}
	if strings.Trim(code, " -") == "" {
		return "nothing but spaces and hyphens"
	}
	return ""
}

// view describes a list. The caller holds the realm's lock.
func (c Codes) view(num uint32) CodesView {
	s := c.w.state
	codes, last := s.Codes(num)
	uses, redeemed := s.CodeUses(num)
	return CodesView{List: s.CodeListName(num), Codes: codes.Count(), Given: codes.Given(), Redeemed: redeemed, Uses: uses, Position: last}
}

// List returns how many codes a list has and how many of them were given, once that is durable.
// CodeNotFound: there is no such list, neither imported nor in a catalog.
func (c Codes) List(ctx context.Context, list string) (CodesView, error) {
	v, _, err := c.Given(ctx, list, 0, 0)
	return v, err
}

// Given is List, with who got which codes, in clear and in the order in which they were given: at most
// count, from number from on. CodeInvalid: count is negative.
func (c Codes) Given(ctx context.Context, list string, from uint64, count int) (CodesView, []GivenCode, error) {
	return c.export(ctx, list, from, count, false)
}

// Used is Given for the codes that players used, in that order, from use number from on.
func (c Codes) Used(ctx context.Context, list string, from uint64, count int) (CodesView, []GivenCode, error) {
	return c.export(ctx, list, from, count, true)
}

// export returns a list and who got its codes, or used them, from a number on.
func (c Codes) export(ctx context.Context, list string, from uint64, count int, used bool) (v CodesView, all []GivenCode, err error) {
	if count < 0 {
		return v, nil, errf(CodeInvalid, "page", "%d codes; want at least 0", count)
	}
	if err := checkList(list); err != nil {
		return v, nil, err
	}
	for more := true; more; {
		n := len(all)
		want := min(count-n, codesAtOnce)
		if v, all, err = c.read(ctx, list, from+uint64(n), uint64(want), used, all); err != nil {
			return CodesView{}, nil, err
		}
		more = len(all)-n == codesAtOnce && len(all) < count
	}
	if err := c.w.settle(ctx, v.Position); err != nil {
		return CodesView{}, nil, err
	}
	return v, all, nil
}

const codesAtOnce = 1000 // that an export reads before it lets the realm go on

// read adds to all what an export says from one number to another.
func (c Codes) read(ctx context.Context, list string, from, count uint64, used bool, all []GivenCode) (CodesView, []GivenCode, error) {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.gate.answers(ctx); err != nil {
		return CodesView{}, nil, err
	}
	num, ok := w.state.CodeListNum(list)
	if !ok {
		return CodesView{}, nil, errf(CodeNotFound, "list", "there is no list of codes %q in realm %q", list, w.name)
	}
	codes, _ := w.state.Codes(num)
	last, handed := codes.Given(), codes.GivenTo
	if used {
		last, handed = codes.Uses(), codes.Use
	}
	for n := from; n-from < count && n < last; n++ {
		h := handed(n)
		code := RewardCode{List: list, Number: uint64(h.Code), Code: string(codes.Code(uint64(h.Code)))}
		all = append(all, GivenCode{Code: code, Player: w.state.PlayerID(h.Player), Position: h.Position, Time: h.Time})
	}
	return c.view(num), all, nil
}
