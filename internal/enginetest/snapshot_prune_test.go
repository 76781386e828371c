package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const testSnapshots = testRealm + "/snapshots"

// chainsOf returns the snapshots in a directory by chain, oldest first.
func chainsOf(t testing.TB, disk *vfs.Mem) (chains [][]string) {
	t.Helper()
	names, err := disk.List(testSnapshots)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.Contains(name, fmt.Sprintf("-%020d-", 0)) {
			chains = append(chains, nil)
		}
		chains[len(chains)-1] = append(chains[len(chains)-1], testSnapshots+"/"+name)
	}
	return chains
}

// longChains is an open realm that trims its log, has two chains of snapshots, of which the newest
// is long, and a state that takes many draws to change.
func longChains(t testing.TB, steps int) (*vfs.Mem, *kuji.Engine, *kuji.Realm) {
	t.Helper()
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk, TrimLog: true, SegmentSize: 4096})
	for i := range 300 {
		do(t, r, kuji.Draw{ID: fmt.Sprint("first", i), Player: fmt.Sprint("p", i), Pool: "free"})
	}
	for round := 0; ; round++ {
		s := snapshot(t, r)
		if chains := chainsOf(t, disk); s.Base > 0 && len(chains) == 2 && len(chains[1]) >= steps {
			return disk, e, r
		}
		if round > 60 {
			t.Fatal("no second chain")
		}
		for range 40 { // more than a segment of the log, and little of the state
			do(t, r, kuji.Draw{Player: "p0", Pool: "free"})
		}
	}
}

// stateOf opens the realm "test" and returns its state's hash.
func stateOf(disk *vfs.Mem) (hash [32]byte, s kuji.Stats, err error) {
	e, err := openWorld("data", worldOptions{FS: disk})
	if err != nil {
		return hash, s, err
	}
	r, err := e.Realm("test")
	if err == nil {
		s = r.Stats()
		hash, _, err = r.StateHash(context.Background())
	}
	return hash, s, errors.Join(err, e.Close())
}

// TestTwoChains: a realm whose log was trimmed opens with the same state whichever bit of whichever
// snapshot is damaged, and without any one of them; and the damage is reported.
func TestTwoChains(t *testing.T) {
	disk, e, r := longChains(t, 9)
	drawSome(t, r, "more", 3)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if first := segmentNames(t, disk)[0]; first == fmt.Sprintf("%020d.wal", 0) {
		t.Fatal("the log was not trimmed")
	}
	want, _, err := stateOf(disk.CrashClone(vfs.Crash{}))
	if err != nil {
		t.Fatal(err)
	}
	chains := chainsOf(t, disk)
	tried := 0
	for i, chain := range chains {
		for _, name := range chain {
			info, err := disk.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			damaged := func(what string, damage func(c *vfs.Mem) error) {
				tried++
				c := disk.CrashClone(vfs.Crash{})
				if err := damage(c); err != nil {
					t.Fatal(err)
				}
				if _, err := verifyIn(c, "data", "test", nil); err == nil && what != "gone" {
					t.Errorf("%s, %s: Verify finds nothing wrong", name, what)
				}
				got, s, err := stateOf(c)
				if err != nil || got != want {
					t.Errorf("%s, %s: opened with state %x, want %x: %v", name, what, got[:4], want[:4], err)
				}
				if newest := i == len(chains)-1; newest && s.SnapshotErr == nil && what != "gone" {
					t.Errorf("%s, %s: opening says nothing of it", name, what)
				}
			}
			for at := int64(0); at < info.Size(); at += max(1, info.Size()/4) {
				damaged(fmt.Sprint("byte ", at), func(c *vfs.Mem) error { return c.Flip(name, at, 1, 1<<(at%8)) })
			}
			damaged("gone", func(c *vfs.Mem) error { return errors.Join(c.Remove(name), c.SyncDir(testSnapshots)) })
		}
	}
	t.Logf("%d damages in chains of %d and %d", tried, len(chains[0]), len(chains[1]))

	// Behind a damaged chain the next snapshot begins another, and what is damaged goes.
	bad := chains[1][1]
	if err := disk.Flip(bad, 100, 1, 1); err != nil {
		t.Fatal(err)
	}
	e, r = open(t, "data", worldOptions{FS: disk, TrimLog: true, SegmentSize: 4096})
	drawSome(t, r, "repaired", 3)
	if err := r.Stats().SnapshotErr; err == nil || !strings.Contains(err.Error(), path.Base(bad)) {
		t.Errorf("opened from what is before it, and the error is %v", err)
	}
	if s := snapshot(t, r); s.Base != 0 || r.Stats().SnapshotErr != nil {
		t.Errorf("behind a damaged chain a snapshot builds on %d, and the error is %v", s.Base, r.Stats().SnapshotErr)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Stat(bad); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the damaged one: %v", err)
	}
	if rep, err := verifyIn(disk, "data", "test", nil); err != nil || len(chainsOf(t, disk)) != 2 {
		t.Errorf("%d snapshots verified in %d chains: %v", rep.Snapshots, len(chainsOf(t, disk)), err)
	}
}

// nextChain takes snapshots until one begins a chain, which prepare comes before.
func nextChain(t testing.TB, r *kuji.Realm, tag string, prepare func()) (kuji.Snapshot, error) {
	t.Helper()
	for round := range 40 {
		drawSome(t, r, fmt.Sprint(tag, round, "-"), 6)
		prepare()
		s, err := r.Snapshot(t.Context())
		if err != nil || s.Base == 0 {
			return s, err
		}
	}
	t.Fatal("no new chain")
	return kuji.Snapshot{}, nil
}

// TestReadBack: the log is not trimmed, and nothing is removed, on the strength of a new snapshot
// that the disk does not give back.
func TestReadBack(t *testing.T) {
	disk, e, r := longChains(t, 3)
	var was [][]string
	var segments []string
	broken := true
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if broken && op.Kind == vfs.OpRead && strings.Contains(op.Path, fmt.Sprintf("-%020d-", 0)) {
			return vfs.Fault{Err: syscall.EIO}
		}
		return vfs.Fault{}
	})
	for attempt := range 3 {
		_, err := nextChain(t, r, fmt.Sprint("bad", attempt), func() { was, segments = chainsOf(t, disk), segmentNames(t, disk) })
		if kuji.CodeOf(err) != kuji.CodeFailed || !errors.Is(err, syscall.EIO) || !errors.Is(r.Stats().SnapshotErr, syscall.EIO) {
			t.Errorf("a snapshot that cannot be read back: %v, shown %v", err, r.Stats().SnapshotErr)
		}
		if is := chainsOf(t, disk); fmt.Sprint(is) != fmt.Sprint(was) {
			t.Errorf("snapshots %q, want %q", is, was)
		}
		if is := segmentNames(t, disk); !slices.Equal(is, segments[:1]) && is[0] != segments[0] {
			t.Errorf("the log begins with %s, want %s", is[0], segments[0])
		}
	}
	broken = false
	drawSome(t, r, "good", 6)
	if s := snapshot(t, r); s.Base != 0 || r.Stats().SnapshotErr != nil {
		t.Errorf("then a snapshot builds on %d: %v", s.Base, r.Stats().SnapshotErr)
	}
	if is := segmentNames(t, disk); is[0] == segments[0] {
		t.Error("the log was not trimmed behind a good one")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verifyIn(disk, "data", "test", nil); err != nil {
		t.Error(err)
	}
}

// TestReadBackOfTheOther: a chain that was damaged since it was written is not what is kept with
// the new one: the part of it that is whole is, or the chain before it, with the log from there on.
func TestReadBackOfTheOther(t *testing.T) {
	for at := range 3 {
		disk, e, r := longChains(t, 3)
		chains := chainsOf(t, disk)
		bad := chains[1][at]
		if err := disk.Flip(bad, 200, 1, 1); err != nil {
			t.Fatal(err)
		}
		segments := segmentNames(t, disk)
		if _, err := nextChain(t, r, "next", func() {}); err != nil {
			t.Fatal(err)
		}
		if err := r.Stats().SnapshotErr; err == nil || !strings.Contains(err.Error(), path.Base(bad)) {
			t.Errorf("damage in file %d of the other chain: %v", at, err)
		}
		if at == 0 && segmentNames(t, disk)[0] != segments[0] {
			t.Error("the log was trimmed though the chain before is damaged from its beginning")
		}
		want, _, err := r.StateHash(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := disk.Stat(bad); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the damaged one: %v", err)
		}
		if _, err := verifyIn(disk, "data", "test", nil); err != nil {
			t.Error(err)
		}
		chains = chainsOf(t, disk)
		if len(chains) != 2 {
			t.Fatalf("%d chains", len(chains))
		}
		if err := disk.Flip(chains[1][0], 200, 1, 1); err != nil { // now the new one
			t.Fatal(err)
		}
		if got, _, err := stateOf(disk); err != nil || got != want {
			t.Errorf("without the new chain: state %x, want %x: %v", got[:4], want[:4], err)
		}
	}
}
