package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Codes that players send. No record has a code that was sent in vain, so the request's id decides
// what is sent.

// codeSent returns the code that a Redeem with this id sends: one that is imported at some time, in
// any spelling, or one that never is.
func codeSent(id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	n := h.Sum32()
	list := []string{"caps", "caps", "caps", "coupons", "keys", "wrong"}[n%6]
	code := fmt.Sprintf("%s-%d", list, n/6%10)
	return []string{code, strings.ToUpper(code), strings.ReplaceAll(code, "-", " "), strings.ReplaceAll(code, "-", "")}[n/60%4]
}

// spelled names a code by its list and its place in it.
func spelled(list string, number uint64) string { return list + "/" + strconv.FormatUint(number, 10) }

// finds returns what a code pays for, if it exists: the pool, the terms, and the code's place in its
// list.
func (m *model) finds(code string) (p *catalog.Pool, terms *catalog.Redeem, number uint64) {
	if m.catalog == nil {
		return nil, nil, 0
	}
	plain := func(s string) string { return strings.NewReplacer("-", "", " ", "").Replace(strings.ToUpper(s)) }
	for i := range m.catalog.Pools {
		p := &m.catalog.Pools[i]
		for j := range p.Redeem {
			list := p.Redeem[j].List
			n := slices.IndexFunc(m.codes[list], func(c string) bool { return plain(c) == plain(code) })
			if n >= 0 && (!m.rewarded(list) || n < len(m.owners[list])) {
				return p, &p.Redeem[j], uint64(n)
			}
		}
	}
	return nil, nil, 0
}

// guess counts a code that does not exist.
func (m *model) guess(player string) {
	if per := m.guesses().Per; per != 0 {
		drew(m, m.meet(player).draws, limit{"guesses", per, 0}, 1)
	}
}

// redeemable returns how a Redeem must end.
func (t *trial) redeemable(rec kuji.Record) (kuji.Status, string) {
	guesses := t.guesses()
	if guesses.Per != 0 && uint64(t.used(rec.Player, &catalog.Pool{ID: "guesses"}, guesses)) >= guesses.Draws {
		return kuji.TooManyGuesses, ""
	}
	p, terms, number := t.finds(codeSent(rec.ID))
	if p == nil {
		return kuji.UnknownCode, ""
	}
	users := t.uses[spelled(terms.List, number)]
	switch {
	case terms.Until != 0 && t.now >= terms.Until:
		return kuji.CodeExpired, terms.List
	case slices.Contains(users, rec.Player), terms.Uses > 1 && number < uint64(len(t.owners[terms.List])) && t.owners[terms.List][number] == rec.Player:
		return kuji.CodeRedeemed, terms.List
	case uint64(len(users)) >= terms.Uses:
		return kuji.CodeUsedUp, terms.List
	}
	if status, full := t.come(rec.Player); status != kuji.OK {
		return status, full
	}
	rec.Pool, rec.Count, rec.List, rec.Number = p.ID, int(terms.Times), terms.List, &number
	return t.drawable(rec)
}

// redeemText writes what codes pay for.
func redeemText(r *rand.Rand, pf func(string, ...any)) {
	until := ""
	if r.IntN(2) == 0 {
		until = fmt.Sprintf(", until: %s", stamp(epoch+r.Int64N(20*hourMillis)))
	}
	pf("    redeem: [{code: caps, uses: %d%s}, {code: coupons, times: %d, uses: %d}]", 1+r.IntN(3), until, 1+r.IntN(3), 1+r.IntN(2))
}
