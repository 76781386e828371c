package rules_test

import (
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
)

// TestCampaign checks what is said of budgets and moments while a campaign goes on.
func TestCampaign(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`
kuji: 1
zone: Europe/Berlin
items: {cash: {}, gem: {}}
pools:
  p:
    starts: 2026-03-27T00:00:00+01:00
    ends: 2026-04-06T00:00:00+02:00
    max_count: 100
    budget: [{per: week, of: {cash: 100, gem: 5}, share: all}, {per: forever, of: {cash: 150}}, {per: hour, of: {gem: 9}}]
    entries:
      - {id: cash, weight: 1, reward: {items: {cash: 10}}}
      - {id: even, moments: {count: 10, spread: even}}
      - {id: slots, moments: {count: 10, spread: slots}}
      - {id: random, moments: {count: 10, spread: random}, reward: {items: {gem: 3}}}
      - {id: blank, weight: 0.000001}
  free:
    budget: {per: week, of: {cash: 100, gem: 5}, share: all}
    entries: [{id: cash, weight: 99999999, reward: {items: {cash: 30}}}, {id: blank, weight: 0.000001}]
`)
	start := at(t, "2026-03-27 00:00:00.000 +0100")
	stands := func(when int64, pool, want string) {
		t.Helper()
		r.now = max(r.now, when)
		if got := r.stands(pool); got != want {
			t.Errorf("%s stands at\n%swant\n%s", pool, got, want)
		}
	}
	const monday, hours, none = "2026-03-29T22:00:00.000Z", "2026-03-27T00:00:00.000Z", "1970-01-01T00:00:00.000Z"
	const fresh = "even 0 come, 0 wait, next 2026-03-27T10:57:00.001Z\nslots 0 come, 0 wait, next -\nrandom 0 come, 0 wait, next -\n"
	r.now = start
	r.want(draw("ann", "free", 1), rules.OK, "")
	r.want(draw("ann", "free", 1), rules.OK, "")
	stands(start, "free", "cash 60 of 100 until "+monday+"\ngem 0 of 5 until "+monday+"\n")
	r.want(draw("bob", "free", 1), rules.OK, "")
	stands(start, "free", "cash 90 of 100 until "+monday+"\ngem 0 of 5 until "+monday+"\ncash is over a budget\n")
	stands(start, "p", "cash 90 of 100 until "+monday+"\ngem 0 of 5 until "+monday+"\ncash 0 of 150 until "+none+"\ngem 0 of 9 until "+hours+"\n"+fresh)
	r.want(draw("ann", "p", 1), rules.OK, "")
	stands(start, "p", "cash 100 of 100 until "+monday+"\ngem 0 of 5 until "+monday+"\ncash 10 of 150 until "+none+"\ngem 0 of 9 until "+hours+"\n"+fresh+"cash is over a budget\n")

	// After 72 hours, one less by the clock, it is Monday. The pool is open for 239 hours.
	stands(start+72*hour, "p", "cash 0 of 100 until 2026-04-05T22:00:00.000Z\ngem 0 of 5 until 2026-04-05T22:00:00.000Z\n"+
		"cash 10 of 150 until "+none+"\ngem 0 of 9 until 2026-03-30T00:00:00.000Z\n"+
		"even 3 come, 3 wait, next 2026-03-30T10:39:00.001Z\nslots 3 come, 3 wait, next -\nrandom 0 come, 0 wait, next -\n")
	counts := r.takes(draw("ann", "p", 4), 1, nil)
	if counts["p/even"] != 3 || counts["p/slots"] != 1 {
		t.Errorf("taken are %v", counts)
	}
	c := look.CampaignOf(r.rules, "p", r.now)
	if m := c.Moments[0]; m.Come != 3 || m.Waiting != 0 {
		t.Errorf("after the draws: %+v", m)
	}
	if m := c.Moments[1]; m.Come < 3 || m.Come > 4 || m.Waiting != m.Come-1 {
		t.Errorf("after the draws: %+v", m)
	}
	// The time that is told is that of the first draw that finds the moment.
	for _, when := range []int64{c.Moments[0].NextAt - 1, c.Moments[0].NextAt} {
		r.now = when
		if m, want := look.CampaignOf(r.rules, "p", when).Moments[0], uint64(when-c.Moments[0].NextAt+1); m.Waiting != want {
			t.Errorf("at %s %d even moments wait, want %d", stamp(when), m.Waiting, want)
		}
	}
	r.now = start + 239*hour - 1
	if m := look.CampaignOf(r.rules, "p", r.now).Moments[0]; m.Come != 10 || m.Waiting != 7 || m.NextAt != 0 {
		t.Errorf("in the end: %+v", m)
	}
	r.check()
}

// stands writes what is known of a pool's campaign.
func (r *realm) stands(pool string) (text string) {
	r.t.Helper()
	c := look.CampaignOf(r.rules, pool, r.now)
	for _, b := range c.Budgets {
		text += fmt.Sprintf("%s %d of %d until %s\n", b.Item, b.Spent, b.Limit, stamp(b.ResetsAt))
	}
	for _, m := range c.Moments {
		next := "-"
		if m.NextAt > 0 {
			next = stamp(m.NextAt)
		}
		text += fmt.Sprintf("%s %d come, %d wait, next %s\n", m.Entry, m.Come, m.Waiting, next)
	}
	p, _, _ := look.PoolOf(r.rules.Tables(), r.state, pool, 0, 99, c)
	for _, e := range p.Entries {
		if e.OverBudget {
			text += e.ID + " is over a budget\n"
		}
		if e.OverBudget && e.Weight != 0 {
			r.t.Errorf("%+v", e)
		}
	}
	return text
}
