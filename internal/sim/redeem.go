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

// Codes that players send. No record has what was sent in vain, so it follows from the request's id.

// codeSent returns the code that a Redeem with an id sends: one of those that are imported at some
// time, spelled somehow, or one that never is.
func codeSent(id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	n := h.Sum32()
	list := []string{"caps", "caps", "caps", "coupons", "keys", "wrong"}[n%6]
	code := fmt.Sprintf("%s-%d", list, n/6%10)
	return []string{code, strings.ToUpper(code), strings.ReplaceAll(code, "-", " "), strings.ReplaceAll(code, "-", "")}[n/60%4]
}

// spelled names a code of a list as a file has it.
func spelled(list string, number uint64) string { return list + "/" + strconv.FormatUint(number, 10) }

// lists is what a model says of lists of codes.
type lists struct{ *model }

func listsOf(m *model) lists { return lists{m} }

// finds returns what a code pays for, if it exists: the pool, the terms, and its place in the list.
func (m lists) finds(code string) (p *catalog.Pool, terms *catalog.Redeem, number uint64) {
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

// rewarded reports whether rewards give the codes of a list.
func (m lists) rewarded(list string) bool {
	for i := range m.catalog.Pools {
		p := &m.catalog.Pools[i]
		if slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool { return slices.Contains(e.Reward.Codes, list) }) {
			return true
		}
	}
	return false
}

// guesses is the limit on codes that do not exist. There is none before there is a catalog.
func (m lists) guesses() catalog.PlayerLimit {
	if m.catalog == nil {
		return catalog.PlayerLimit{}
	}
	return catalog.PlayerLimit{Per: m.catalog.Guesses.Per, Draws: m.catalog.Guesses.Count}
}

// guess counts a code that does not exist.
func (m lists) guess(player string) {
	if per := m.guesses().Per; per != 0 {
		m.drew(m.meet(player).draws, limit{"guesses", per, 0}, 1)
	}
}

// redeemable returns how a Redeem must end.
func (t *trial) redeemable(rec kuji.Record) (kuji.Status, string) {
	guesses := listsOf(t.model).guesses()
	if guesses.Per != 0 && uint64(t.used(rec.Player, &catalog.Pool{ID: "guesses"}, guesses)) >= guesses.Draws {
		return kuji.TooManyGuesses, ""
	}
	p, terms, number := listsOf(t.model).finds(codeSent(rec.ID))
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
	if full := t.come(rec.Player); full != "" {
		return kuji.BalanceOverflow, full
	}
	rec.Pool, rec.Count, rec.List, rec.Number = p.ID, int(terms.Times), terms.List, &number
	return t.drawable(rec)
}

// use counts the use of a code that has paid for a draw.
func (m lists) use(rec, draw kuji.Record) error {
	if rec.List != draw.List || rec.Number == nil || *rec.Number != *draw.Number || rec.Count != draw.Count || rec.Pool != draw.Pool {
		return fmt.Errorf("a code of %q paid for %d draws from %q, the model says code %d of %s, %d draws from %s",
			rec.List, rec.Count, rec.Pool, *draw.Number, draw.List, draw.Count, draw.Pool)
	}
	code := spelled(draw.List, *draw.Number)
	m.uses[code] = append(m.uses[code], rec.Player)
	return nil
}

// redeemText writes what codes pay for.
func redeemText(r *rand.Rand, pf func(string, ...any)) {
	until := ""
	if r.IntN(2) == 0 {
		until = fmt.Sprintf(", until: %s", stamp(epoch+r.Int64N(20*hourMillis)))
	}
	pf("    redeem: [{code: caps, uses: %d%s}, {code: coupons, times: %d, uses: %d}]", 1+r.IntN(3), until, 1+r.IntN(3), 1+r.IntN(2))
}
