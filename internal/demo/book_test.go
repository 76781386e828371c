package demo

import (
	"errors"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// A check of the demo that cannot fail would prove nothing: each is shown good
// data, and then the same with one thing doctored.

func drawResult(position uint64, entry string, items ...*kujiv1.Stack) *kujiv1.Result {
	return &kujiv1.Result{
		Status:   kujiv1.Status_STATUS_OK,
		Outcomes: []*kujiv1.Outcome{{Entry: entry, Items: items}},
		Paid:     []*kujiv1.Stack{stack("yen", 750)},
		Receipt:  &kujiv1.Receipt{Realm: "r", Position: position, Commitment: []byte{1}},
	}
}

func stack(item string, n uint64) *kujiv1.Stack { return &kujiv1.Stack{Item: item, Quantity: n} }

func aDraw(id, player string) *kujiv1.Command {
	return &kujiv1.Command{RequestId: id, Command: &kujiv1.Command_Draw{Draw: &kujiv1.Draw{Player: player, Pool: "box"}}}
}

// twoDraws is a book with two draws of ann's: a figure at position 3, two straps at 5.
func twoDraws(t *testing.T) *book {
	t.Helper()
	l := newBook("r", &catalog.Catalog{Start: []catalog.Stack{{Item: "yen", Quantity: 1500}}}, "box")
	l.prices = []string{"coin=1", "yen=750"}
	for i, r := range []*kujiv1.Result{drawResult(3, "a", stack("figure", 1)), drawResult(5, "h", stack("strap", 2))} {
		if err := l.acknowledge(aDraw([]string{"id-1", "id-2"}[i], "ann"), r); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestCheckAgain(t *testing.T) {
	rec := twoDraws(t).records["id-1"]
	good := func() *kujiv1.Result {
		r := drawResult(3, "a", stack("figure", 1))
		r.Replayed = true
		return r
	}
	for _, tt := range []struct {
		name   string
		doctor func(*kujiv1.Result)
		want   string
	}{
		{"as it was", func(*kujiv1.Result) {}, ""},
		{"carried out anew", func(r *kujiv1.Result) { r.Replayed = false }, "forgotten"},
		{"another prize", func(r *kujiv1.Result) { r.Outcomes[0].Entry = "b" }, "answered differently"},
		{"another quantity", func(r *kujiv1.Result) { r.Outcomes[0].Items[0].Quantity = 2 }, "answered differently"},
		{"one more", func(r *kujiv1.Result) { r.Outcomes = append(r.Outcomes, r.Outcomes[0]) }, "answered differently"},
		{"another status", func(r *kujiv1.Result) { r.Status = kujiv1.Status_STATUS_SOLD_OUT }, "answered differently"},
		{"another position", func(r *kujiv1.Result) { r.Receipt.Position = 4 }, "answered differently"},
		{"another commitment", func(r *kujiv1.Result) { r.Receipt.Commitment[0] = 2 }, "answered differently"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := good()
			tt.doctor(r)
			wantError(t, rec.checkAgain(r), tt.want)
		})
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("error %q, want none", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want one with %q", err, want)
	}
}

func TestCheckPlayer(t *testing.T) {
	l := twoDraws(t)
	for _, tt := range []struct {
		name string
		got  []*kujiv1.Stack
		want string
	}{
		{"as booked, spent currency gone", []*kujiv1.Stack{stack("figure", 1), stack("strap", 2)}, ""},
		{"one lost", []*kujiv1.Stack{stack("strap", 2)}, "figure is 0, acknowledged 1"},
		{"one twice", []*kujiv1.Stack{stack("figure", 2), stack("strap", 2)}, "figure is 2, acknowledged 1"},
		{"one never acknowledged", []*kujiv1.Stack{stack("figure", 1), stack("strap", 2), stack("lamp", 1)}, "lamp is 1, acknowledged 0"},
		{"price not taken", []*kujiv1.Stack{stack("figure", 1), stack("strap", 2), stack("yen", 750)}, "yen is 750, acknowledged 0"},
	} {
		t.Run(tt.name, func(t *testing.T) { wantError(t, checkPlayer("ann", l.balances["ann"], tt.got), tt.want) })
	}
}

func TestCheckPool(t *testing.T) {
	left := func(n uint64) *uint64 { return &n }
	stock := map[string]uint64{"a": 1, "h": 35}
	good := func() *kujiv1.Pool {
		return &kujiv1.Pool{Id: "box", Entries: []*kujiv1.Entry{
			{Id: "a", Left: left(0), Drawn: 1}, {Id: "h", Left: left(34), Drawn: 1}, {Id: "blank", Drawn: 0},
		}}
	}
	acknowledged := twoDraws(t).drawn["box"]
	for _, tt := range []struct {
		name   string
		doctor func(*kujiv1.Pool)
		want   string
	}{
		{"as booked", func(*kujiv1.Pool) {}, ""},
		{"a draw nobody was told of", func(p *kujiv1.Pool) { p.Entries[1].Drawn, p.Entries[1].Left = 2, left(33) }, "drawn 2 times, acknowledged 1"},
		{"an acknowledged draw lost", func(p *kujiv1.Pool) { p.Entries[0].Drawn, p.Entries[0].Left = 0, left(1) }, "drawn 0 times, acknowledged 1"},
		{"stock not lowered", func(p *kujiv1.Pool) { p.Entries[1].Left = left(35) }, "1 drawn and 35 left of 35"},
		{"stock below zero", func(p *kujiv1.Pool) { p.Entries[0].Left = left(^uint64(0)) }, "left of 1"},
		{"stock forgotten", func(p *kujiv1.Pool) { p.Entries[0].Left = nil }, "unlimited, the catalog says 1"},
		{"stock invented", func(p *kujiv1.Pool) { p.Entries[2].Left = left(3) }, "3 left, the catalog says unlimited"},
		{"entry gone", func(p *kujiv1.Pool) { p.Entries = p.Entries[1:] }, "box/a: gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := good()
			tt.doctor(p)
			wantError(t, checkPool(p, stock, acknowledged), tt.want)
		})
	}
}

// TestCheckPoolOverdrawn: acknowledgements and counter agree, and both are more than there were.
func TestCheckPoolOverdrawn(t *testing.T) {
	zero := uint64(0)
	p := &kujiv1.Pool{Id: "box", Entries: []*kujiv1.Entry{{Id: "a", Left: &zero, Drawn: 2}}}
	wantError(t, checkPool(p, map[string]uint64{"a": 1}, map[string]uint64{"a": 2}), "2 drawn and 0 left of 1")
}

func TestOddsOf(t *testing.T) {
	p := &kujiv1.Pool{Id: "banner", Entries: []*kujiv1.Entry{{Id: "rare", CatalogWeight: 6}, {Id: "common", CatalogWeight: 994}}}
	for _, tt := range []struct {
		rare, common uint64
		want         string
	}{
		{600, 99_400, ""},
		{700, 99_300, ""}, // four standard deviations: unlikely, not impossible
		{0, 100, ""},
		{800, 99_200, "chance cannot explain that"},
		{400, 99_600, "chance cannot explain that"},
		{1000, 0, "chance cannot explain that"},
		{0, 0, "nothing to compare"},
	} {
		_, err := oddsOf(p, map[string]uint64{"rare": tt.rare, "common": tt.common})
		wantError(t, err, tt.want)
	}
}

func TestCheckRecovered(t *testing.T) {
	wantError(t, (&Recovered{"r", 7, 7}).check(), "")
	wantError(t, (&Recovered{"r", 7, 9}).check(), "")
	wantError(t, (&Recovered{"r", 7, 6}).check(), "recovered up to position 6, acknowledged up to 7")
}

func TestAudit(t *testing.T) {
	good := []kuji.Record{{Position: 1}, {ID: "id-1", Position: 3}, {ID: "id-2", Position: 5}}
	for _, tt := range []struct {
		name string
		log  []kuji.Record
		want string
	}{
		{"as booked", good, ""},
		{"one missing", good[:2], "id-2, acknowledged at position 5, is not in the log"},
		{"one twice", append(good[:3:3], kuji.Record{ID: "id-1", Position: 6}), "in the log twice, at positions 3 and 6"},
		{"one unknown", append(good[:3:3], kuji.Record{ID: "id-3", Position: 6}), "never acknowledged"},
		{"one moved", append(good[:2:2], kuji.Record{ID: "id-2", Position: 4}), "at position 4, acknowledged at 5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := twoDraws(t)
			var wrong []error
			for _, rec := range tt.log {
				if err := b.audit(rec); err != nil {
					wrong = append(wrong, err)
				}
			}
			wrong = append(wrong, b.missing()...)
			if tt.want == "" {
				if len(wrong) != 0 {
					t.Errorf("found %v, want nothing", wrong)
				}
				return
			}
			if len(wrong) != 1 {
				t.Fatalf("found %v, want one thing", wrong)
			}
			wantError(t, wrong[0], tt.want)
		})
	}
}

func TestExpand(t *testing.T) {
	zero, one := uint32(0), uint32(1)
	resp := &kujiv1.BatchResponse{
		Results: []*kujiv1.BatchResult{
			{Status: kujiv1.Status_STATUS_OK, Outcomes: []uint32{0}, Paid: []*kujiv1.Stack{stack("yen", 750)}, Receipt: &zero, Index: 4, Replayed: true},
			{Status: kujiv1.Status_STATUS_REFUSED, Error: &kujiv1.ErrorDetail{Reason: kujiv1.Reason_REASON_ID_REUSED}},
			{Status: kujiv1.Status_STATUS_OK, Outcomes: []uint32{1}, Receipt: &zero},
			{Status: kujiv1.Status_STATUS_OK, Receipt: &one},
			{Status: kujiv1.Status_STATUS_OK},
		},
		Receipts: []*kujiv1.Receipt{{Realm: "r", Position: 3, Commitment: []byte{1}}},
		Outcomes: []*kujiv1.Outcome{{Entry: "a", Items: []*kujiv1.Stack{stack("figure", 1)}}},
	}
	// What a unary call answers and what a batch answers must be the same thing.
	want := drawResult(3, "a", stack("figure", 1))
	want.Receipt.Index = 4
	wantDigest, err := digestOf(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := expand(resp.Results[0], resp)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := digestOf(got)
	if err != nil {
		t.Fatal(err)
	}
	if digest != wantDigest || !got.GetReplayed() {
		t.Errorf("expanded to %v, want %v, replayed", got, want)
	}
	for i, want := range []string{"REASON_ID_REUSED", "outcome 1 of 1", "receipt 1 of 1", "receipt 0 of 1"} {
		_, err := expand(resp.Results[i+1], resp)
		wantError(t, err, want)
	}
}

// TestPaid: a draw must cost one of the pool's prices. A refused one costs nothing.
func TestPaid(t *testing.T) {
	yen, pass := catalog.Stack{Item: "yen", Quantity: 750}, catalog.Stack{Item: "pass", Quantity: 1}
	prices := [][]catalog.Stack{{{Item: "coin", Quantity: 1}}, {yen, pass}}
	for _, tt := range []struct {
		paid   []*kujiv1.Stack
		prices [][]catalog.Stack
		want   string
	}{
		{[]*kujiv1.Stack{stack("coin", 1)}, prices, ""},
		{[]*kujiv1.Stack{stack("yen", 750), stack("pass", 1)}, prices, ""},
		{nil, nil, ""},
		{nil, prices, "cost nothing, which is none of its prices"},
		{[]*kujiv1.Stack{stack("yen", 750)}, prices, "cost yen=750, which"},
		{[]*kujiv1.Stack{stack("coin", 2)}, prices, "cost coin=2, which"},
		{[]*kujiv1.Stack{stack("coin", 1)}, nil, "cost coin=1, which"},
	} {
		b := newBook("r", &catalog.Catalog{Pools: []catalog.Pool{{ID: "box", Price: tt.prices}}}, "box")
		r := drawResult(1, "a")
		r.Paid = tt.paid
		wantError(t, b.acknowledge(aDraw("id", "ann"), r), tt.want)
	}
	b := twoDraws(t)
	refused := &kujiv1.Result{Status: kujiv1.Status_STATUS_SOLD_OUT, Receipt: &kujiv1.Receipt{Position: 10}}
	if err := b.acknowledge(aDraw("id-4", "ann"), refused); err != nil {
		t.Fatal(err)
	}
	if b.balances["ann"]["yen"] != 0 || b.drawn["box"]["h"] != 1 || b.outcomes != 2 || b.refusals != 1 || len(b.records) != 3 {
		t.Errorf("after two draws and a refusal the book is %+v", b)
	}
}

// TestStreaks: what pity promised, and where a track must be.
func TestStreaks(t *testing.T) {
	c, err := catalog.Parse([]byte(`{kuji: 1, items: {i: {}}, pools: {
		banner: {pity: {five: {of: [a, b], certain: 5, rising: {from: 4, by: 1}}, four: {of: [fours], certain: 2, share: s}},
			entries: [{id: a, weight: 1}, {id: b, weight: 1}, {id: c, weight: 1, group: fours}, {id: d, weight: 1}]},
		other: {pity: {p: {of: [x], share: s}}, entries: [{id: x, weight: 1}, {id: y, weight: 1}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	track := func(name string, draws, in uint64) *kujiv1.PlayerTrack {
		return &kujiv1.PlayerTrack{Track: name, Draws: draws, CertainIn: in}
	}
	for _, tt := range []struct {
		drawn string // entries
		plain int    // how many of them had the odds of the weights
		wrong string
		end   []*kujiv1.PlayerTrack
	}{
		{"", 0, "", nil},
		{"d", 1, "", []*kujiv1.PlayerTrack{track("banner/five", 1, 4), track("s", 1, 1)}},
		{"dc", 1, "", []*kujiv1.PlayerTrack{track("banner/five", 2, 3)}},
		{"da", 1, "", []*kujiv1.PlayerTrack{track("s", 2, 1)}}, // five goes before four, which comes next
		{"dd", 1, "draw 2 of track s took banner/d", []*kujiv1.PlayerTrack{track("banner/five", 2, 3), track("s", 2, 1)}},
		{"cccca", 3, "", []*kujiv1.PlayerTrack{track("s", 1, 1)}},
		{"ccccc", 3, "draw 5 of track banner/five took banner/c", []*kujiv1.PlayerTrack{track("banner/five", 5, 1)}},
		{"cxy", 3, "", []*kujiv1.PlayerTrack{track("banner/five", 1, 4), track("s", 1, 1)}},
	} {
		s := newStreaks(c.Pools)
		for _, e := range tt.drawn {
			pool := "banner"
			if e >= 'x' {
				pool = "other"
			}
			s.see("ann", pool, string(e))
		}
		plain := uint64(0)
		for _, entries := range s.plain {
			for _, n := range entries {
				plain += n
			}
		}
		if plain != uint64(tt.plain) {
			t.Errorf("%s: %d draws by weight alone, want %d", tt.drawn, plain, tt.plain)
		}
		wantError(t, errors.Join(s.wrong...), tt.wrong)
		wantError(t, s.check("ann", tt.end), "")
		if len(tt.end) > 0 {
			wantError(t, s.check("ann", tt.end[1:]), "is at 0, acknowledged")
			tt.end[0].Draws++
			wantError(t, s.check("ann", tt.end), "acknowledged")
			tt.end[0].Draws--
			tt.end[0].CertainIn++
			wantError(t, s.check("ann", tt.end), "certain in")
		}
		wantError(t, s.check("bob", []*kujiv1.PlayerTrack{track("s", 1, 1)}), "is at 1, certain in 1; acknowledged 0")
	}
}
