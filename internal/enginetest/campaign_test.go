package enginetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/verify"
)

// TestCampaign runs a campaign of moments and a budget through restarts: each moment is taken once,
// the budget holds, outcomes are those of the draws, and the log verifies.
func TestCampaign(t *testing.T) {
	c := parse(t, `
kuji: 1
zone: Asia/Tokyo
items: {console: {}, cash: {}}
pools:
  splash:
    starts: 2026-07-01T00:00:00+09:00
    ends: 2026-07-04T00:00:00+09:00
    budget: {per: day, of: {cash: 1000}, share: summer}
    entries:
      - {id: console, moments: {count: 20, spread: slots, weights: {12-13: 3, 19-23: 5}}, reward: {items: {console: 1}}}
      - {id: late, moments: {count: 5, spread: random}, reward: {items: {console: 1}}}
      - {id: cash, weight: 1, reward: {items: {cash: {min: 50, max: 150}}}}
      - {id: blank, weight: 1}
`)
	place, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, place)
	end := now.AddDate(0, 0, 3).Add(-time.Minute)
	dir, taken, cash := t.TempDir(), map[string]int{}, map[string]uint64{}
	for now.Before(end) {
		e, err := openWorld(dir, worldOptions{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Realm("test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < 100 && now.Before(end); i++ {
			now = now.Add(10 * time.Minute)
			if now.After(end) {
				now = end
			}
			res := do(t, r, kuji.Draw{Player: fmt.Sprint("p", i%7), Pool: "splash", Count: 3})
			if len(res.Outcomes) != 3 {
				t.Fatalf("%d outcomes", len(res.Outcomes))
			}
			for _, o := range res.Outcomes {
				taken[o.Entry]++
				for _, it := range o.Items {
					if it.Item == "cash" {
						cash[now.Format("2006-01-02")] += it.Quantity
					}
				}
			}
		}
		wantCampaign(t, r, now, taken, cash[now.Format("2006-01-02")])
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := taken["console"]; n < 19 || n > 20 { // the last may lie in the last minute
		t.Errorf("%d of 20 moments taken", n)
	}
	if n := taken["late"]; n < 4 || n > 5 {
		t.Errorf("%d of 5 moments taken", n)
	}
	for date, sum := range cash {
		if sum > 1000 || sum <= 1000-150 {
			t.Errorf("%s: %d of 1000 given", date, sum)
		}
	}
	if len(cash) != 3 {
		t.Errorf("cash on %d days", len(cash))
	}
	rep, err := verify.Dir(dir, "test", verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rep.Epochs {
		if !e.Revealed {
			t.Errorf("epoch %d was closed and not revealed", e.Epoch)
		}
	}
}

// wantCampaign checks what the view of the pool says after draws that nothing was left to wait for.
func wantCampaign(t *testing.T, r *kuji.Realm, now time.Time, taken map[string]int, cash uint64) {
	t.Helper()
	v, err := r.Pool(t.Context(), "splash")
	if err != nil {
		t.Fatal(err)
	}
	midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, now.Location()).UnixMilli()
	if want := (kuji.BudgetView{Per: catalog.PerDay, Share: "summer", Item: "cash", Limit: 1000, Spent: cash, ResetsAt: midnight}); len(v.Budgets) != 1 || v.Budgets[0] != want {
		t.Errorf("budgets %+v, want %+v", v.Budgets, want)
	}
	for i := range v.Entries {
		e := &v.Entries[i]
		switch m := e.Moments; {
		case e.ID == "console" || e.ID == "late":
			if m == nil || m.Come != uint64(taken[e.ID]) || m.Come != e.Drawn || m.Waiting != 0 || m.NextAt != 0 || e.Available() {
				t.Errorf("%s, of which %d were taken: %+v, %+v", e.ID, taken[e.ID], e, m)
			}
		case m != nil, e.OverBudget != (e.ID == "cash" && cash > 1000-150), e.Available() == e.OverBudget:
			t.Errorf("%+v with %d spent", e, cash)
		}
	}
}
