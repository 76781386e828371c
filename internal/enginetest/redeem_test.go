package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

const capsCatalog = `
kuji: 1
items: {gem: {kind: currency}}
start: {gem: 1}
guesses: {per: day, count: 3}
pools:
  splash:
    redeem: [{code: caps}, {code: crates, times: 5}, {code: shared, uses: 3}]
    entries:
      - {id: gem, weight: 1, reward: {items: {gem: {min: 1, max: 9}}}}
      - {id: blank, weight: 3}
`

// openCaps opens a realm with capsCatalog and its codes.
func openCaps(t testing.TB, dir string, o worldOptions) (*kuji.Engine, *kuji.Realm) {
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
	if _, err := r.Apply(t.Context(), parse(t, capsCatalog)); err != nil {
		t.Fatal(err)
	}
	importCodes(t, r, "caps", someCodes("a", 40))
	importCodes(t, r, "crates", someCodes("b", 2))
	importCodes(t, r, "shared", []string{"SECRET-SHARED"})
	return e, r
}

// TestRedeemOnce lets players race for the same codes. Each code pays once, and one to share as often
// as it may; answers stay, before and after the realm is opened from its log and from snapshots, and
// the verifier comes to the same.
func TestRedeemOnce(t *testing.T) {
	for _, snapshots := range []bool{false, true} {
		t.Run(fmt.Sprint("snapshots=", snapshots), func(t *testing.T) {
			dir := t.TempDir()
			o := worldOptions{SegmentSize: 4096, TrimLog: snapshots}
			e, r := openCaps(t, dir, o)
			var mu sync.Mutex
			asked, told := map[string]kuji.Redeem{}, map[string]kuji.Result{}
			send := func(player, code string) {
				req := kuji.Redeem{ID: player + "/" + code, Player: player, Code: code}
				res, err := r.Do(context.Background(), req)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				asked[req.ID], told[req.ID] = req, res
				mu.Unlock()
			}
			for part := range 2 {
				var wg sync.WaitGroup
				for p := range 4 {
					wg.Go(func() {
						for i := range 20 {
							send(fmt.Sprint("p", p), fmt.Sprintf("secret a %04d", 20*part+i))
						}
						send(fmt.Sprint("p", p), fmt.Sprintf("secret-b-000%d", part))
						if part == 0 {
							send(fmt.Sprint("p", p), "secretshared")
						}
						send(fmt.Sprint("p", p), fmt.Sprint("no such code ", part))
					})
				}
				wg.Wait()
				if snapshots {
					snapshot(t, r)
				}
			}
			statuses, paid := map[kuji.Status]int{}, map[string]int{}
			for _, res := range told {
				statuses[res.Status]++
				paid[res.Redeemed] += len(res.Outcomes)
			}
			want := map[kuji.Status]int{kuji.OK: 40 + 2 + 3, kuji.CodeUsedUp: 3*40 + 3*2 + 1, kuji.UnknownCode: 8}
			if !maps.Equal(statuses, want) || paid["caps"] != 40 || paid["crates"] != 10 || paid["shared"] != 3 {
				t.Errorf("ended %v, want %v; paid for %v draws", statuses, want, paid)
			}
			if draws := r.Stats().Draws; draws != 53 {
				t.Errorf("%d draws counted", draws)
			}
			hash, _, err := r.StateHash(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			rep, err := verify.Dir(dir, "test", verify.Options{})
			if err != nil || rep.StateHash != hash || !snapshots && rep.Draws != 53 {
				t.Fatalf("verified: %v, %d draws, state %x, was %x", err, rep.Draws, rep.StateHash, hash)
			}
			_, r = openCaps(t, dir, o)
			v, uses, err := r.Codes().Used(t.Context(), "caps", 5, 100)
			if err != nil || v.Redeemed != 40 || v.Uses != 40 || v.Given != 0 || len(uses) != 35 {
				t.Fatalf("%+v, %d uses, %v", v, len(uses), err)
			}
			for _, u := range uses {
				res := told[fmt.Sprintf("%s/secret a %04d", u.Player, u.Code.Number)]
				if res.Status != kuji.OK || res.Receipt.Position != u.Position || res.Receipt.Time != u.Time || u.Code.Code != fmt.Sprintf("SECRET-a-%04d", u.Code.Number) {
					t.Errorf("number %d by %s at %d: %v", u.Code.Number, u.Player, u.Position, res)
				}
			}
			if v := codesOf(t, r, "shared"); v.Codes != 1 || v.Redeemed != 1 || v.Uses != 3 {
				t.Errorf("%+v", v)
			}
			for id, first := range told {
				again := do(t, r, asked[id])
				if !again.Replayed {
					t.Fatalf("%s was carried out again", id)
				}
				if again.Replayed = false; !reflect.DeepEqual(again, first) {
					t.Errorf("%s: %v, first %v", id, again, first)
				}
				_, err := r.Do(t.Context(), kuji.Redeem{ID: id, Player: asked[id].Player, Code: "another"})
				wantCode(t, err, kuji.CodeIDReused)
			}
		})
	}
}

// TestRedeemGuesses: a guess counts once for each request id, and stays counted.
func TestRedeemGuesses(t *testing.T) {
	dir, s := t.TempDir(), newSteps()
	o := worldOptions{Steps: s, Now: s.Now}
	e, r := openCaps(t, dir, o)
	for i := range 9 {
		if res := do(t, r, kuji.Redeem{ID: fmt.Sprint(i / 3), Player: "ann", Code: fmt.Sprint("guess", i/3)}); res.Status != kuji.UnknownCode || res.Replayed != (i%3 > 0) {
			t.Fatalf("%d: %+v", i, res)
		}
	}
	if v, err := r.Player(t.Context(), "ann"); err != nil || len(v.Items) != 0 { // guesses bring no starting grants
		t.Errorf("%+v %v", v, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, r = openCaps(t, dir, o)
	late := kuji.Redeem{ID: "late", Player: "ann", Code: "SECRET-a-0000"}
	if res := do(t, r, late); res.Status != kuji.TooManyGuesses || res.Subject != "" {
		t.Errorf("%v", res)
	}
	s.now = s.now.Add(24 * time.Hour)
	if res := do(t, r, late); res.Status != kuji.TooManyGuesses || !res.Replayed {
		t.Errorf("the same id a day later: %v", res)
	}
	if res := do(t, r, kuji.Redeem{Player: "ann", Code: "SECRET-a-0000"}); res.Status != kuji.OK || res.Redeemed != "caps" {
		t.Errorf("a day later: %v", res)
	}
}

// TestRedeemRefused: what is not carried out, and in words that do not repeat the code.
func TestRedeemRefused(t *testing.T) {
	_, r := openCaps(t, t.TempDir(), worldOptions{})
	for _, code := range []string{"", " - ", "SECRET\n", "SECRET\xff", strings.Repeat("SECRET", 22)} {
		_, err := r.Do(t.Context(), &kuji.Redeem{Player: "ann", Code: code})
		wantCode(t, err, kuji.CodeInvalid)
		if strings.Contains(fmt.Sprint(err), "SECRET") {
			t.Error(err)
		}
	}
	for _, m := range []kuji.Request{kuji.Redeem{Player: "ann", Code: "SECRET-a-0000"}, &kuji.Redeem{}, (*kuji.Redeem)(nil)} {
		_, err := r.Do(t.Context(), kuji.Atomic{Members: []kuji.Request{kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}, m}})
		wantCode(t, err, kuji.CodeInvalid)
		if !strings.Contains(err.Error(), "members[1]") || strings.Contains(err.Error(), "SECRET") {
			t.Error(err)
		}
	}
	_, _, err := r.Codes().Used(t.Context(), "caps", 0, -1)
	wantCode(t, err, kuji.CodeInvalid)
	if _, err := r.Player(t.Context(), "ann"); err == nil {
		t.Error("a request that was refused made a player")
	}
}

// TestRedeemHidden: neither records of the log nor printed requests and results have a code or a
// guess, nor has the log what was sent.
func TestRedeemHidden(t *testing.T) {
	dir := t.TempDir()
	e, r := openCaps(t, dir, worldOptions{})
	reqs := []kuji.Request{
		kuji.Redeem{Player: "ann", Code: "SECRET-a-0003"}, &kuji.Redeem{ID: "2", Player: "ann", Code: "hush-hush-guess"}, kuji.Redeem{Player: "bob", Code: "secret-a-0003"},
	}
	results, err := r.DoAll(t.Context(), reqs)
	if err != nil || results[0].Status != kuji.OK || results[1].Status != kuji.UnknownCode || results[2].Status != kuji.CodeUsedUp {
		t.Fatal(results, err)
	}
	text := strings.ToUpper(fmt.Sprintf("%v %+v %#v %s", reqs, results, reqs[0], reqs[1]))
	if strings.Contains(text, "SECRET") || strings.Contains(text, "HUSH") {
		t.Errorf("printed: %s", text)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var seen []kuji.Record
	if _, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) {
		text, err := json.Marshal(rec)
		if upper := strings.ToUpper(string(text)); err != nil || strings.Contains(upper, "SECRET") || strings.Contains(upper, "HUSH") {
			t.Errorf("%s (%v)", text, err)
		}
		if rec.Kind == "redeem" {
			seen = append(seen, rec)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 3 || seen[0].List != "caps" || *seen[0].Number != 3 || seen[0].Pool != "splash" || seen[0].Count != 1 || len(seen[0].Outcomes) != 1 ||
		seen[1].Number != nil || seen[1].List != "" || seen[2].Subject != "caps" || seen[2].Number != nil {
		t.Errorf("%+v", seen)
	}
	for _, entry := range logEntries(t, dir) {
		if strings.Contains(strings.ToUpper(string(entry)), "HUSH") || strings.Contains(string(entry), "secret") { // imported in upper case
			t.Error("the log has what a player sent")
		}
	}
}

// capClient redeems codes and guesses, and remembers what it was told.
type capClient struct {
	acked map[string]kuji.Result
	used  map[string]string // by code: the player
}

// session redeems until the disk fails. Player p can use each code whose number is p more than a
// multiple of three, if nobody else has.
func (c *capClient) session(t testing.TB, disk vfs.FS, s *steps) error {
	e, err := openWorld("data", worldOptions{FS: disk, SegmentSize: 4096, TrimLog: true, Now: s.Now})
	if err != nil {
		return err
	}
	defer e.Close() // fails when the power is off
	r, err := e.Realm("test")
	if err != nil {
		return err
	}
	if _, err := r.Apply(t.Context(), parse(t, capsCatalog)); err != nil {
		return err
	}
	if _, err := r.Codes().Import(t.Context(), "caps", someCodes("a", 12)); err != nil {
		return err
	}
	for i := range 12 {
		for p := range 2 {
			player, code := fmt.Sprint("p", p), fmt.Sprintf("SECRET-a-%04d", i)
			if i%4 == 3 {
				code = fmt.Sprint("guess", i)
			}
			res, err := r.Do(t.Context(), kuji.Redeem{ID: player + code, Player: player, Code: code})
			if err != nil {
				return err
			}
			res.Replayed = false
			if was, ok := c.acked[player+code]; ok && !reflect.DeepEqual(was, res) {
				return fmt.Errorf("%s sent %s: %v, first %v", player, code, res, was)
			}
			c.acked[player+code] = res
			if other, ok := c.used[code]; res.Status == kuji.OK {
				if ok && other != player {
					return fmt.Errorf("%s was used by %s and %s", code, player, other)
				}
				c.used[code] = player
			}
		}
		if i%5 == 4 {
			if _, err := r.Snapshot(t.Context()); err != nil {
				return err
			}
		}
	}
	for p := range 2 { // three guesses of each were counted, once
		res, err := r.Do(t.Context(), kuji.Redeem{ID: fmt.Sprint("last", p), Player: fmt.Sprint("p", p), Code: "SECRET-a-0003"})
		if err != nil {
			return err
		}
		if res.Status != kuji.TooManyGuesses {
			return fmt.Errorf("after three guesses: %v", res)
		}
	}
	if v, err := r.Codes().List(t.Context(), "caps"); err != nil || v.Uses != 9 || v.Redeemed != 9 {
		return fmt.Errorf("%+v (%w)", v, err)
	}
	return nil
}

// TestRedeemCrash cuts the power before each operation that changes the disk, while codes are used,
// guessed and put into snapshots, and repeats all of it: every code was used once, every guess
// counted once, and what was told stands.
func TestRedeemCrash(t *testing.T) {
	s := newSteps() // one day
	fresh := func() *capClient { return &capClient{map[string]kuji.Result{}, map[string]string{}} }
	dry := vfs.NewMem()
	if err := fresh().session(t, dry, s); err != nil {
		t.Fatal(err)
	}
	_, ops := dry.Ops()
	if ops < 40 {
		t.Fatalf("only %d steps: the session did not run", ops)
	}
	stride := int64(1)
	if testing.Short() {
		stride = 5
	}
	for op := int64(0); op < ops; op += stride {
		disk, c := vfs.NewMem(), fresh()
		disk.CutPowerAfter(op)
		err := c.session(t, disk, s) // at the last steps it only fails to close
		if _, after := disk.Ops(); err == nil && after < op {
			t.Fatalf("the session ended after %d steps, before the power cut at %d", after, op)
		}
		for crashed := range disk.CrashSamples(3, uint64(op), false) {
			again := &capClient{maps.Clone(c.acked), maps.Clone(c.used)}
			if err := again.session(t, crashed, s); err != nil {
				t.Fatalf("power cut before step %d: %v", op, err)
			}
			if _, err := verifyIn(crashed, "data", "test", nil); err != nil {
				t.Fatalf("power cut before step %d: %v", op, err)
			}
		}
	}
}

// BenchmarkRedeem uses codes of a list of a million, in a realm in memory.
func BenchmarkRedeem(b *testing.B) {
	e, err := openWorld(b.TempDir(), worldOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close() // nothing of it is kept
	r, err := e.Realm("test")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := r.Apply(b.Context(), parse(b, capsCatalog)); err != nil {
		b.Fatal(err)
	}
	for i := range 100 {
		importCodes(b, r, "caps", someCodes(fmt.Sprintf("%02d", i), kuji.MaxImport))
	}
	reqs := make([]kuji.Request, 1000)
	n := 0
	for b.Loop() {
		for i := range reqs {
			reqs[i] = kuji.Redeem{Player: fmt.Sprint("p", n%5000), Code: fmt.Sprintf("SECRET-%02d-%04d", n/10_000%100, n%10_000)}
			n++
		}
		if _, err := r.DoAll(b.Context(), reqs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/redeem")
}

// TestRedeemSpelled: a player who writes a code in another way than it was imported is no guesser, and
// its answer comes again, before and after restarts from the log and from snapshots; the verifier comes
// to the same.
func TestRedeemSpelled(t *testing.T) {
	for _, every := range []int64{0, 1} {
		dir := t.TempDir()
		o := worldOptions{SnapshotEvery: every}
		e, r := openCaps(t, dir, o)
		importCodes(t, r, "caps", []string{"dankefür100", "ab.12", "K7QD-2MXP"})
		sent := []kuji.Redeem{
			{ID: "1", Player: "ann", Code: "DANKEFÜR100"}, {ID: "2", Player: "ann", Code: "AB_12"}, {ID: "3", Player: "ann", Code: "Ｋ７ＱＤ２ＭＸＰ"},
		}
		told := map[string]kuji.Result{}
		for _, req := range sent {
			res := do(t, r, req)
			if res.Status != kuji.OK || res.Redeemed != "caps" {
				t.Fatalf("%s: %v", req.Code, res.Status)
			}
			res.Replayed = true
			told[req.ID] = res
		}
		again := func() {
			t.Helper()
			for i, req := range sent {
				if got := do(t, r, req); !reflect.DeepEqual(got, told[req.ID]) {
					t.Errorf("%s again: %+v, first %+v", req.Code, got, told[req.ID])
				}
				req.Code = []string{"dankefür100", "ab.12", "K7QD-2MXP"}[i] // the same code
				if got := do(t, r, req); !got.Replayed {
					t.Errorf("%s as it was imported: %+v", req.Code, got)
				}
				req.Code = "another"
				_, err := r.Do(t.Context(), req)
				wantCode(t, err, kuji.CodeIDReused)
			}
			for _, code := range []string{"dankefür100", "DankeFür100", "AB12", "k7qd.2mxp"} {
				if res := do(t, r, kuji.Redeem{Player: "ann", Code: code}); res.Status != kuji.CodeRedeemed {
					t.Errorf("%s a second time: %v", code, res.Status)
				}
			}
		}
		again()
		for range 2 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := verify.Dir(dir, "test", verify.Options{}); err != nil {
				t.Fatal(err)
			}
			e, r = openCaps(t, dir, o)
			again()
		}
	}
}
