package vfs_test

import (
	"fmt"
	"path"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/internal/vfs/powercut"
)

// What a real kernel leaves after a power cut is something that Mem says it
// may leave: the reference that Mem is held to allows it.
func TestKernelWithinReference(t *testing.T) {
	powercut.Each(t, 64<<20, kernelWithinReference)
}

func kernelWithinReference(t *testing.T, disk *powercut.Disk, cuts int) {
	fsys := vfs.OS()
	const limit = 1 << 14
	judged, lost := 0, 0
	for i := range cuts {
		root := path.Join(disk.Dir(), fmt.Sprint(i))
		must(t, fsys.MkdirAll(root))
		steps := rapid.Custom(func(rt *rapid.T) *refMachine {
			r := newRefMachine(fsys, root)
			for range rapid.IntRange(1, 14).Draw(rt, "steps") {
				r.step(rt)
			}
			return r
		})
		r := steps.Example(i)
		before := dumpBelow(t, fsys, root)
		must(t, disk.Cut(i%2 == 0))
		for _, p := range r.open {
			must(t, p.file.Close())
		}
		must(t, disk.Restart())
		got := dumpBelow(t, fsys, root)
		if got != before {
			lost++
		}
		want := r.dir.survivors(limit, true) // a btrfs keeps a later create without an earlier one
		if want == nil {
			continue
		}
		judged++
		if !want[got] {
			t.Errorf("cut %d: the disk holds\n%sbefore it was\n%sallowed are\n%q", i, got, before, sorted(want))
		}
	}
	t.Logf("%d power cuts, %d lost something, %d judged", cuts, lost, judged)
	if cuts >= 20 && (lost == 0 || judged == 0) {
		t.Error("the power cuts show nothing")
	}
}
