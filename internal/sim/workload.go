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

// makeCatalogs returns the catalogs that are applied to a realm one after another.
func makeCatalogs(seed uint64, realm int, faults Faults) []*catalog.Catalog {
	r := stream(seed, 2+uint64(realm)<<32)
	n := 1
	if faults&Catalogs != 0 {
		n += r.IntN(4)
	}
	var all []*catalog.Catalog
	for i := range n {
		if i >= 2 && r.IntN(4) == 0 {
			all = append(all, all[i-2]) // back to an earlier one
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

// catalogText writes a small catalog: few pools, little stock, and every rule.
func catalogText(r *rand.Rand, faults Faults) string {
	var b strings.Builder
	pf := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	pf("kuji: 1")
	pf("name: v%d", r.Uint32()) // no two are the same
	pf("items: {gem: {kind: currency}, gold: {kind: currency}, sword: {}, shield: {}}")
	if r.IntN(3) > 0 {
		pf("start: {gem: %d}", 1+r.IntN(40))
	}
	if faults&Forget != 0 && r.IntN(2) == 0 {
		pf("idempotency: {count: %d, age: %dm}", 4+r.IntN(60), 1+r.IntN(90))
	}
	pf("pools:")
	pf("  open:")
	if r.IntN(2) == 0 { // its single draws are plain ones
		pf("    limits: [{per: day, draws: %d}, {per: window, window: %dm, draws: %d}]", 2+r.IntN(5), 1+r.IntN(200), 1+r.IntN(3))
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
	if r.IntN(2) == 0 {
		pf("    limits: [{per: day, draws: %d}, {per: forever, draws: %d}]", 2+r.IntN(4), 4+r.IntN(9))
	} else {
		pf("    limits: [{per: week, draws: %d}, {per: window, window: %dm, draws: %d}]", 3+r.IntN(6), 1+r.IntN(200), 2+r.IntN(3))
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
	return b.String()
}

var players = []string{"ann", "bob", "cyd", "dee"}

// request makes a request that collides with others: few players, little stock. It has no id.
func makeRequest(r *rand.Rand) kuji.Request {
	player := func() string { return players[r.IntN(len(players))] }
	items := func() []kuji.Stack {
		names := []string{"gem", "gold", "sword", "shield"}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var out []kuji.Stack
		for _, n := range names[:1+r.IntN(2)] {
			q := 1 + r.Uint64N(5)
			if r.IntN(60) == 0 {
				q = kuji.MaxQuantity - r.Uint64N(2)
			}
			out = append(out, kuji.Stack{Item: n, Quantity: q})
		}
		if r.IntN(25) == 0 {
			out[0].Item = "nosuch"
		}
		return out
	}
	simple := func() kuji.Request {
		switch r.IntN(10) {
		case 0:
			return kuji.Grant{Player: player(), Items: items()}
		case 1:
			return kuji.Consume{Player: player(), Items: items()}
		case 2:
			from := r.IntN(len(players))
			to := (from + 1 + r.IntN(len(players)-1)) % len(players)
			return kuji.Transfer{From: players[from], To: players[to], Items: items()}
		}
		pools := []string{"open", "open", "box", "box", "paid", "paid", "chain", "timed", "nosuch"}
		return kuji.Draw{Player: player(), Pool: pools[r.IntN(len(pools))], Count: 1 + r.IntN(3)*r.IntN(3)}
	}
	if r.IntN(8) > 0 {
		return simple()
	}
	var group kuji.Atomic
	for range 1 + r.IntN(4) {
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
	case kuji.Grant:
		q.ID = id
		return q
	case kuji.Consume:
		q.ID = id
		return q
	case kuji.Transfer:
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
		return rec.Kind == "draw" && rec.Player == q.Player && rec.Pool == q.Pool && rec.Count == max(1, q.Count)
	case kuji.Grant:
		return rec.Kind == "grant" && rec.Player == q.Player && stacks(rec.Items, q.Items)
	case kuji.Consume:
		return rec.Kind == "consume" && rec.Player == q.Player && stacks(rec.Items, q.Items)
	case kuji.Transfer:
		return rec.Kind == "transfer" && rec.Player == q.From && rec.To == q.To && stacks(rec.Items, q.Items)
	case kuji.Atomic:
		same := rec.Kind == "atomic" && len(rec.Members) == len(q.Members)
		for i := 0; same && i < len(q.Members); i++ {
			same = asked(q.Members[i], rec.Members[i])
		}
		return same
	}
	return false
}
