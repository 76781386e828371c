package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// epoch is when the simulated clock starts, in Unix milliseconds: a Sunday evening, so that days
// and weeks end soon.
const epoch = 1_767_563_900_000

// makeCatalogs returns the catalogs that are applied to a realm, one after the other.
func makeCatalogs(seed uint64, realm int, faults Faults) []*catalog.Catalog {
	r := stream(seed, 2+uint64(realm)<<32)
	n := 1
	if faults&Catalogs != 0 {
		n += r.IntN(4)
	}
	var all []*catalog.Catalog
	for i := range n {
		if i >= 2 && r.IntN(4) == 0 {
			all = append(all, all[i-2]) // the one before last again
			continue
		}
		text := catalogText(r, faults)
		c, err := catalog.Parse([]byte(text))
		if err != nil {
			panic(fmt.Sprintf("sim: a bad catalog: %v\n%s", err, text))
		}
		all = append(all, c)
	}
	return all
}

// windows are the lengths of rolling windows, in milliseconds: few, so that SetLimits name them.
var windows = []int64{7 * 60_000, 60 * 60_000, 200 * 60_000}

// catalogText writes a small catalog: few pools, little stock, and every rule.
func catalogText(r *rand.Rand, faults Faults) string {
	var b strings.Builder
	pf := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	pf("kuji: 1")
	version := r.Uint32()
	pf("name: v%d", version) // no two are the same
	itemsText(r, version, pf)
	if r.IntN(3) > 0 {
		pf("start: {gem: %d, key: %d, box: %d, chip: %d}", 1+r.IntN(40), 1+r.IntN(9), 1+r.IntN(5), 1+r.IntN(40))
	}
	if faults&Forget != 0 && r.IntN(2) == 0 {
		form := ""
		if r.IntN(2) == 0 {
			form = fmt.Sprintf(", ids: time-ordered, ahead: %ds", 10+r.IntN(21))
		}
		pf("idempotency: {count: %d, age: %dm%s}", 4+r.IntN(60), (1+r.IntN(90))*(1+r.IntN(2)*40), form) // for an hour, or for days
	}
	if r.IntN(2) == 0 {
		pf("guesses: {per: %s, count: %d}", []string{"day", "week", "month", "forever"}[r.IntN(4)], 1+r.IntN(3))
	}
	if r.IntN(2) == 0 {
		pf("day: {begins: '%02d:%02d', week: %v}", r.IntN(24), 30*r.IntN(2), catalog.Weekday(r.IntN(7)))
	}
	seasonsText(r, pf)
	roundsText(r, pf)
	goals := r.IntN(4) > 0
	if goals {
		bosses := countersText(r, pf)
		ranksText(r, pf)
		questsText(r, bosses, pf)
	}
	pf("pools:")
	pf("  open:")
	if r.IntN(2) == 0 { // each draw takes one entry
		pf("    limits: [{per: day, draws: %d}, {per: window, window: %dms, draws: %d}]", 2+r.IntN(5), windows[r.IntN(len(windows))], 1+r.IntN(3))
	}
	pf("    entries:")
	pf("      - {id: sword, weight: %d, stock: %d, reward: {items: {sword: 1}}}", 1+r.IntN(5), r.IntN(6))
	pf("      - {id: dust, weight: %d, reward: nothing}", 1+r.IntN(9))
	pf("      - {id: never, weight: 0, reward: {items: {gold: 1000}}}")
	pf("  box:\n    mode: raffle\n    max_count: %d\n    entries:", 3+r.IntN(8))
	for i := range 1 + r.IntN(3) {
		pf("      - {id: t%d, stock: %d, reward: {items: {gem: {min: %d, max: %d}, gold: %d}}}", i, 1-min(i, 1)+r.IntN(12), 1+i, 4+i, 1+i)
	}
	pf("  paid:\n    price: {gem: %d}", 1+r.IntN(6))
	redeemText(r, pf)
	if r.IntN(2) == 0 {
		pf("    limits: [{per: day, draws: %d}, {per: forever, draws: %d}]", 2+r.IntN(4), 4+r.IntN(9))
	} else {
		pf("    limits: [{per: %s, draws: %d}, {per: window, window: %dms, draws: %d}]", []string{"week", "month"}[r.IntN(2)], 3+r.IntN(6), windows[r.IntN(len(windows))], 2+r.IntN(3))
	}
	pf("    entries:")
	pf("      - {id: sword, weight: 1, stock: %d, reward: {items: {sword: 1}}}", r.IntN(5))
	pf("      - {id: shield, weight: 0.5, stock: %d, reward: {items: {shield: {min: 1, max: 3}}}}", 1+r.IntN(8))
	if r.IntN(3) > 0 {
		pf("  chain:\n    entries:")
		pf("      - {id: inner, weight: 3, reward: {pool: box}}")
		pf("      - {id: other, weight: 2, stock: %d, reward: {pool: paid}}", r.IntN(5))
		pf("      - {id: gold, weight: 1, reward: {items: {gold: 2}}}")
	}
	if r.IntN(3) == 0 {
		pf("  timed:\n    starts: %s\n    ends: %s\n    entries: [{id: x, weight: 1, reward: {items: {gold: 1}}}]",
			stamp(epoch+r.Int64N(3_600_000)), stamp(epoch+3_600_000+r.Int64N(36_000_000)))
	}
	adaptiveText(r, pf)
	severalText(r, pf)
	campaignText(r, pf)
	heldText(goals, r, pf)
	if goals {
		pf("  late:\n    when: {counters: {%s: %d}}\n    entries:", []string{"wins", "wins", "sold", "visits"}[r.IntN(4)], 1)
		pf("      - {id: a, weight: 3, luck: {counter: hits, weights: [{from: 1, weight: 50}, {from: 4, weight: 0}]}, reward: {items: {gold: 1}}}")
		pf("      - {id: b, weight: 3, when: {counters: {hits: 2}, quests: {hunter: 1}}, reward: {pool: five}}")
		pf("      - {id: c, weight: 1}")
	}
	return withoutRanges(b.String())
}

// itemsText writes the items: some last, some are capped.
func itemsText(r *rand.Rand, version uint32, pf func(string, ...any)) {
	key := []string{"lasts: 40m, ", "lasts: 26h, ", ""}[version%3]
	gold := []string{"lasts: 10h, ", "", ""}[version/3%3]
	clover := []string{"{lasts: 3h, extend: true}", "{lasts: 1m}", "{" + strings.TrimSuffix(growText(r), ", ") + "}"}[version/9%3]
	pf("items:")
	pf("  gem: {%skind: currency}", growText(r))
	pf("  gold: {%s%skind: currency}", capText(r, 10, gold != ""), gold)
	pf("  sword: {%sfamily: arms}", capText(r, 1, false))
	pf("  shield: {%sfamily: arms}", capText(r, 2, false))
	pf("  key: {%s}", strings.TrimSuffix(capText(r, 9, key != "")+key, ", "))
	pf("  clover: %s", clover)
	pf("  card-a: {%sfamily: deck}", capText(r, 1, false))
	pf("  box: {%s}\n  chip: {kind: currency}\n  cup: {%s}", strings.TrimSuffix(capText(r, 5, false), ", "), []string{"", "most: 2, beyond: refuse", "most: 2, beyond: cut", "most: 3, beyond: {mail: 5h}"}[r.IntN(4)])
	pf("  card-b: {family: %s}\n  card-c: {family: deck}\n  cash: {}", []string{"arms", "deck"}[r.IntN(2)])
}

// adaptiveText writes pools whose odds depend on the player. Two banners share a track.
func adaptiveText(r *rand.Rand, pf func(string, ...any)) {
	soft := func(from int) string {
		switch r.IntN(3) {
		case 0:
			return fmt.Sprintf("rising: {from: %d, by: %d.%d}", from, 5+r.IntN(60), r.IntN(10))
		case 1:
			return fmt.Sprintf("rising: {from: %d, by: [0.25, %d, 100]}", from, r.IntN(101))
		}
		return fmt.Sprintf("certain: %d", from+r.IntN(2))
	}
	for _, id := range []string{"banner", "encore"} {
		pf("  %s:\n    price: [{gold: %d}, {gem: %d, key: 1}]", id, 1+r.IntN(3), 1+r.IntN(3))
		if r.IntN(2) == 0 {
			pf("    bundles: [{draws: 2, price: {gem: %d}}, {draws: 3, price: {key: 1}}]", 1+r.IntN(3))
		}
		if r.IntN(3) > 0 {
			pf("    free: {per: %s, draws: %d}", []string{"day", "week", "month", "forever"}[r.IntN(4)], 1+r.IntN(3))
		}
		pf("    pity:\n      five: {certain: %d, share: banner}\n      four: {of: [four, silver], %s}", 2+r.IntN(4), soft(2))
		if r.IntN(2) == 0 {
			pf("    guarantee: [{draws: %d, at_least: 1, of: [five, four, silver]}]", 2+r.IntN(2))
		}
		pf("    entries:")
		if r.IntN(2) == 0 {
			pf("      - {id: five, weight: 0.5, reward: {pool: five}}")
		} else {
			pf("      - {id: five, weight: 0.5, stock: %d, reward: {items: {sword: 1}}}", 1+r.IntN(6))
		}
		pf("      - {id: four, weight: 3, reward: {items: {shield: {min: 1, max: 3}}}}")
		pf("      - {id: spare, weight: 2, group: silver, when: {pity: {five: %d}}, reward: {items: {key: 1}}}", 1+r.IntN(3))
		pf("      - {id: three, weight: %d}", 10+r.IntN(50))
	}
	pf("  five:\n    internal: true\n    pity: {featured: {certain: 2, share: featured}}\n    entries:")
	pf("      - {id: featured, weight: 1, reward: {items: {card-a: 1}}}")
	pf("      - {id: lost, weight: %d, reward: {items: {gold: 1}}}", 1+r.IntN(9))
	pf("  cards:\n    max_count: 5")
	if r.IntN(2) == 0 {
		pf("    when: {lacks: [clover]}")
	}
	pf("    entries:")
	for _, card := range []string{"a", "b", "c"} {
		stock := ""
		if r.IntN(4) == 0 {
			stock = fmt.Sprintf(", stock: %d", 1+r.IntN(5))
		}
		pf("      - {id: %s, weight: %d, unique: true%s, reward: {items: {card-%s: 1}}}", card, 1+r.IntN(3), stock, card)
	}
	pf("  luck:\n    pity: {win: {%s}}\n    entries:", soft(1+r.IntN(3)))
	pf("      - {id: win, weight: 1, luck: {item: clover, weights: [{from: 1, weight: 20}, {from: 3, weight: 0}]}, reward: {items: {clover: 1, gold: 1}}}")
	pf("      - {id: card, weight: 8, unique: true, reward: {items: {card-b: 1, gold: 1}}}")
	pf("      - {id: rich, weight: 5, when: {holds: {clover: %d}, lacks: [card-c]}, reward: {items: {card-c: 1}}}", 1+r.IntN(2))
	pf("      - {id: blank, weight: 3, luck: {pity: win, weights: [{from: 2, weight: 1}]}}")
	pf("      - {id: rest, weight: 2}")
}

// severalText writes pools whose draws take several entries, or none.
func severalText(r *rand.Rand, pf func(string, ...any)) {
	pf("  chest:\n    price: {key: 1}\n    rolls: {min: %d, max: 3}\n    entries:", 1+r.IntN(3))
	pf("      - {id: gold, weight: 3, reward: [{items: {gold: {min: 2, max: 7}}}, {pool: drops, times: %d}, {pool: hand}]}", 1+r.IntN(2))
	pf("      - {id: rare, weight: 2, stock: %d, reward: {items: {sword: 1}}}", r.IntN(4))
	pf("      - {id: five, weight: 1, reward: {pool: five, times: {min: 1, max: 2}}}")
	pf("      - {id: blank, weight: 2}")
	pf("  drops:\n    mode: each\n    rolls: %d\n    entries:", 1+r.IntN(2))
	pf("      - {id: bone, chance: 100, reward: {items: {gem: 1}}}")
	pf("      - {id: egg, chance: %d.5, stock: %d, reward: {items: {gem: {min: 1, max: 3}}}}", r.IntN(90), r.IntN(8))
	pf("      - {id: never, chance: 0, reward: {items: {gold: 1000}}}")
	pf("      - {id: clover, chance: 40, unique: true, reward: {items: {clover: 1}}}")
	pf("      - {id: card, chance: 100, when: {lacks: [card-c], holds: {key: 2}}, stock: %d, reward: {items: {card-c: 1}}}", 1+r.IntN(5))
	pf("  hand:\n    rolls: {min: %d, max: 3, distinct: true}\n    entries:", 1+r.IntN(3))
	pf("      - {id: one, weight: 20, reward: {items: {gold: 1}}}")
	pf("      - {id: two, weight: 9}")
	pf("      - {id: three, weight: 1, reward: {items: {gem: 2}}}")
	pf("      - {id: lucky, weight: 3, stock: %d, when: {holds: {clover: 1}}, reward: {items: {shield: 1}}}", 1+r.IntN(5))
	pf("  kuji:\n    mode: raffle\n    refill: %d\n    last: [{items: {sword: 1}}, {pool: hand}]\n    entries:", r.IntN(4))
	pf("      - {id: a, stock: 1, reward: {items: {shield: 1}}}")
	pf("      - {id: b, stock: %d, reward: {pool: five}}", 1+r.IntN(2))
	pf("      - {id: c, stock: %d, reward: {items: {gold: 1}}}", r.IntN(3))
}

var players = []string{"ann", "bob", "cyd", "dee"}

// someItems returns one or two stacks, at times too many, or of what there is not.
func someItems(r *rand.Rand) []kuji.Stack {
	names := []string{"gem", "gold", "gold", "sword", "shield", "key", "key", "clover", "card-a", "card-b", "card-c", "box", "box", "chip", "chip"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var out []kuji.Stack
	for i, n := range names[:1+r.IntN(2)] {
		if i > 0 && n == names[0] {
			break
		}
		q := 1 + r.Uint64N(5)
		if r.IntN(60) == 0 {
			q = kuji.MaxQuantity - r.Uint64N(2)
		}
		out = append(out, kuji.Stack{Item: n, Quantity: q})
	}
	if r.IntN(25) == 0 {
		out[r.IntN(len(out))].Item = "nosuch"
	}
	return out
}

// request makes a request without an id. There are few players and little stock, so requests collide.
func makeRequest(r *rand.Rand) kuji.Request {
	player := func() string { return players[r.IntN(len(players))] }
	items := func() []kuji.Stack { return someItems(r) }
	simple := func() kuji.Request {
		switch r.IntN(15) {
		case 10, 11, 12:
			return progressRequest(r, player())
		case 13, 14:
			return claimRequest(r, player())
		case 0:
			if r.IntN(4) == 0 {
				return kuji.Register{Player: player()}
			}
			return kuji.Grant{Player: player(), Items: items()}
		case 1:
			return kuji.Consume{Player: player(), Items: items()}
		case 2:
			from := r.IntN(len(players))
			to := (from + 1 + r.IntN(len(players)-1)) % len(players)
			return kuji.Transfer{From: players[from], To: players[to], Items: items()}
		}
		pools := []string{
			"open", "open", "box", "box", "paid", "paid", "chain", "timed", "nosuch", "five",
			"banner", "banner", "encore", "encore", "cards", "luck", "chest", "drops", "hand", "kuji", "splash", "splash", "splash", "till", "late", "late", "armory", "armory", "armory", "refresh", "refresh", "refresh",
		}
		d := kuji.Draw{Player: player(), Pool: pools[r.IntN(len(pools))], Count: 1 + r.IntN(3)*r.IntN(3)}
		if r.IntN(8) == 0 {
			d.Pay = []string{"gem", "gold", "key", "nosuch", "sword", "shield", "arms"}[r.IntN(7)]
		}
		return d
	}
	switch r.IntN(22) {
	case 20, 21:
		return roundRequest(r, player())
	case 17, 18, 19:
		return kuji.Collect{Player: player()}
	case 16:
		if r.IntN(2) == 0 {
			return crowdRequest(r)
		}
		return setCounterRequest(r, player())
	case 0, 1:
	case 2:
		return kuji.Redeem{Player: player()}
	case 3:
		set := kuji.SetLimit{Player: player(), Pool: []string{"open", "paid"}[r.IntN(2)], Used: r.Uint64N(7), Note: kuji.Note{Reason: "a fault"}}
		pers := []catalog.Per{catalog.PerForever, catalog.PerDay, catalog.PerWeek, catalog.PerMonth, catalog.PerWindow}
		if set.Per = pers[r.IntN(len(pers))]; set.Per == catalog.PerWindow {
			set.Window = windows[r.IntN(len(windows))]
		}
		return set
	default:
		return simple()
	}
	var group kuji.Atomic
	for range 1 + r.IntN(4) {
		if n := len(group.Members); n > 0 && r.IntN(3) == 0 {
			group.Members = append(group.Members, group.Members[n-1])
			continue
		}
		group.Members = append(group.Members, simple())
	}
	return group
}

// withID returns the request with an id.
func withID(req kuji.Request, id string) kuji.Request {
	switch q := req.(type) {
	case kuji.Draw:
		q.ID = id
		return q
	case kuji.Register:
		q.ID = id
		return q
	case kuji.Redeem:
		q.ID, q.Code = id, codeSent(id)
		return q
	case kuji.Grant:
		q.ID = id
		return q
	case kuji.Consume:
		q.ID = id
		return q
	case kuji.Transfer:
		q.ID = id
		return q
	case kuji.SetLimit:
		q.ID = id
		return q
	case kuji.Progress:
		q.ID = id
		return q
	case kuji.Claim:
		q.ID = id
		return q
	case kuji.SetCounter:
		q.ID = id
		return q
	case kuji.Collect:
		q.ID = id
		return q
	case kuji.OpenRound:
		q.ID = id
		return q
	case kuji.Join:
		q.ID = id
		return q
	case kuji.Settle:
		q.ID = id
		return q
	case kuji.Reroll:
		q.ID = id
		return q
	case kuji.CancelRound:
		q.ID = id
		return q
	case kuji.Atomic:
		q.ID = id
		return q
	}
	panic(fmt.Sprintf("sim: a request of type %T", req))
}

// asked reports whether a record in the log is the answer to a request.
func asked(req kuji.Request, rec kuji.Record) bool {
	stacks := func(a, b []kuji.Stack) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
	switch q := req.(type) {
	case kuji.Draw:
		return rec.Kind == "draw" && rec.Player == q.Player && rec.Pool == q.Pool && rec.Pay == q.Pay && rec.Count == max(1, q.Count)
	case kuji.Register:
		return rec.Kind == "register" && rec.Player == q.Player
	case kuji.Redeem:
		return rec.Kind == "redeem" && rec.Player == q.Player
	case kuji.Grant:
		return rec.Kind == "grant" && rec.Player == q.Player && stacks(rec.Items, q.Items)
	case kuji.Consume:
		return rec.Kind == "consume" && rec.Player == q.Player && stacks(rec.Items, q.Items)
	case kuji.Transfer:
		return rec.Kind == "transfer" && rec.Player == q.From && rec.To == q.To && stacks(rec.Items, q.Items)
	case kuji.SetLimit:
		return rec.Kind == "set_limit" && rec.Player == q.Player && rec.Pool == q.Pool && rec.Limit.Per == q.Per && rec.Limit.Window == q.Window && *rec.Draws == q.Used
	case kuji.Progress:
		return rec.Kind == "progress" && rec.Player == q.Player && rec.Event == q.Event && rec.Key == q.Key && *rec.Value == max(1, q.N)
	case kuji.Claim:
		return rec.Kind == "claim" && rec.Player == q.Player && rec.Quest == q.Quest && rec.Count == q.Tiers
	case kuji.SetCounter:
		return rec.Kind == "set_counter" && rec.Player == q.Player && rec.Counter == q.Counter && *rec.Value == q.Value
	case kuji.Collect:
		return rec.Kind == "collect" && rec.Player == q.Player
	case kuji.OpenRound:
		return rec.Kind == "open_round" && rec.Player == q.Player && rec.Round.Name == q.Round && stacks(rec.Items, q.Stake) && rec.Count == int(q.Tickets)
	case kuji.Join:
		return rec.Kind == "join" && rec.Player == q.Player && rec.Round.Name == q.Round && stacks(rec.Items, q.Stake) && rec.Count == int(q.Tickets)
	case kuji.Settle:
		return rec.Kind == "settle" && rec.Round.Name == q.Round
	case kuji.Reroll:
		return rec.Kind == "reroll" && rec.Round.Name == q.Round && rec.Round.Number == q.Number
	case kuji.CancelRound:
		return rec.Kind == "cancel_round" && rec.Round.Name == q.Round && rec.Round.Number == q.Number
	case kuji.Atomic:
		same := rec.Kind == "atomic" && len(rec.Members) == len(q.Members)
		for i := 0; same && i < len(q.Members); i++ {
			same = asked(q.Members[i], rec.Members[i])
		}
		return same
	}
	return false
}
