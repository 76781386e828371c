package enginetest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/verify"
)

// formatFound is what docs/internals/formats/reader.py found in a realm.
type formatFound struct {
	Position, Batches, Events, Draws, Void, Choices uint64

	ChainHash      string `json:"chain_hash"`
	CatalogVersion uint64 `json:"catalog_version"`
	Epochs         int
	Revealed       int
	Players        map[string]map[string]uint64

	events []formatEvent
}

// formatEvent is an event as the reader prints it, or a member of a group.
type formatEvent struct {
	Position, Time      uint64
	Index               int
	Kind, ID, Status    string
	Subject, Player, To string
	Pool                string
	Count               int
	Pay                 string
	Paid                map[string]uint64
	Version             uint64 // of a catalog
	Clock               *kuji.ClockSet
	Items               map[string]uint64
	Outcomes            []formatOutcome
	Members             []formatEvent
	Track, By, Reason   string // of a set_track
	Draws               *uint64
	List                string // of codes that were imported, or of one that was redeemed
	Number              *uint64
	Limit               *kuji.Limit
	Lacks               []kuji.Lack
	Metadata            string
	Level               uint8 `json:"level,omitempty"`
	Due                 *kuji.Due
	Event, Key, Counter string
	Value               *uint64
	Quest               string
	Claims              []formatClaim
	Beyond              []kuji.Beyond
	Proposal            uint64
	Proposed            [2]string // of an approve: who proposed the catalog, and why
}

type formatClaim struct {
	Quest, Player string
	Tier          int
	Counter       string
	Rank          uint64
	Missed        bool
	Way           []string
	Items         map[string]uint64
}

type formatOutcome struct {
	Draw  int
	Way   []string // "pool/entry"
	Items map[string]uint64
}

// formatOf returns what the reader should print of a record.
func formatOf(rec kuji.Record) formatEvent {
	amounts := func(stacks []kuji.Stack) map[string]uint64 {
		m := map[string]uint64{}
		for _, s := range stacks {
			m[s.Item] += s.Quantity
		}
		return m
	}
	e := formatEvent{
		Position: rec.Position, Time: uint64(rec.Time), Index: rec.Index, Kind: rec.Kind, ID: rec.ID, Status: rec.Status,
		Subject: rec.Subject, Player: rec.Player, To: rec.To, Pool: rec.Pool, Count: rec.Count, Pay: rec.Pay,
		List: rec.List, Number: rec.Number, Track: rec.Track, By: rec.By, Reason: rec.Reason, Draws: rec.Draws, Limit: rec.Limit, Lacks: rec.Lacks, Metadata: rec.Metadata, Level: rec.Level, Due: rec.Due,
	}
	if rec.Clock != nil {
		e.Clock = &kuji.ClockSet{To: rec.Clock.To, By: rec.Clock.By, Reason: rec.Clock.Reason}
	}
	e.Beyond = rec.Beyond
	if rec.Items != nil || rec.Kind == "collect" {
		e.Items = amounts(rec.Items)
	}
	if rec.Status == "ok" && (rec.Kind == "draw" || rec.Kind == "redeem") {
		e.Paid, e.Outcomes = amounts(rec.Paid), []formatOutcome{}
	}
	for _, o := range rec.Outcomes {
		e.Outcomes = append(e.Outcomes, formatOutcome{Draw: o.Draw, Way: append([]string{rec.Pool + "/" + o.Entry}, o.Via...), Items: amounts(o.Items)})
	}
	e.Event, e.Key, e.Counter, e.Value, e.Quest = rec.Event, rec.Key, rec.Counter, rec.Value, rec.Quest
	for _, c := range rec.Claims {
		e.Claims = append(e.Claims, formatClaim{Quest: c.Quest, Player: c.Player, Tier: c.Tier, Counter: c.Counter, Rank: c.Rank, Missed: c.Missed, Way: append([]string{}, c.Via...), Items: amounts(c.Items)})
	}
	for _, m := range rec.Members { // their place and status are the group's
		member := formatOf(m)
		member.Position, member.Time, member.Index, member.Status, member.Subject = 0, 0, 0, "", ""
		member.Limit, member.Lacks = nil, nil
		e.Members = append(e.Members, member)
	}
	if rec.Kind == "catalog" || rec.Kind == "approve" {
		e.Version = rec.CatalogVersion + 1
	}
	e.Proposal, e.Proposed = rec.Proposal, [2]string{rec.ProposedBy, rec.ProposedWhy}
	return e
}

// TestFormatPages: a reader that was written from docs/internals/formats alone, in another
// language, finds in a log what Kuji finds, to the last choice and balance.
func TestFormatPages(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	read := func(dir string) (formatFound, error) {
		var found formatFound
		out, err := exec.CommandContext(t.Context(), python, "../../docs/internals/formats/reader.py", "--events", filepath.Join(dir, "realms", "test")).Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return found, fmt.Errorf("%w\n%s", err, exit.Stderr)
		} else if err != nil {
			return found, err
		}
		lines := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
		found.events = make([]formatEvent, len(lines)-1)
		for i := range found.events {
			if err := json.Unmarshal(lines[i], &found.events[i]); err != nil {
				return found, err
			}
		}
		return found, json.Unmarshal(lines[len(lines)-1], &found)
	}
	compare := func(t *testing.T, dir string) {
		found, err := read(dir)
		if err != nil {
			t.Fatal(err)
		}
		var events []formatEvent
		report, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) { events = append(events, formatOf(rec)) }})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.events) != len(events) {
			t.Errorf("%d events printed, want %d", len(found.events), len(events))
		}
		for i := range min(len(events), len(found.events)) {
			if !reflect.DeepEqual(found.events[i], events[i]) {
				t.Errorf("event %d is %+v\nwant %+v", i, found.events[i], events[i])
				break
			}
		}
		want := formatFound{
			Position: report.Position, Batches: report.Batches, Events: report.Events, Draws: report.Draws, Void: report.Void,
			Choices: found.Choices, // one at least for each draw
			Epochs:  len(report.Epochs), ChainHash: hex.EncodeToString(report.ChainHash[:]), CatalogVersion: report.Catalog,
			Players: players(t, dir, found.Players), events: found.events,
		}
		decided := 0
		for _, e := range report.Epochs {
			if e.Revealed {
				want.Revealed++
			}
			if e.Revealed && e.Undecided == "" {
				decided++
			}
		}
		if uint64(len(found.Players)) != report.Players {
			t.Errorf("%d players, want %d", len(found.Players), report.Players)
		}
		if !reflect.DeepEqual(found, want) {
			t.Errorf("found %+v\nwant  %+v", found, want)
		}
		if all := decided == want.Epochs; all && found.Choices < report.Draws || !all && found.Choices >= report.Draws {
			t.Errorf("%d choices computed again for %d draws, %d of %d epochs revealed", found.Choices, report.Draws, want.Revealed, want.Epochs)
		}
	}

	t.Run("of a cluster", func(t *testing.T) { // with a payload in a file
		s := drivertest.NewShared(drivertest.SharedOptions{Dense: true})
		_, first := openAt(t, s, 1, kuji.Options{})
		if _, err := first.Apply(t.Context(), parse(t, testCatalog)); err != nil {
			t.Fatal(err)
		}
		if _, err := first.Codes().Import(t.Context(), "list", largeCodes("")); err != nil {
			t.Fatal(err)
		}
		do(t, first, kuji.Draw{ID: "1", Player: "ann", Pool: "free", Count: 3})
		e, r := openAt(t, s, 2, kuji.Options{})
		do(t, r, kuji.Draw{ID: "2", Player: "ann", Pool: "free", Count: 2})
		dir := t.TempDir()
		if _, err := backup.Write(t.Context(), dir+"/backup", "test", backup.Of(r)); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if files, err := filepath.Glob(dir + "/backup/realms/test/snapshots/*.payload"); err != nil || len(files) == 0 {
			t.Fatalf("payloads %v, %v", files, err)
		}
		if _, err := backup.Restore(t.Context(), dir+"/backup", dir+"/data", &testKey); err != nil {
			t.Fatal(err)
		}
		compare(t, dir+"/data")
	})
	t.Run("golden", func(t *testing.T) {
		compare(t, goldenCopy(t, "v1"))
		compare(t, goldenCopy(t, "v3"))
	})
	t.Run("proposals", func(t *testing.T) {
		dir := t.TempDir()
		e, r := open(t, dir, worldOptions{})
		ps := kuji.ProposalsOf(r)
		for i := range 4 {
			p, err := ps.Propose(t.Context(), namedCatalog(t, "n", 2+i), nil, kuji.Note{By: "ann", Reason: "a change"})
			if err == nil && i%2 == 0 {
				_, err = ps.Approve(t.Context(), p.Number, kuji.Note{By: "bob", Reason: "yes"})
			} else if err == nil && i == 1 {
				_, err = ps.Withdraw(t.Context(), p.Number, kuji.Note{By: "bob"})
			}
			if err != nil {
				t.Fatal(err)
			}
			do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		compare(t, dir)
	})
	t.Run("stopped in the middle", func(t *testing.T) {
		dir := t.TempDir()
		for life := range 2 {
			e, r := open(t, dir, worldOptions{SegmentSize: 4096})
			for i := range 60 {
				do(t, r, kuji.Draw{ID: fmt.Sprint(r.Stats().Position), Player: fmt.Sprint("p", i%7), Pool: []string{"free", "box", "paid"}[i%3], Count: 1 + i%2})
			}
			if life == 0 { // a copy in which the epoch is not revealed
				compare(t, copyOf(t, dir))
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		compare(t, dir)
	})
	t.Run("prices, guarantees, groups", func(t *testing.T) {
		c, err := catalog.Parse([]byte(`{kuji: 1, items: {gem: {kind: currency}, ticket: {}, clover: {}}, start: {gem: 4000, ticket: 3}, pools: {
			p: {price: [{ticket: 1}, {gem: 16}], bundles: [{draws: 3, price: {gem: 30}}, {draws: 10, price: {gem: 140}}], free: {per: day, draws: 4},
				pity: {five: {certain: 9, rising: {from: 6, by: 7}}, three: {certain: 12}},
				guarantee: [{draws: 5, of: [four]}, {draws: 6, at_least: 2, of: [four, odd]}],
				entries: [{id: five, weight: 1}, {id: four, weight: 1}, {id: three, weight: 1}, {id: odd, weight: 1, stock: 40}, {id: z, weight: 30}]},
			when: {entries: [{id: has, weight: 9, when: {holds: {clover: 2}}}, {id: lacks, weight: 9, when: {lacks: [clover]}},
				{id: luck, weight: 1, luck: {item: clover, weights: [{from: 2, weight: 20}]}, reward: {items: {clover: 1}}}, {id: z, weight: 1}]}}}`))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		e, r := open(t, dir, worldOptions{})
		if _, err := r.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			player := fmt.Sprint("player-", i%5)
			do(t, r, kuji.Draw{Player: player, Pool: "p", Count: 1 + (i*7)%13})
			player, clover := fmt.Sprint("grouped-", i), []kuji.Stack{{Item: "clover", Quantity: 2}}
			do(t, r, kuji.Atomic{Members: []kuji.Request{
				kuji.Draw{Player: player, Pool: "when", Count: 2}, kuji.Grant{Player: player, Items: clover},
				kuji.Draw{Player: player, Pool: "when", Count: 2}, kuji.Consume{Player: player, Items: []kuji.Stack{{Item: "clover", Quantity: 1}}}, kuji.Draw{Player: player, Pool: "when", Count: 1},
			}})
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		compare(t, dir)
	})
	t.Run("counters and quests", func(t *testing.T) {
		c, err := catalog.Parse([]byte(`{kuji: 1, items: {gold: {kind: currency}, gem: {kind: currency}, medal: {}, pass: {lasts: 30d, extend: true}}, start: {gem: 3}, pools: {
			open: {rolls: {min: 1, max: 2}, entries: [{id: a, weight: 1, reward: {items: {gold: {min: 1, max: 9}}}}, {id: b, weight: 2}]},
			late: {when: {counters: {wins: {max: 30}}, quests: {hunter: 1}}, price: {gold: 1}, entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}, {id: b, weight: 1}]},
			chest: {internal: true, budget: [{per: day, of: {medal: 9}}], entries: [{id: medal, weight: 1, reward: {items: {medal: 1}}}, {id: gem, weight: 1, reward: {items: {gem: {min: 1, max: 4}}}}]}},
			counters: {wins: {}, bosses: {of: {progress: boss}, distinct: 5, per: week}, raid: {for: realm, of: {draws: open}}, best: {of: {progress: wins}, highest: true}, earned: {of: {gains: gold}, most: {per: day, count: 50}}},
			quests: {hunter: {tiers: [{needs: {bosses: 1}, reward: {items: {gold: {min: 10, max: 90}}}}, {needs: {bosses: 3}, reward: {pool: chest}}]},
				winner: {claim: automatic, needs: {wins: 4}, reward: [{items: {gem: {min: 1, max: 5}}}, {pool: chest}]},
				after: {claim: automatic, when: {quests: {winner: 1}}, needs: {raid: 5}, reward: {pool: chest}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		e, r := open(t, dir, worldOptions{})
		if _, err := r.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			player := fmt.Sprint("player-", i%5)
			do(t, r, kuji.Progress{ID: fmt.Sprint("p", i), Player: player, Event: "boss", Key: fmt.Sprint(i % 7), Note: kuji.Note{By: "game"}})
			do(t, r, kuji.Claim{Player: player, Quest: "hunter"})
			do(t, r, kuji.Draw{Player: player, Pool: "open", Count: 1 + i%3})
			do(t, r, kuji.Draw{Player: player, Pool: "late"})
			do(t, r, kuji.Progress{Player: player, Event: "wins", N: uint64(1 + i%2)})
			fresh := fmt.Sprint("fresh-", i)
			do(t, r, kuji.Atomic{Members: []kuji.Request{
				kuji.Progress{Player: fresh, Event: "boss", Key: "x"}, kuji.Claim{Player: fresh, Quest: "hunter", Tiers: 1},
				kuji.Draw{Player: fresh, Pool: "open", Count: 2}, kuji.Progress{Player: fresh, Event: "wins", N: 3}, kuji.Progress{Player: player, Event: "wins", N: 2},
			}})
			do(t, r, kuji.SetCounter{Player: player, Counter: "wins", Value: uint64(i), Note: kuji.Note{Reason: "a test"}})
			do(t, r, kuji.SetCounter{Counter: "raid", Value: uint64(i % 9), Note: kuji.Note{Reason: "a test"}})
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		compare(t, dir)
	})
	t.Run("entries that ask, families, caps, growth", func(t *testing.T) { compare(t, formatGoals(t)) })
	t.Run("the clock set", func(t *testing.T) {
		dir, ahead := t.TempDir(), 20*24*time.Hour
		e, r := open(t, dir, worldOptions{Now: func() time.Time { return time.Now().Round(0).Add(ahead) }})
		for i := range 3 {
			do(t, r, kuji.Draw{ID: fmt.Sprint(i), Player: "ann", Pool: "paid"})
			if _, err := r.SetClock(t.Context(), time.Now().Add(ahead), "ops", "for a test"); err != nil {
				t.Fatal(err)
			}
			ahead -= 10 * 24 * time.Hour
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		compare(t, dir)
	})
	t.Run("ranks", func(t *testing.T) {
		dir, clock := t.TempDir(), handAt(time.UnixMilli(1_799_938_800_000))
		e, r := open(t, dir, worldOptions{Now: clock.Now})
		if _, err := r.Apply(t.Context(), parse(t, `{kuji: 1, items: {coin: {}, ticket: {lasts: 36h}},
			pools: {few: {internal: true, entries: [{id: coin, weight: 1, stock: 3, reward: {items: {coin: 1}}}]}},
			counters: {points: {per: day, ranked: {rewards: [{to: 2, reward: {items: {coin: 9, ticket: 1}}}, {to: 4, reward: {pool: few}}, {to: 90, reward: {items: {coin: 1}}}]}},
				best: {of: {progress: points}, highest: true, ranked: true}}}`)); err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			if i%100 == 99 {
				clock.Add(24 * time.Hour)
			}
			points(t, r, fmt.Sprint("p", i%80), uint64(1+i*7%11))
		}
		for paid := 0; paid < 3*80; { // of three periods: then nothing is due any more
			paid = 0
			all, err := through(t.Context(), r, 1, r.Stats().LastEvent)
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range all {
				if rec.Kind == "due" {
					paid += len(rec.Claims)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		compare(t, dir)
	})
	t.Run("items that last", func(t *testing.T) {
		dir, clock := t.TempDir(), handAt(time.UnixMilli(1_799_938_800_000))
		e, r := open(t, dir, worldOptions{Now: clock.Now})
		if _, err := r.Apply(t.Context(), parse(t, dueCatalog)); err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			from, to := fmt.Sprint("p", i%7), fmt.Sprint("p", (i+1+i%5)%7)
			some := []kuji.Stack{{Item: []string{"ticket", "pass"}[i/3%2], Quantity: uint64(1 + i%3)}}
			for _, req := range []kuji.Request{kuji.Grant{Player: from, Items: some}, kuji.Transfer{From: to, To: from, Items: some}, kuji.Draw{Player: to, Pool: "box"}} {
				do(t, r, req)
			}
			clock.Add(time.Duration(i%11) * 3 * time.Minute)
			if i == 100 {
				clock.Add(-5 * time.Hour)
				if _, err := r.SetClock(t.Context(), clock.Now(), "ops", "for a test"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		compare(t, dir)
	})
	t.Run("a campaign", func(t *testing.T) {
		campaign, err := os.ReadFile("../../testdata/campaign.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, spread := range []string{"even", "slots", "random"} {
			dir, clock := t.TempDir(), handAt(time.UnixMilli(1_799_938_800_000)) // the campaign starts
			e, r := open(t, dir, worldOptions{Now: clock.Now})
			apply := func(missed string) {
				if _, err := r.Apply(t.Context(), parse(t, strings.NewReplacer("Etc/GMT-9", "Asia/Tokyo", "spread: slots", "spread: "+spread, "MISSED", missed).Replace(string(campaign)))); err != nil {
					t.Fatal(err)
				}
			}
			apply("wait")
			for i := range 200 {
				if i == 120 {
					apply("pass")
				}
				if i%30 == 10 {
					if _, err := r.Codes().Import(t.Context(), []string{"alpha", "beta"}[i/30%2], someCodes(fmt.Sprint(i), 9)); err != nil {
						t.Fatal(err)
					}
				}
				if i%50 == 40 {
					clock.Add(-5 * time.Hour)
					if _, err := r.SetClock(t.Context(), clock.Now(), "ops", "for a test"); err != nil {
						t.Fatal(err)
					}
				}
				clock.Add(time.Duration(i%7) * 9 * time.Minute)
				if i%40 == 20 {
					do(t, r, kuji.SetTrack{Player: fmt.Sprint("p", i%3), Track: "splash/coupon", Draws: 4, By: "ops", Reason: "for a test"})
				}
				draw := kuji.Draw{ID: fmt.Sprint(i), Player: fmt.Sprint("p", i%3), Pool: []string{"splash", "tour", "drops"}[i%3], Count: 1 + i%4}
				if i%5 > 0 {
					do(t, r, draw)
					continue
				}
				draw.ID = ""
				do(t, r, kuji.Atomic{ID: fmt.Sprint(i), Members: []kuji.Request{draw, kuji.Draw{Player: "p9", Pool: "splash", Count: 2}}})
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			compare(t, dir)
		}
	})
	t.Run("a calendar", func(t *testing.T) {
		dir, clock := t.TempDir(), handAt(time.Date(2026, 12, 20, 9, 0, 0, 0, time.UTC))
		e, r := open(t, dir, worldOptions{Now: clock.Now})
		for _, day := range []string{"{begins: 05:00, week: sunday}", "{begins: 02:30}"} {
			if _, err := r.Apply(t.Context(), parse(t, `{kuji: 1, zone: Australia/Sydney, day: `+day+`, items: {gem: {kind: currency}, coin: {}}, start: {coin: 90},
				seasons: {summer: {starts: 2026-12-01T00:00, ends: 2027-03-01T00:00}},
				counters: {bosses: {of: {progress: boss}, distinct: 9}, wins: {per: {season: summer}, most: {per: month, count: 3}}, days: {of: {spends: gem}, streak: {per: day, forgive: 1}}},
				quests: {q: {needs: {wins: {min: 1, max: 9}}, reward: {items: {coin: 1}}}, r: {when: {counters: {bosses: 2}}, tiers: [{needs: {bosses: 1}}, {reward: {items: {gem: 1}}}]}},
				pools: {p: {price: {coin: 1}, free: {per: month, draws: 9}, entries: [{id: a, weight: 1}, {id: b, weight: 2}]},
					q: {price: {coin: 1}, free: {per: week, draws: 3}, limits: [{per: month, draws: 99}],
						budget: [{per: month, of: {gem: 10}}, {per: day, of: {gem: 4}}],
						entries: [{id: a, weight: 1, reward: {items: {gem: {min: 1, max: 3}}}}, {id: b, weight: 2}]}}}`)); err != nil {
				t.Fatal(err)
			}
			for i := range 60 {
				clock.Add(11 * time.Hour)
				do(t, r, kuji.Draw{Player: fmt.Sprint("visitor-", i%2), Pool: []string{"p", "q"}[i/2%2], Count: 1})
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		compare(t, dir)
	})
	t.Run("an entry dropped", func(t *testing.T) {
		dir := goldenCopy(t, "v1")
		rewrite(t, dir, func(e [][]byte) [][]byte { return slices.Delete(e, len(e)-2, len(e)-1) }) // no epoch-begin follows
		if found, err := read(dir); err == nil {
			t.Errorf("a log without one of its entries passes for good: %+v", found)
		}
	})
	t.Run("the end is missing", func(t *testing.T) {
		dir := goldenCopy(t, "v1")
		closed := filepath.Join(dir, "realms", "test", "closed")
		says, err := os.ReadFile(closed)
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, dir, func(e [][]byte) [][]byte { return e[:len(e)-1] })
		if _, err := read(dir); err != nil {
			t.Errorf("nothing says how long the log was, and it is refused: %v", err)
		}
		if err := os.WriteFile(closed, says, 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := read(dir); err == nil {
			t.Errorf("a log that has lost its end passes for good: %+v", found)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		dir := goldenCopy(t, "v1")
		files, err := filepath.Glob(filepath.Join(dir, "realms", "test", "log", "*.wal"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		data[200] ^= 1 // in the first entries
		if err := os.WriteFile(files[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := read(dir); err == nil {
			t.Errorf("a damaged log passes for good: %+v", found)
		}
	})
}

// goldenCopy copies a data directory that an old build has written: see internal/golden.
func goldenCopy(t *testing.T, version string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/golden/"+version+"/data")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// players asks a copy of a realm what these players hold.
func players[T any](t *testing.T, dir string, ids map[string]T) map[string]map[string]uint64 {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	e, err := openWorld(copied, worldOptions{Confirmed: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]uint64{}
	for id := range ids {
		view, err := r.Player(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		all[id] = map[string]uint64{}
		for _, stack := range view.Items {
			all[id][stack.Item] = stack.Quantity
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// copyOf copies a directory in which files may still change. It returns a copy with what was there at
// one moment: the same as the copy before.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	var before map[string]string
	for {
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		err := fs.WalkDir(os.DirFS(copied), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(filepath.Join(copied, path))
			files[path] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if maps.Equal(files, before) {
			return copied
		}
		before = files
	}
}
