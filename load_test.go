package kuji

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const loadTestDir = "data/realms/test/" + snapshotDir

// chainOfBlocks writes two snapshots, of which the second builds on the first, of many
// blocks of players each. The second changes players and has new ones.
func chainOfBlocks(t *testing.T) (*vfs.Mem, []snapshotFile) {
	t.Helper()
	disk := vfs.NewMem()
	e, err := Open("data", Options{FS: disk, SnapshotEvery: -1, Sync: SyncNone})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("kuji: 1\nitems:\n")
	var items []Stack
	for i := range 20 {
		fmt.Fprintf(&text, "  item%d: {}\n", i)
		items = append(items, Stack{Item: fmt.Sprint("item", i), Quantity: uint64(100 + i)})
	}
	c, err := catalog.Parse([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	grant := func(from, to, step int) {
		for ; from < to; from += step * 1000 {
			var reqs []Request
			for i := from; i < min(to, from+step*1000); i += step {
				reqs = append(reqs, Grant{Player: fmt.Sprintf("player%032d", i), Items: items})
			}
			if _, err := r.DoAll(t.Context(), reqs); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	grant(0, 14_000, 1)
	grant(6_000, 42_000, 2)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	files, _, err := listSnapshots(disk, loadTestDir)
	if err != nil || len(files) != 2 {
		t.Fatalf("%d snapshots (%v), want 2", len(files), err)
	}
	return disk, files
}

// framesOf returns a file's frames.
func framesOf(t *testing.T, fsys vfs.FS, file *snapshotFile) (frames []frame) {
	t.Helper()
	f, err := fsys.Open(loadTestDir + "/" + file.name())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	for fr, err := range readFrames(f, size) {
		if err != nil {
			t.Fatal(err)
		}
		fr.data = slices.Clone(fr.data)
		frames = append(frames, fr)
	}
	return frames
}

// writeFrames writes a file of frames, with checksums that fit unless broken is one's number.
func writeFrames(t *testing.T, fsys vfs.FS, file *snapshotFile, frames []frame, broken int) {
	t.Helper()
	var b []byte
	for i, fr := range frames {
		sum := frameSum(fr.kind, uint64(i), fr.data)
		if i == broken {
			sum++
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(len(fr.data)))
		b = append(binary.LittleEndian.AppendUint32(b, sum), fr.kind)
		b = append(b, fr.data...)
	}
	if err := fsys.Remove(loadTestDir + "/" + file.name()); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Create(loadTestDir + "/" + file.name())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBlockIntake: snapshots whose blocks are decoded beside one another give the state
// that they give one after the other, or the same error: the first in the order of the file.
func TestBlockIntake(t *testing.T) {
	disk, files := chainOfBlocks(t)
	load := func(decoders int) (*restored, error) {
		in := &blockIntake{loader: economy.NewLoader(), decoders: decoders}
		return loadSnapshot(disk, loadTestDir, "test", files, files[1], in)
	}
	var whole [2][]frame
	for i := range files {
		whole[i] = framesOf(t, disk, &files[i])
		players := 0
		for _, fr := range whole[i] {
			if fr.kind == byte(economy.BlockPlayers) {
				players++
			}
		}
		if players < 4 {
			t.Fatalf("snapshot %d has %d blocks of players, want 4 or more", i, players)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	kinds := map[string]int{}
	for trial := range 40 {
		broken := [2]int{-1, -1}
		frames := [2][]frame{slices.Clone(whole[0]), slices.Clone(whole[1])}
		for range min(trial, 1+r.IntN(3)) { // the first is as it was
			file := r.IntN(2)
			fr := frames[file]
			i := 1 + r.IntN(len(fr)-1)
			switch r.IntN(6) {
			case 0:
				broken[file] = i
			case 1:
				fr[i].data = fr[i].data[:r.IntN(len(fr[i].data))]
			case 2:
				fr = slices.Delete(fr, i, i+1)
			case 3:
				fr = slices.Insert(fr, i, fr[1+r.IntN(len(fr)-1)])
			default:
				fr[i].data = slices.Clone(fr[i].data)
				fr[i].data[r.IntN(len(fr[i].data))] ^= 1 << r.IntN(8)
			}
			frames[file] = fr
		}
		for i := range files {
			writeFrames(t, disk, &files[i], frames[i], broken[i])
		}
		want, wantErr := load(0)
		decoders := 1 + trial%2*2
		got, err := load(decoders)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("trial %d, %d decoders:\n%v, one block after the other\n%v", trial, decoders, err, wantErr)
		}
		if err == nil && got.state.Hash() != want.state.Hash() {
			t.Fatalf("trial %d, %d decoders: another state than one block after the other", trial, decoders)
		}
		for _, kind := range []string{"checksum", "event format", "want", "seal", "<nil>"} {
			if strings.Contains(fmt.Sprint(wantErr), kind) {
				kinds[kind]++
			}
		}
	}
	if len(kinds) < 5 {
		t.Errorf("all trials gave only %v", kinds)
	}
}

// TestBlockIntakePanic: a panic of a decoder is one of the opener.
func TestBlockIntakePanic(t *testing.T) {
	in := &blockIntake{loader: economy.NewLoader(), decoders: 1}
	defer in.end()
	b := in.take()
	b.players = new(economy.PlayerBlock) // of no loader
	in.free = append(in.free, b)
	defer func() {
		if recover() == nil {
			t.Error("a panic beside the opener was lost")
		}
	}()
	fr := frame{kind: byte(economy.BlockPlayers), data: []byte{1}}
	err := in.block(&fr, 1)
	t.Errorf("no panic: %v, %v", err, in.join(0))
}

// TestBlockIntakeStarts: goroutines are started where they may be, and end.
func TestBlockIntakeStarts(t *testing.T) {
	if in := newBlockIntake(true); in.decoders != 0 || in.small != smallSnapshot {
		t.Errorf("a single intake has %d decoders from %d bytes on", in.decoders, in.small)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	in := newBlockIntake(false)
	if in.decoders != 3 || in.small != smallSnapshot {
		t.Errorf("%d decoders from %d bytes on, want 3 from %d on", in.decoders, in.small, smallSnapshot)
	}
	fr := frame{kind: byte(economy.BlockPlayers), data: []byte{1}}
	for _, size := range []int64{1, smallSnapshot, smallSnapshot + 1} {
		_ = in.block(&fr, size) // it follows on nothing
		if started := in.work != nil; started != (size > smallSnapshot) {
			t.Errorf("decoders started for a file of %d bytes: %v", size, started)
		}
		in.err = nil
	}
	in.end() // waits for them
	if in.work != nil {
		t.Error("ended, and more can be given to the decoders")
	}
}
