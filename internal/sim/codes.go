package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// codeBook is what happened to codes.
type codeBook struct {
	codes  map[string][]string // by list
	owners map[string][]string // by list: who got its codes
	uses   map[string][]string // by code, see spelled: who redeemed it
	files  int                 // of codes that were imported
}

// clone returns a copy in which codes can be given and used without changing b.
func (b codeBook) clone() codeBook {
	b.owners, b.uses = maps.Clone(b.owners), maps.Clone(b.uses)
	for list, owners := range b.owners {
		b.owners[list] = slices.Clip(owners)
	}
	for code, users := range b.uses {
		b.uses[code] = slices.Clip(users)
	}
	return b
}

// hasCodes reports whether every list that an entry gives codes of has one left.
func (b *codeBook) hasCodes(e *catalog.Entry) bool {
	return !slices.ContainsFunc(e.Reward.Codes, func(list string) bool { return len(b.owners[list]) >= len(b.codes[list]) })
}

// use counts the use of a code that has paid for a draw.
func (b *codeBook) use(rec, draw kuji.Record) error {
	if rec.List != draw.List || rec.Number == nil || *rec.Number != *draw.Number || rec.Count != draw.Count || rec.Pool != draw.Pool {
		return fmt.Errorf("a code of %q paid for %d draws from %q, the model says code %d of %s, %d draws from %s",
			rec.List, rec.Count, rec.Pool, *draw.Number, draw.List, draw.Count, draw.Pool)
	}
	code := spelled(draw.List, *draw.Number)
	b.uses[code] = append(b.uses[code], rec.Player)
	return nil
}

// A realm gets files of codes in a fixed order. Each is imported until it is acknowledged.

const codeFiles = 9

var codeLists = []string{"keys", "coupons", "caps"}

// codeFile returns a file: its list and its codes. Some codes are in the list's file before it too, or
// in this one twice.
func codeFile(n int) (list string, codes []string) {
	list = codeLists[n%3]
	for i := range 3 + n/3 {
		codes = append(codes, fmt.Sprintf("%s-%d", list, n/3*2+i))
	}
	return list, append(codes, codes[0])
}

// importCodes judges an import and carries it out.
func (b *codeBook) importCodes(rec kuji.Record) error {
	list, codes := codeFile(b.files)
	b.files++
	before := len(b.codes[list])
	for _, code := range codes {
		if !slices.Contains(b.codes[list], code) {
			b.codes[list] = append(b.codes[list], code)
		}
	}
	if added := len(b.codes[list]) - before; b.files > codeFiles || rec.List != list || rec.Count != added {
		return fmt.Errorf("%d codes of %s were imported, the model says %d of %s", rec.Count, rec.List, added, list)
	}
	return nil
}

// codeOf returns the code at a place of a list, imported or not.
func codeOf(list string, number uint64) string {
	var all []string
	for n := range codeFiles {
		if name, codes := codeFile(n); name == list {
			all = append(all, codes...)
		}
	}
	for i := 0; i < len(all); i++ {
		if slices.Contains(all[:i], all[i]) {
			all = slices.Delete(all, i, i+1)
			i--
		}
	}
	if number >= uint64(len(all)) {
		return ""
	}
	return all[number]
}

// bring imports the next file of codes, or again one that was acknowledged.
func (s *session) bring() {
	w := s.w
	n := s.files
	if n == codeFiles || n > 0 && w.schedule.IntN(4) == 0 {
		n = w.schedule.IntN(n)
	}
	list, codes := codeFile(n)
	got, err := s.realm.Codes().Import(context.Background(), list, codes)
	w.note("%s: import file %d of %s: %+v %v", s.name, n, list, got, kuji.CodeOf(err))
	switch {
	case err != nil && kuji.CodeOf(err) == kuji.CodeOverloaded && w.cfg.Faults&Clock != 0: // the open batch has set the clock
	case err != nil:
		s.told(err, nil)
	case n < s.files:
		if got.Added > 0 {
			w.fail("%d codes of %s were added that had been imported", got.Added, list)
		}
	case s.poisoned:
		w.fail("codes were imported after the realm had stopped")
	default:
		s.files++
	}
}

// codesRead is a list of codes that was shown.
type codesRead struct {
	list  string
	view  kuji.CodesView
	given []kuji.GivenCode
}

// readCodes looks at a list of codes, without waiting.
func (s *session) readCodes() {
	w := s.w
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a read that would have to wait is refused
	rd := read{position: s.realm.Stats().Position, codes: &codesRead{list: codeLists[w.schedule.IntN(3)]}}
	var err error
	rd.codes.view, rd.codes.given, err = s.realm.Codes().Given(ctx, rd.codes.list, 0, 100)
	w.note("codes %s: %+v %v, %v", rd.codes.list, rd.codes.view, rd.codes.given, kuji.CodeOf(err))
	switch code := kuji.CodeOf(err); {
	case code == kuji.CodeCanceled && errors.Is(err, context.Canceled), code == kuji.CodeNotFound:
		return
	case code == kuji.CodeFailed && (s.excused() || vfs.Short(err)):
		s.poisoned = true
		return
	case err != nil:
		w.fail("a list of codes cannot be read: %w", err)
	}
	if rd.codes.view.Position > rd.position {
		w.fail("codes show position %d, only %d is durable", rd.codes.view.Position, rd.position)
	}
	w.report.Reads++
	s.reads = append(s.reads, rd)
}

// exports compares a list of codes with the model.
func (b *codeBook) exports(rd *codesRead) error {
	owners := b.owners[rd.list]
	if int(rd.view.Codes) != len(b.codes[rd.list]) || int(rd.view.Given) != len(owners) || len(rd.given) != len(owners) {
		return fmt.Errorf("%s has %+v and %d were given, the model says %d of %d", rd.list, rd.view, len(rd.given), len(owners), len(b.codes[rd.list]))
	}
	redeemed, uses := 0, 0
	for i := range b.codes[rd.list] {
		n := len(b.uses[spelled(rd.list, uint64(i))])
		redeemed, uses = redeemed+min(n, 1), uses+n
	}
	if int(rd.view.Redeemed) != redeemed || int(rd.view.Uses) != uses {
		return fmt.Errorf("%s has %+v, the model says %d redeemed in %d uses", rd.list, rd.view, redeemed, uses)
	}
	for i, g := range rd.given {
		want := kuji.RewardCode{List: rd.list, Number: uint64(i), Code: b.codes[rd.list][i]}
		if g.Code != want || g.Player != owners[i] {
			return fmt.Errorf("%s (%q) went to %s, the model says %s (%q) to %s", g.Code, g.Code.Code, g.Player, want, want.Code, owners[i])
		}
	}
	return nil
}

// redacted returns outcomes as records have them. It fails if a code is not the one at its place in
// its list.
func redacted(outcomes []kuji.Outcome) ([]kuji.Outcome, error) {
	all := slices.Clone(outcomes)
	for i := range all {
		all[i].Codes = slices.Clone(all[i].Codes)
		for j, c := range all[i].Codes {
			if want := codeOf(c.List, c.Number); c.Code != want {
				return nil, fmt.Errorf("%s was %q for its player, and was imported as %q", c, c.Code, want)
			}
			all[i].Codes[j].Code = kuji.Redacted
		}
	}
	return all, nil
}

// sealed returns a result as a record has it.
func sealed(res kuji.Result) (kuji.Result, error) {
	var err error
	if res.Outcomes, err = redacted(res.Outcomes); err != nil {
		return res, err
	}
	res.Members = slices.Clone(res.Members)
	for i := range res.Members {
		if res.Members[i], err = sealed(res.Members[i]); err != nil {
			return res, err
		}
	}
	return res, nil
}
