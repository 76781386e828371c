package enginetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestRecoverManyPlayers opens a realm of so many players that what its events need is
// fetched ahead: nothing of a batch is left out, whatever their number, and what
// an event makes is there for the one behind it.
func TestRecoverManyPlayers(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{Sync: kuji.SyncNone})
	all := func(reqs []kuji.Request) []kuji.Result {
		t.Helper()
		res, err := r.DoAll(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range res {
			if res[i].Status != kuji.OK {
				t.Fatalf("%+v: %+v", reqs[i], res[i])
			}
		}
		return res
	}
	const players = 5*4096 - 10 // the next ones stand on a page of memory of their own
	var first []kuji.Request
	for i := range players {
		first = append(first, kuji.Draw{Player: fmt.Sprint("p", i), Pool: "free"})
	}
	for part := range slices.Chunk(first, kuji.MaxBatch) {
		all(part)
	}
	var asked []kuji.Request
	var got []kuji.Result
	for _, n := range []int{1, 31, 32, 33, 63, 64, 65, 150} {
		reqs := make([]kuji.Request, n)
		for i := range reqs {
			id, player := fmt.Sprint("id", n, "-", i), fmt.Sprint("new", n, "-", i/4)
			switch i % 4 {
			case 0: // who the next ones are about
				reqs[i] = kuji.Grant{ID: id, Player: player, Items: []kuji.Stack{{Item: "sword", Quantity: 3}}}
			case 1:
				reqs[i] = kuji.Draw{ID: id, Player: player, Pool: "free"}
			case 2:
				reqs[i] = kuji.Atomic{ID: id, Members: []kuji.Request{kuji.Draw{Player: player, Pool: "free", Count: 2}, kuji.Draw{Player: "p7", Pool: "free"}}}
			case 3:
				reqs[i] = kuji.Transfer{ID: id, From: player, To: fmt.Sprint("p", i), Items: []kuji.Stack{{Item: "sword", Quantity: 1}}}
			}
		}
		asked, got = append(asked, reqs...), append(got, all(reqs)...)
	}
	want, at, err := r.StateHash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, r = open(t, dir, worldOptions{Sync: kuji.SyncNone})
	if hash, pos, err := r.StateHash(t.Context()); err != nil || hash != want || pos != at {
		t.Fatalf("recovered %x at %d, %v; it was %x at %d", hash[:4], pos, err, want[:4], at)
	}
	if n := r.Stats().RecoveredEvents; n != uint64(players+len(asked)+1) {
		t.Errorf("%d events recovered, want %d and a catalog", n, players+len(asked))
	}
	again, err := r.DoAll(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again {
		got[i].Replayed = true
		if !reflect.DeepEqual(again[i], got[i]) {
			t.Fatalf("%+v\nwas answered\n%+v\nand is now\n%+v", asked[i], got[i], again[i])
		}
	}
}

// TestRecoverUnderManyCatalogs opens a realm whose log has requests of all sorts under
// catalogs that give other rewards and remember fewer ids, so much of it that ids are
// remembered long behind what they were for: every answer that was remembered is, and reads as
// it did, and no other.
func TestRecoverUnderManyCatalogs(t *testing.T) {
	dir := t.TempDir()
	now := handAt(time.UnixMilli(1_700_000_000_000))
	o := worldOptions{Sync: kuji.SyncNone, SnapshotEvery: -1, Now: now.Now}
	e, r := open(t, dir, o)
	long := strings.Repeat("-", 50)
	var asked []kuji.Request
	var got []kuji.Result
	for version := range 24 {
		yaml := strings.Replace(testCatalog, "reward: {items: {sword: 1}}", fmt.Sprintf("reward: {items: {sword: %d}}", version+1), 1)
		yaml += fmt.Sprintf("idempotency: {count: %d, age: 30m}\n", 7000-50*version)
		if _, err := r.Apply(t.Context(), parse(t, yaml)); err != nil {
			t.Fatal(err)
		}
		reqs := make([]kuji.Request, 700)
		for i := range reqs {
			id, player := fmt.Sprint("id", version, "-", i), fmt.Sprint("p", (i*7919+version)%3000)
			switch i % 7 {
			case 0:
				reqs[i] = kuji.Grant{ID: id, Player: player, Items: []kuji.Stack{{Item: "sword", Quantity: 3}}}
			case 1: // too long to be its own answer
				reqs[i] = kuji.Draw{ID: id + long, Player: player + long, Pool: "free"}
			case 2:
				reqs[i] = kuji.Atomic{ID: id, Members: []kuji.Request{kuji.Draw{Player: player, Pool: "free", Count: 2}, kuji.Draw{Player: player + long, Pool: "free"}}}
			case 3: // which fails, mostly
				reqs[i] = kuji.Draw{ID: id, Player: player, Pool: "paid", Count: 2}
			case 4: // which nobody has so many of
				reqs[i] = kuji.Consume{ID: id + long, Player: player, Items: []kuji.Stack{{Item: "sword", Quantity: 1 << 40}}}
			default:
				reqs[i] = kuji.Draw{ID: id, Player: player, Pool: "free"}
			}
		}
		now.Add(4 * time.Minute)
		res, err := r.DoAll(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range res {
			if res[i].Status == kuji.Refused {
				t.Fatalf("%+v: %v", reqs[i], res[i].Err)
			}
		}
		asked, got = append(asked, reqs...), append(got, res...)
	}
	before := r.Stats()
	want, at, err := r.StateHash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = openWorld(dir, o); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if r, err = e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	if hash, pos, err := r.StateHash(t.Context()); err != nil || hash != want || pos != at {
		t.Fatalf("recovered %x at %d, %v; it was %x at %d", hash[:4], pos, err, want[:4], at)
	}
	after := r.Stats()
	if after.RequestIDs != before.RequestIDs || before.RequestIDs >= uint64(len(asked)) {
		t.Errorf("%d request ids are remembered of %d, it were %d", after.RequestIDs, len(asked), before.RequestIDs)
	}
	first := len(asked) - int(before.RequestIDs)
	again, err := r.DoAll(t.Context(), asked[first:])
	if err != nil {
		t.Fatal(err)
	}
	for i := range again {
		got[first+i].Replayed = true
		if !reflect.DeepEqual(again[i], got[first+i]) {
			t.Fatalf("%+v\nwas answered\n%+v\nand is now\n%+v", asked[first+i], got[first+i], again[i])
		}
	}
}

// unreadable is a file system on which no byte can be read of files whose names end in one way.
type unreadable struct {
	vfs.FS
	end string
}

func (u unreadable) Open(name string) (vfs.File, error) {
	f, err := u.FS.Open(name)
	if err == nil && strings.HasSuffix(name, u.end) {
		f = unreadableFile{f}
	}
	return f, err
}

type unreadableFile struct{ vfs.File }

func (unreadableFile) ReadAt([]byte, int64) (int, error) { return 0, syscall.EIO }

// TestUnreadableIsNotDamaged: a file that the disk does not give today is not called damaged.
func TestUnreadableIsNotDamaged(t *testing.T) {
	disk, e, _ := longChains(t, 1) // with a log that needs its snapshots
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := hook.Open(unreadable{disk, "/key"}, nil, "data", kuji.Options{}); kuji.CodeOf(err) != kuji.CodeFailed || !errors.Is(err, syscall.EIO) {
		t.Errorf("without its key: %v", err)
	}
	for life, fsys := range []vfs.FS{disk, unreadable{disk, ".snapshot"}, disk} {
		e, err := hook.Open(fsys, nil, "data", kuji.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.(*kuji.Engine).Realm("test")
		if want := life == 1; (kuji.CodeOf(err) == kuji.CodeFailed && errors.Is(err, syscall.EIO)) != want || !want && err != nil {
			t.Errorf("life %d: %v", life, err)
		}
		if err := e.(*kuji.Engine).Close(); err != nil {
			t.Fatal(err)
		}
	}
}
