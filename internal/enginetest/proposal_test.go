package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

// namedCatalog is a catalog with a name and a pool.
func namedCatalog(t testing.TB, name string, weight int) *catalog.Catalog {
	t.Helper()
	return parse(t, fmt.Sprintf(`{kuji: 1, name: %q, items: {opal: {}}, pools: {free: {entries: [{id: a, weight: %d, reward: {items: {opal: 1}}}, {id: b, weight: 1}]}}}`, name, weight))
}

// TestProposals: a catalog waits until somebody else approves it. The log says who did what, and a
// verifier decides all of it again.
func TestProposals(t *testing.T) {
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk})
	ps, ctx := kuji.ProposalsOf(r), t.Context()
	v := r.Stats().CatalogVersion
	designer, lead := kuji.Note{By: "designer", Reason: "summer", Metadata: "T-1"}, kuji.Note{By: "lead", Reason: "looks right"}

	first, err := ps.Propose(ctx, namedCatalog(t, "one", 2), &v, designer)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ps.Propose(ctx, namedCatalog(t, "one", 2), nil, designer)
	if err != nil || again != first || first.Number != 1 || first.Over != v || first.Name != "one" || first.Note != designer || first.Position == 0 {
		t.Errorf("%+v, then %+v, %v", first, again, err)
	}
	second, err := ps.Propose(ctx, namedCatalog(t, "two", 3), nil, lead)
	if err != nil || second.Number != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	if all, err := ps.All(ctx); err != nil || len(all) != 2 || all[0] != first || all[1] != second {
		t.Errorf("%+v, %v", all, err)
	}
	got, c, err := ps.Get(ctx, 1)
	if err != nil || got != first || c.Hash() != namedCatalog(t, "one", 2).Hash() {
		t.Errorf("%+v, %v", got, err)
	}

	for name, refused := range map[string]func() error{
		"its own":      func() error { _, err := ps.Approve(ctx, 1, kuji.Note{By: "designer"}); return err },
		"over another": func() error { _, err := ps.Propose(ctx, namedCatalog(t, "three", 4), new(v+1), lead); return err },
		"another kind": func() error {
			_, err := ps.Propose(ctx, parse(t, "{kuji: 1, items: {gem: {}}, pools: {free: {entries: [{id: a, weight: 1}]}}}"), nil, lead)
			return err
		},
		"what is there": func() error { _, err := ps.Propose(ctx, mustInForce(t, r), nil, lead); return err },
	} {
		if err := refused(); kuji.CodeOf(err) != kuji.CodeConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = ps.Approve(ctx, 9, lead)
	wantCode(t, err, kuji.CodeNotFound)

	res, err := ps.Approve(ctx, 1, lead)
	if err != nil || res.Receipt.CatalogVersion != v+1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if repeat, err := ps.Approve(ctx, 1, lead); err != nil || repeat.Receipt != res.Receipt {
		t.Errorf("%+v, %v, want the first answer", repeat, err)
	}
	if in, err := r.Catalogs().InForce(ctx); err != nil || in.Catalog.Name != "one" || in.Version != v+1 {
		t.Errorf("%+v, %v", in, err)
	}
	_, err = ps.Approve(ctx, 2, designer) // it was made over the version before
	wantCode(t, err, kuji.CodeConflict)
	if ok, err := ps.Withdraw(ctx, 2, kuji.Note{By: "lead"}); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := ps.Withdraw(ctx, 2, kuji.Note{By: "lead"}); ok || err != nil {
		t.Error(ok, err)
	}
	if versions, err := r.Catalogs().Versions(ctx); err != nil || versions[len(versions)-1].Note != lead || versions[len(versions)-1].Name != "one" {
		t.Errorf("%+v, %v", versions, err)
	}
	if third, err := ps.Propose(ctx, namedCatalog(t, "three", 4), nil, kuji.Note{}); err != nil || third.Number != 3 {
		t.Errorf("%+v, %v", third, err)
	}
	if _, err := ps.Approve(ctx, 3, kuji.Note{}); err == nil || !strings.Contains(err.Error(), "server with keys") {
		t.Errorf("nobody approves what nobody proposed: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, rec := range verified(t, disk, "data") {
		if rec.Proposal > 0 {
			said = append(said, fmt.Sprint(rec.Kind, rec.Proposal, " ", rec.By, "/", rec.ProposedBy, "/", rec.ProposedWhy, " ", rec.NewCatalogVersion))
		}
	}
	want := fmt.Sprintf("propose1 designer// 0, propose2 lead// 0, approve1 lead/designer/summer %d, withdraw2 lead// 0, propose3 // 0", v+1)
	if got := strings.Join(said, ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestProposalsBySomebody: both names stand in the log. What nobody has proposed, as on a server that had no
// keys yet, nobody approves; and nobody is not a second person.
func TestProposalsBySomebody(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	ps, ctx := kuji.ProposalsOf(r), t.Context()
	for i, by := range [][2]string{{"", "lead"}, {"designer", ""}, {"", ""}} {
		p, err := ps.Propose(ctx, namedCatalog(t, "one", 2+i), nil, kuji.Note{By: by[0]})
		if err != nil {
			t.Fatal(err)
		}
		_, err = ps.Approve(ctx, p.Number, kuji.Note{By: by[1]})
		if kuji.CodeOf(err) != kuji.CodeConflict || !strings.Contains(err.Error(), "server with keys") {
			t.Errorf("proposed by %q, approved by %q: %v", by[0], by[1], err)
		}
	}
}

// TestAnotherCatalogApproved: a log in which an approval puts another catalog in force than the one that
// waited, made by somebody who can compute checksums, is found by the verifier.
func TestAnotherCatalogApproved(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	ps := kuji.ProposalsOf(r)
	if _, err := ps.Propose(t.Context(), namedCatalog(t, "honest", 2), nil, kuji.Note{By: "designer"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ps.Approve(t.Context(), 1, kuji.Note{By: "lead"}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Dir(dir, "test", verify.Options{}); err != nil {
		t.Fatal(err)
	}
	rewrite(t, dir, func(entries [][]byte) [][]byte {
		at := len(entries) - 1
		for !bytes.Contains(entries[at], []byte("honest")) {
			at--
		}
		entries[at] = bytes.ReplaceAll(entries[at], []byte("honest"), []byte("forged"))
		rechain(entries, at)
		return entries
	})
	_, err := verify.Dir(dir, "test", verify.Options{})
	if err == nil || !strings.Contains(err.Error(), "proposal 1") {
		t.Errorf("%v, want the verifier to say that proposal 1 is another catalog", err)
	}
}

func mustInForce(t testing.TB, r *kuji.Realm) *catalog.Catalog {
	t.Helper()
	v, err := r.Catalogs().InForce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v.Catalog
}

// TestProposalsAreBounded: so many can wait, and not more.
func TestProposalsAreBounded(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	ps := kuji.ProposalsOf(r)
	for i := range 20 {
		if _, err := ps.Propose(t.Context(), namedCatalog(t, "n", 2+i), nil, kuji.Note{By: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := ps.Propose(t.Context(), namedCatalog(t, "n", 100), nil, kuji.Note{By: "a"})
	wantCode(t, err, kuji.CodeConflict)
	if ok, err := ps.Withdraw(t.Context(), 7, kuji.Note{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if p, err := ps.Propose(t.Context(), namedCatalog(t, "n", 100), nil, kuji.Note{By: "a"}); err != nil || p.Number != 21 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestProposeFirst: the first catalog of a realm is applied.
func TestProposeFirst(t *testing.T) {
	e, err := openWorld("data", worldOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = kuji.ProposalsOf(r).Propose(t.Context(), namedCatalog(t, "n", 2), nil, kuji.Note{By: "a"})
	if code := kuji.CodeOf(err); code != kuji.CodeConflict && code != kuji.CodeFormat {
		t.Errorf("%v", err)
	}
}

// TestProposeBelowItsLevel: a realm that an older build can open takes no proposal, until the upgrade is finished.
func TestProposeBelowItsLevel(t *testing.T) {
	s, known := drivertest.NewShared(drivertest.SharedOptions{}), uint8(5)
	_, r := openAt(t, s, 1, kuji.Options{FormatLevel: func() uint8 { return known }})
	if _, err := r.Apply(t.Context(), namedCatalog(t, "first", 2)); err != nil {
		t.Fatal(err)
	}
	propose := func() error {
		_, err := kuji.ProposalsOf(r).Propose(t.Context(), namedCatalog(t, "second", 3), nil, kuji.Note{By: "ann"})
		return err
	}
	before := r.Stats().Position
	wantCode(t, propose(), kuji.CodeFormat)
	if at := r.Stats().Position; at != before {
		t.Errorf("a refused proposal is in the log: %d, then %d", before, at)
	}
	known = kuji.FormatLevel()
	if _, err := r.FinishUpgrade(t.Context(), "ops", "all is well"); err != nil {
		t.Fatal(err)
	}
	if err := propose(); err != nil {
		t.Error(err)
	}
}

// TestProposalsThroughCrashes: the power is cut at every write while a large catalog is proposed and
// approved. What was acknowledged is there, and nothing in part.
func TestProposalsThroughCrashes(t *testing.T) {
	var items strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&items, "item-%d: {name: 'A thing with the number %d'}, ", i, i)
	}
	large := parse(t, "{kuji: 1, name: large, items: {"+items.String()+"}, pools: {free: {entries: [{id: a, weight: 2}]}}}")
	disk := vfs.NewMem()
	e, _ := open(t, "data", worldOptions{FS: disk})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	// work proposes, approves, and returns how far it came.
	work := func(disk *vfs.Mem) (did int) {
		e, err := openWorld("data", worldOptions{FS: disk})
		if err != nil {
			return 0
		}
		defer e.Close()
		r, err := e.Realm("test")
		if err != nil {
			return 0
		}
		p, err := kuji.ProposalsOf(r).Propose(t.Context(), large, nil, kuji.Note{By: "a"})
		if err != nil {
			return 0
		}
		if _, err := kuji.ProposalsOf(r).Approve(t.Context(), p.Number, kuji.Note{By: "b"}); err != nil {
			return 1
		}
		return 2
	}
	dry := disk.KillClone()
	_, from := dry.Ops()
	if did := work(dry); did != 2 {
		t.Fatal(did)
	}
	_, to := dry.Ops()
	seen := [3]int{}
	for step := range to - from {
		cut := disk.KillClone()
		cut.CutPowerAfter(step)
		did := work(cut)
		seen[did]++
		for crashed := range cut.CrashSamples(2, uint64(step), false) {
			if err := wantProposed(t, crashed, did, large); err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
		}
	}
	if seen[0] == 0 || seen[1] == 0 || seen[2] == 0 {
		t.Errorf("cut off before, between and after: %v", seen)
	}
}

// wantProposed opens what a crash has left, and says what is wrong: did is how far the work had come for
// certain.
func wantProposed(t *testing.T, disk *vfs.Mem, did int, large *catalog.Catalog) error {
	e, err := openWorld("data", worldOptions{FS: disk})
	if err != nil {
		return err
	}
	r, err := e.Realm("test")
	if err != nil {
		return errors.Join(err, e.Close())
	}
	in, err := r.Catalogs().InForce(t.Context())
	if err != nil {
		return errors.Join(err, e.Close())
	}
	_, c, err := kuji.ProposalsOf(r).Get(t.Context(), 1)
	inForce, waits := in.Catalog.Hash() == large.Hash(), err == nil && c.Hash() == large.Hash()
	switch {
	case inForce && waits:
		err = errors.New("it is in force, and waits")
	case did == 2 && !inForce, did == 1 && !inForce && !waits:
		err = fmt.Errorf("%d steps were acknowledged; in force: %v, waits: %v", did, inForce, waits)
	case !waits && kuji.CodeOf(err) != kuji.CodeNotFound:
		err = fmt.Errorf("in part: %w", err)
	default:
		err = nil
	}
	if err := errors.Join(err, e.Close()); err != nil {
		return err
	}
	_, err = verifyIn(disk, "data", "test", nil)
	return err
}

// TestProposalsAtOnce: proposals, approvals, withdrawals and catalogs that come at once are in one order. Each
// version has one event, no number is given twice, and the verifier agrees.
func TestProposalsAtOnce(t *testing.T) {
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk})
	ps, ctx := kuji.ProposalsOf(r), t.Context()
	allowed := func(err error) {
		if err != nil && kuji.CodeOf(err) != kuji.CodeConflict && kuji.CodeOf(err) != kuji.CodeNotFound {
			t.Error(err)
		}
	}
	var working sync.WaitGroup
	for k := range 4 {
		working.Go(func() {
			for i := range 12 {
				switch c := namedCatalog(t, fmt.Sprint("c", k), 2+i); k {
				case 3:
					_, err := r.Catalogs().Apply(ctx, c, kuji.ApplyOptions{Note: kuji.Note{By: "ops"}})
					allowed(err)
				default:
					p, err := ps.Propose(ctx, c, nil, kuji.Note{By: fmt.Sprint("designer-", k)})
					allowed(err)
					_, err = ps.Approve(ctx, p.Number, kuji.Note{By: "lead"})
					allowed(err)
					_, err = ps.Withdraw(ctx, p.Number, kuji.Note{By: "lead"})
					allowed(err)
				}
			}
		})
	}
	working.Wait()
	if all, err := ps.All(ctx); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v, want none: each was approved or withdrawn", all, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	seen, versions := map[uint64]bool{}, map[uint64]bool{}
	for _, rec := range verified(t, disk, "data") {
		if rec.Kind == "propose" && seen[rec.Proposal] {
			t.Errorf("two proposals have the number %d", rec.Proposal)
		}
		if v := rec.NewCatalogVersion; v > 0 && versions[v] {
			t.Errorf("two events put version %d in force", v)
		}
		seen[rec.Proposal] = seen[rec.Proposal] || rec.Kind == "propose"
		versions[rec.NewCatalogVersion] = true
	}
	if len(versions) < 3 || len(seen) < 12 {
		t.Errorf("%d versions, %d proposals", len(versions), len(seen))
	}
}

// TestProposalsInASnapshot: the largest catalogs that can wait do, and are whole after a snapshot to which the
// log is trimmed. What an approval left is found there, too.
func TestProposalsInASnapshot(t *testing.T) {
	dir := t.TempDir()
	o := worldOptions{TrimLog: true, SegmentSize: 1 << 16}
	e, r := open(t, dir, o)
	ps, ctx := kuji.ProposalsOf(r), t.Context()
	p, err := ps.Propose(ctx, namedCatalog(t, "first", 2), nil, kuji.Note{By: "designer", Reason: "r", Metadata: "m"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := ps.Approve(ctx, p.Number, kuji.Note{By: "lead"})
	if err != nil {
		t.Fatal(err)
	}
	var items strings.Builder
	text := strings.Repeat("x", 250)
	for i := range 26_000 {
		fmt.Fprintf(&items, "  i%d: {name: %s}\n", i, text)
	}
	large := parse(t, "kuji: 1\nname: large\nitems:\n  opal: {}\n"+items.String()+"pools: {free: {entries: [{id: a, weight: 2}]}}\n")
	waits, err := ps.Propose(ctx, large, nil, kuji.Note{By: "designer", Reason: "large", Metadata: "m"})
	if err != nil || waits.Bytes < 6<<20 {
		t.Fatalf("%d bytes, %v", waits.Bytes, err)
	}
	for round := range 4 {
		drawSome(t, r, fmt.Sprint("more-", round, "-"), 100)
		snapshot(t, r)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = openWorld(dir, o); err != nil {
		t.Fatal(err)
	}
	if r, err = e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	ps = kuji.ProposalsOf(r)
	got, c, err := ps.Get(ctx, waits.Number)
	if err != nil || got != waits || c.Hash() != large.Hash() {
		t.Errorf("%+v, want %+v, %v", got, waits, err)
	}
	if again, err := ps.Approve(ctx, p.Number, kuji.Note{By: "lead"}); err != nil || again.Receipt.CatalogVersion != res.Receipt.CatalogVersion {
		t.Errorf("approved again: %+v, %v", again, err)
	}
	if res, err := ps.Approve(ctx, waits.Number, kuji.Note{By: "lead"}); err != nil || res.Receipt.CatalogVersion != got.Over+1 {
		t.Errorf("%+v, %v", res, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Dir(dir, "test", verify.Options{}); err != nil {
		t.Error(err)
	}
}
