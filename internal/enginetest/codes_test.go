package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

const codesCatalog = `
kuji: 1
items: {gem: {kind: currency}}
pools:
  splash:
    entries:
      - {id: coupon, weight: 4, reward: [{code: ten-percent}, {items: {gem: 1}}]}
      - {id: both, weight: 1, reward: [{code: ten-percent}, {code: keys}, {pool: inner, times: 2}]}
      - {id: blank, weight: 5}
  inner:
    internal: true
    entries:
      - {id: code, weight: 1, stock: 7, reward: {code: keys}}
      - {id: blank, weight: 1}
  drops:
    mode: each
    entries:
      - {id: code, chance: 50, reward: {code: keys}}
      - {id: gem, chance: 50, reward: {items: {gem: 1}}}
`

// someCodes returns n codes, the same for the same tag.
func someCodes(tag string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("SECRET-%s-%04d", tag, i)
	}
	return all
}

// openCodes opens a realm with codesCatalog.
func openCodes(t testing.TB, dir string, o worldOptions) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	e, err := openWorld(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() }) // tests that care close it themselves
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, codesCatalog)); err != nil {
		t.Fatal(err)
	}
	return e, r
}

func importCodes(t testing.TB, r *kuji.Realm, list string, codes []string) kuji.Imported {
	t.Helper()
	out, err := r.Codes().Import(t.Context(), list, codes)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func codesOf(t testing.TB, r *kuji.Realm, list string) kuji.CodesView {
	t.Helper()
	v, err := r.Codes().List(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// codesIn returns the codes of a result by list.
func codesIn(res kuji.Result) map[string][]string {
	all := map[string][]string{}
	for _, o := range res.Outcomes {
		for _, c := range o.Codes {
			all[c.List] = append(all[c.List], c.Code)
		}
	}
	for _, m := range res.Members {
		for list, codes := range codesIn(m) {
			all[list] = append(all[list], codes...)
		}
	}
	return all
}

// TestCodesOnce gives codes to players who draw at the same time, one by one, ten at once and in
// groups, until none are left and after more were imported. Each is given once, in its list's order;
// a request that is repeated shows the same ones, before and after the realm is opened from its log
// and from snapshots.
func TestCodesOnce(t *testing.T) {
	for _, snapshots := range []bool{false, true} {
		t.Run(fmt.Sprint("snapshots=", snapshots), func(t *testing.T) {
			dir := t.TempDir()
			o := worldOptions{SegmentSize: 4096, TrimLog: snapshots}
			e, r := openCodes(t, dir, o)
			want := map[string][]string{"ten-percent": someCodes("a", 60), "keys": someCodes("b", 90)}
			var mu sync.Mutex
			asked, told := map[string]kuji.Request{}, map[string]kuji.Result{}
			for round := range 3 {
				for list, codes := range want {
					n := len(codes) / 3
					importCodes(t, r, list, codes[round*n:(round+1)*n])
				}
				var wg sync.WaitGroup
				for w := range 4 {
					wg.Go(func() {
						for i := range 12 {
							id, player := fmt.Sprintf("%d-%d-%d", round, w, i), fmt.Sprint("p", w)
							var req kuji.Request = kuji.Draw{ID: id, Player: player, Pool: []string{"splash", "drops"}[i%2], Count: 1 + i%3*4}
							if i%5 == 4 {
								req = kuji.Atomic{ID: id, Members: []kuji.Request{kuji.Draw{Player: player, Pool: "drops", Count: 2}, kuji.Draw{Player: player, Pool: "splash", Count: 3}}}
							}
							res, err := r.Do(context.Background(), req)
							if err != nil || res.Status != kuji.OK {
								t.Error(res, err)
							}
							mu.Lock()
							asked[id], told[id] = req, res
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				if snapshots {
					snapshot(t, r)
				}
			}
			given := map[string][]string{}
			for _, res := range told {
				for list, codes := range codesIn(res) {
					given[list] = append(given[list], codes...)
				}
			}
			hash, _, err := r.StateHash(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			rep, err := verify.Dir(dir, "test", verify.Options{})
			if err != nil || rep.StateHash != hash {
				t.Fatalf("verified: %v, state %x, was %x", err, rep.StateHash, hash)
			}
			_, r = openCodes(t, dir, o)
			for list, codes := range want {
				slices.Sort(given[list])
				if !slices.Equal(given[list], codes) { // there were enough draws for all of them
					t.Errorf("list %s: %d codes given, want each of %d once", list, len(given[list]), len(codes))
				}
				if v := codesOf(t, r, list); v.Codes != uint64(len(codes)) || v.Given != v.Codes {
					t.Errorf("list %s: %+v", list, v)
				}
				_, some, err := r.Codes().Given(t.Context(), list, 10, 1000)
				if err != nil || len(some) != len(codes)-10 {
					t.Fatal(len(some), err)
				}
				for i, g := range some {
					if g.Code.Code != codes[10+i] || g.Code.Number != uint64(10+i) || g.Time == 0 || !gave(told, asked, g) {
						t.Errorf("list %s, number %d: %#v for %s at %d", list, 10+i, g.Code, g.Player, g.Position)
					}
				}
			}
			for id, first := range told {
				again := do(t, r, asked[id])
				if !again.Replayed {
					t.Fatalf("%s was carried out again", id)
				}
				if again.Replayed = false; !reflect.DeepEqual(again, first) {
					t.Errorf("%s: %v, first %v", id, codesIn(again), codesIn(first))
				}
			}
		})
	}
}

// gave reports whether a player was told of a code at the position that the list says.
func gave(told map[string]kuji.Result, asked map[string]kuji.Request, g kuji.GivenCode) bool {
	for id, res := range told {
		var player string
		switch q := asked[id].(type) {
		case kuji.Draw:
			player = q.Player
		case kuji.Atomic:
			player = q.Members[0].(kuji.Draw).Player
		}
		if slices.Contains(codesIn(res)[g.Code.List], g.Code.Code) {
			return player == g.Player && res.Receipt.Position == g.Position && res.Receipt.Time == g.Time
		}
	}
	return false
}

// TestCodesUsedUp: an entry whose list is used up is out of stock, within a request too, until more
// codes are imported.
func TestCodesUsedUp(t *testing.T) {
	_, r := openCodes(t, t.TempDir(), worldOptions{})
	weight := func() uint64 {
		p, err := r.Pool(t.Context(), "splash")
		if err != nil {
			t.Fatal(err)
		}
		return p.TotalWeight
	}
	if got := weight(); got != 5 {
		t.Errorf("without codes the pool's weights add up to %d", got)
	}
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "splash", Count: 10}); len(codesIn(res)) != 0 {
		t.Errorf("%v without an import", codesIn(res))
	}
	importCodes(t, r, "ten-percent", []string{"x", "y", "z"})
	if got := weight(); got != 9 { // both needs a key too
		t.Errorf("with codes of one list the pool's weights add up to %d", got)
	}
	res := do(t, r, kuji.Draw{Player: "ann", Pool: "splash", Count: 100})
	if got := codesIn(res)["ten-percent"]; !slices.Equal(got, []string{"x", "y", "z"}) {
		t.Errorf("gave %v", got)
	}
	for _, o := range res.Outcomes {
		if (len(o.Codes) > 0) != (o.Entry == "coupon") {
			t.Errorf("entry %s gave %d codes", o.Entry, len(o.Codes))
		}
	}
	if got := weight(); got != 5 {
		t.Errorf("after the last code the pool's weights add up to %d", got)
	}
}

// TestImportTwice: the same import again changes nothing, not even the log; codes that a list has
// are passed over.
func TestImportTwice(t *testing.T) {
	_, r := openCodes(t, t.TempDir(), worldOptions{})
	codes := someCodes("a", 1000)
	first := importCodes(t, r, "ten-percent", append(slices.Clone(codes), codes[:10]...))
	if first.Added != 1000 || first.List.Codes != 1000 {
		t.Fatalf("%+v", first)
	}
	hash, _, _ := r.StateHash(t.Context())
	events := r.Stats().Events
	if again := importCodes(t, r, "ten-percent", codes); again.Added != 0 || again.List != first.List {
		t.Errorf("again: %+v, first %+v", again, first)
	}
	if now, _, _ := r.StateHash(t.Context()); now != hash || r.Stats().Events != events {
		t.Error("the same import again changed the realm")
	}
	if more := importCodes(t, r, "ten-percent", someCodes("a", 1001)); more.Added != 1 {
		t.Errorf("%+v", more)
	}
	if other := importCodes(t, r, "keys", codes); other.Added != 1000 {
		t.Errorf("another list: %+v", other)
	}
}

// TestImportRefused: a bad import adds nothing, and its error does not repeat a code.
func TestImportRefused(t *testing.T) {
	_, r := openCodes(t, t.TempDir(), worldOptions{})
	long := strings.Repeat("SECRET", 22)
	for name, codes := range map[string][]string{
		"none": nil, "empty": {"SECRET-1", ""}, "long": {long}, "control": {"SECRET\n1"}, "space": {" SECRET"}, "not UTF-8": {"SECRET\xff"},
		"too many": someCodes("a", kuji.MaxImport+1), "too large": slices.Repeat([]string{long[:kuji.MaxCode]}, kuji.MaxImport),
	} {
		_, err := r.Codes().Import(t.Context(), "ten-percent", codes)
		wantCode(t, err, kuji.CodeInvalid)
		if strings.Contains(fmt.Sprint(err), "SECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, list := range []string{"", "a b", strings.Repeat("x", 65)} {
		_, err := r.Codes().Import(t.Context(), list, []string{"x"})
		wantCode(t, err, kuji.CodeInvalid)
	}
	if v := codesOf(t, r, "ten-percent"); v.Codes != 0 {
		t.Errorf("%+v", v)
	}
	_, err := r.Codes().List(t.Context(), "nosuch")
	wantCode(t, err, kuji.CodeNotFound)
	_, _, err = r.Codes().Given(t.Context(), "ten-percent", 0, -1)
	wantCode(t, err, kuji.CodeInvalid)
}

// TestImportAlike: codes that differ only in what makes no difference when they are sent are bounded,
// because they cost more to find than others.
func TestImportAlike(t *testing.T) {
	dir := t.TempDir()
	e, r := openCodes(t, dir, worldOptions{})
	var alike []string
	for n := range 40 { // with 49 in its index, a process without the bound dies
		alike = append(alike, "SECRET"+strings.Repeat("-", n))
	}
	importCodes(t, r, "ten-percent", alike[:10])
	for _, codes := range [][]string{alike, alike[10:17], alike[20:40]} {
		_, err := r.Codes().Import(t.Context(), "ten-percent", codes)
		wantCode(t, err, kuji.CodeConflict)
		if strings.Contains(fmt.Sprint(err), "SECRET") {
			t.Error(err)
		}
	}
	_, err := r.Codes().Import(t.Context(), "new", alike[:17])
	wantCode(t, err, kuji.CodeConflict)
	if got := importCodes(t, r, "ten-percent", alike[:16]); got.Added != 6 {
		t.Errorf("%+v", got)
	}
	snapshot(t, r)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, r = openCodes(t, dir, worldOptions{})
	if v := codesOf(t, r, "ten-percent"); v.Codes != 16 {
		t.Errorf("%+v", v)
	}
	_, err = r.Codes().Import(t.Context(), "ten-percent", alike[16:17])
	wantCode(t, err, kuji.CodeConflict)
	if got := importCodes(t, r, "ten-percent", someCodes("other", 5000)); got.Added != 5000 {
		t.Errorf("%+v", got)
	}
}

// TestCodesRedacted: nothing but results and the export shows a code: not the records of the log,
// not a printed result.
func TestCodesRedacted(t *testing.T) {
	dir := t.TempDir()
	e, r := openCodes(t, dir, worldOptions{})
	importCodes(t, r, "ten-percent", someCodes("a", 1000))
	importCodes(t, r, "keys", someCodes("b", 1000))
	var res kuji.Result
	for range 30 { // one draw in ten gives a key
		res = do(t, r, kuji.Draw{Player: "ann", Pool: "splash", Count: 50})
		if len(codesIn(res)["keys"]) > 0 {
			break
		}
	}
	do(t, r, kuji.Atomic{Members: []kuji.Request{kuji.Draw{Player: "bob", Pool: "splash", Count: 20}}})
	if len(codesIn(res)["keys"]) == 0 || len(codesIn(res)["ten-percent"]) == 0 {
		t.Fatal("the draw gave no codes")
	}
	if text := fmt.Sprintf("%v %+v %#v", res, res.Outcomes, res.Outcomes); strings.Contains(text, "SECRET") {
		t.Errorf("printed: %s", text)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	imported, redacted := 0, 0
	if _, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) {
		text, err := json.Marshal(rec)
		if err != nil || strings.Contains(string(text), "SECRET") {
			t.Errorf("%s (%v)", text, err)
		}
		if rec.Kind == "codes" {
			imported += rec.Count
		}
		redacted += strings.Count(string(text), kuji.Redacted)
	}}); err != nil {
		t.Fatal(err)
	}
	if imported != 2000 || redacted == 0 {
		t.Errorf("%d codes imported and %d given, by the records", imported, redacted)
	}
}

// couponClient imports codes and draws, and remembers what it was told.
type couponClient struct {
	acked map[string]kuji.Result
	given map[string]string // by code: the request
	codes uint64            // of ten-percent that it was told of
}

func newCouponClient() *couponClient {
	return &couponClient{acked: map[string]kuji.Result{}, given: map[string]string{}}
}

// session imports and draws until the disk fails.
func (c *couponClient) session(t testing.TB, disk vfs.FS) error {
	e, err := openWorld("data", worldOptions{FS: disk, SegmentSize: 4096, TrimLog: true})
	if err != nil {
		return err
	}
	defer e.Close() // fails when the power is off
	r, err := e.Realm("test")
	if err != nil {
		return err
	}
	if _, err := r.Apply(t.Context(), parse(t, codesCatalog)); err != nil {
		return err
	}
	if v, err := r.Codes().List(t.Context(), "ten-percent"); err != nil || v.Codes < c.codes {
		return fmt.Errorf("%+v, but %d were told of (%w)", v, c.codes, err)
	}
	for round := range 3 {
		for part := range 3 {
			in, err := r.Codes().Import(kuji.Stale(t.Context()), "ten-percent", someCodes("a", 20)[part*4:8+part*4])
			if err != nil {
				return err
			}
			c.codes = in.List.Codes
			if _, err := r.Codes().Import(t.Context(), "keys", someCodes("b", 12)[part*4:4+part*4]); err != nil {
				return err
			}
			id := fmt.Sprint(round, ".", part)
			res, err := r.Do(t.Context(), kuji.Draw{ID: id, Player: fmt.Sprint("p", part), Pool: "splash", Count: 4})
			if err != nil {
				return err
			}
			res.Replayed = false
			if was, ok := c.acked[id]; ok && !reflect.DeepEqual(was, res) {
				return fmt.Errorf("%s gave %v, first %v", id, codesIn(res), codesIn(was))
			}
			c.acked[id] = res
			for _, codes := range codesIn(res) {
				for _, code := range codes {
					if other, ok := c.given[code]; ok && other != id {
						return fmt.Errorf("code %s given to %s and %s", code, other, id)
					}
					c.given[code] = id
				}
			}
		}
		if _, err := r.Snapshot(t.Context()); err != nil {
			return err
		}
	}
	if v, err := r.Codes().List(t.Context(), "ten-percent"); err != nil || v.Codes != 16 {
		return fmt.Errorf("%+v (%w)", v, err)
	}
	return nil
}

// TestCodesCrash cuts the power before each operation that changes the disk, while codes are
// imported, given and put into snapshots. The import is then repeated from its start: every code is
// in its list once and was given once, and what was told stands.
func TestCodesCrash(t *testing.T) {
	dry := vfs.NewMem()
	if err := newCouponClient().session(t, dry); err != nil {
		t.Fatal(err)
	}
	_, steps := dry.Ops()
	if steps < 60 {
		t.Fatalf("only %d steps: the session did not run", steps)
	}
	stride := int64(1)
	if testing.Short() {
		stride = 5
	}
	for step := int64(0); step < steps; step += stride {
		disk, c := vfs.NewMem(), newCouponClient()
		disk.CutPowerAfter(step)
		err := c.session(t, disk) // at the last steps it only fails to close
		if _, after := disk.Ops(); err == nil && after < step {
			t.Fatalf("the session ended after %d steps, before the power cut at %d", after, step)
		}
		for crashed := range disk.CrashSamples(3, uint64(step), false) {
			again := &couponClient{maps.Clone(c.acked), maps.Clone(c.given), c.codes}
			if err := again.session(t, crashed); err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
			if _, err := verifyIn(crashed, "data", "test", nil); err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
		}
	}
}

// BenchmarkImport imports a million codes, as the command does, in a realm in memory.
func BenchmarkImport(b *testing.B) {
	chunks := make([][]string, 100)
	for i := range chunks {
		chunks[i] = someCodes(fmt.Sprintf("%02d", i), kuji.MaxImport)
	}
	for b.Loop() {
		e, err := openWorld(b.TempDir(), worldOptions{})
		if err != nil {
			b.Fatal(err)
		}
		r, err := e.Realm("test")
		if err != nil {
			b.Fatal(err)
		}
		for _, codes := range chunks {
			importCodes(b, r, "ten-percent", codes)
		}
		if v := codesOf(b, r, "ten-percent"); v.Codes != 1_000_000 {
			b.Fatalf("%+v", v)
		}
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCodesOdds: an entry whose list is used up has no odds, within a draw too.
func TestCodesOdds(t *testing.T) {
	_, r := openCodes(t, "data", worldOptions{FS: vfs.NewMem()})
	want := func(pool string, nums ...int64) {
		t.Helper()
		o, err := r.Pools().Odds(t.Context(), pool, "", 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range nums {
			if chance := big.NewRat(n, 90); o.Outcomes[i].Chance.Cmp(chance) != 0 {
				t.Errorf("%s/%s has a chance of %v, want %v", pool, o.Outcomes[i].Entry, o.Outcomes[i].Chance, chance)
			}
		}
	}
	want("splash", 0, 0, 90)
	want("drops", 0, 45)
	importCodes(t, r, "ten-percent", someCodes("A", 1))
	want("splash", 40, 0, 50)
	importCodes(t, r, "keys", someCodes("B", 2))
	want("drops", 45, 45)
	codes := func(want *big.Rat) {
		t.Helper()
		o, err := r.Pools().Odds(t.Context(), "splash", "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if e := o.Outcomes[3]; e.Pool != "inner" || e.Entry != "code" || e.Expected.Cmp(want) != 0 {
			t.Errorf("%s/%s is taken %v times, want %v", e.Pool, e.Entry, e.Expected, want)
		}
	}
	want("splash", 36, 9, 45)
	codes(big.NewRat(3, 40)) // one of the two is given first, so of two draws at most one gives a code
	importCodes(t, r, "keys", someCodes("C", 1))
	want("splash", 36, 9, 45)
	codes(big.NewRat(4, 40))
}
