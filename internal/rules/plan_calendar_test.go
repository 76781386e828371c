package rules_test

import (
	"strings"
	"testing"
)

// TestPlansOfCalendars: what a plan says of another zone, day or season, on 2023-11-14 at 22:13:20.
func TestPlansOfCalendars(t *testing.T) {
	const before = `{kuji: 1, items: {gem: {}}, zone: Asia/Tokyo, day: {begins: 05:00},
		seasons: {past: {starts: 2023-01-01T00:00, ends: 2023-02-01T00:00}, autumn: {starts: 2023-09-01T00:00, ends: 2023-12-01T00:00}},
		counters: {points: {per: {season: autumn}}}}`
	const autumn = "autumn: {starts: 2023-09-01T00:00, ends: 2023-12-01T00:00}"
	for name, c := range map[string]struct{ from, to, want string }{
		"the same, as instants": {"{starts: 2023-09-01T00:00, ends: 2023-12-01T00:00}", "{starts: 2023-08-31T15:00:00Z, ends: 2023-12-01T00:00:00+09:00}", "version 1 is in force"},
		"a zone":                {"zone: Asia/Tokyo", "zone: Asia/Seoul", `realm_changed: zone: Asia/Seoul instead of Asia/Tokyo, for days, weeks and months`},
		"a zone that moves seasons": {"zone: Asia/Tokyo", "zone: UTC", `realm_changed: zone: UTC instead of Asia/Tokyo, for days, weeks and months
realm_changed: season past: starts 2023-01-01T00:00:00Z instead of 2022-12-31T15:00:00Z, ends 2023-02-01T00:00:00Z instead of 2023-01-31T15:00:00Z
realm_changed: season autumn: starts 2023-09-01T00:00:00Z instead of 2023-08-31T15:00:00Z, ends 2023-12-01T00:00:00Z instead of 2023-11-30T15:00:00Z
	warning: it has started already: its counters begin at 0 again`},
		"days": {"day: {begins: 05:00}", "day: {begins: 04:30, week: sunday}",
			`realm_changed: day: days begin at 04:30 instead of 05:00, weeks begin on sunday instead of monday; what was counted so far counts until its day, week or month is over by this`},
		"no days":     {"day: {begins: 05:00},", "", `realm_changed: day: days begin at 00:00 instead of 05:00; what was counted so far counts until its day, week or month is over by this`},
		"a season":    {"seasons: {", "seasons: {next: {starts: 2024-01-01T00:00, ends: 2024-02-01T00:00:00.500Z}, ", `realm_changed: season next: added, starts 2023-12-31T15:00:00Z, ends 2024-02-01T00:00:00.5Z`},
		"none":        {"past: {starts: 2023-01-01T00:00, ends: 2023-02-01T00:00}, ", "", `realm_changed: season past: removed; starts 2022-12-31T15:00:00Z, ends 2023-01-31T15:00:00Z`},
		"a past one":  {"2023-02-01T00:00", "2023-03-01T00:00", `realm_changed: season past: ends 2023-02-28T15:00:00Z instead of 2023-01-31T15:00:00Z`},
		"an end":      {autumn, "autumn: {starts: 2023-09-01T00:00, ends: 2023-12-02T00:00}", `realm_changed: season autumn: ends 2023-12-01T15:00:00Z instead of 2023-11-30T15:00:00Z`},
		"an end now":  {autumn, "autumn: {starts: 2023-09-01T00:00, ends: 2023-11-01T00:00}", "realm_changed: season autumn: ends 2023-10-31T15:00:00Z instead of 2023-11-30T15:00:00Z\n\twarning: it is over as soon as this catalog is in force: its counters stand still"},
		"a start":     {autumn, "autumn: {starts: 2023-08-01T00:00, ends: 2023-12-01T00:00}", "realm_changed: season autumn: starts 2023-07-31T15:00:00Z instead of 2023-08-31T15:00:00Z"},
		"a new start": {autumn, "autumn: {starts: 2023-11-20T00:00, ends: 2023-12-01T00:00}", "realm_changed: season autumn: starts 2023-11-19T15:00:00Z instead of 2023-08-31T15:00:00Z\n\twarning: it has started already: its counters stand still until it starts again, and then begin at 0"},
		"an order": {"past: {starts: 2023-01-01T00:00, ends: 2023-02-01T00:00}, " + autumn, autumn + ", past: {starts: 2023-01-01T00:00, ends: 2023-02-01T00:00}",
			"realm_changed: seasons: in another order"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.now = 1_700_000_000_000
			r.put(before)
			if got := r.plan(strings.Replace(before, c.from, c.to, 1)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
