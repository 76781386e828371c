package enginetest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// commitmentOf computes what the log commits to, as docs/internals/formats says it.
func commitmentOf(realm string, epoch uint64, seed [32]byte) [32]byte {
	b := append([]byte("kuji/v1/rng-commitment\x00"), realm...)
	b = binary.LittleEndian.AppendUint64(append(b, 0), epoch)
	return sha256.Sum256(append(b, seed[:]...))
}

// TestEpochs: whoever has a receipt finds the epoch's commitment, and the seed that fits it as soon as
// the epoch has ended, by closing or in a crash; not before.
func TestEpochs(t *testing.T) {
	disk := vfs.NewMem()
	var receipts []kuji.Receipt
	for range 3 {
		e, r := open(t, "data", worldOptions{FS: disk})
		receipts = append(receipts, do(t, r, kuji.Draw{Player: "ann", Pool: "free"}).Receipt)
		if len(receipts) == 2 {
			disk = disk.KillClone()
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, r := open(t, "data", worldOptions{FS: disk})
	receipts = append(receipts, do(t, r, kuji.Draw{Player: "ann", Pool: "free"}).Receipt)
	before := uint64(0)
	for i, rc := range receipts {
		v, err := kuji.EpochsOf(r).Get(t.Context(), rc.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		last := i == len(receipts)-1
		if v.Number != rc.Epoch || v.Commitment != rc.Commitment || v.Position <= before || v.Position >= rc.Position || v.Time > rc.Time || v.Current != last {
			t.Errorf("epoch %d: %+v for the receipt %+v", rc.Epoch, v, rc)
		}
		switch {
		case last && (v.Revealed != 0 || v.Seed != [32]byte{}):
			t.Errorf("epoch %d runs, and its seed is told: %+v", rc.Epoch, v)
		case !last && (v.Revealed <= rc.Position || commitmentOf(rc.Realm, rc.Epoch, v.Seed) != rc.Commitment):
			t.Errorf("epoch %d: seed %x revealed at %d does not fit commitment %x", rc.Epoch, v.Seed, v.Revealed, rc.Commitment)
		}
		before = rc.Position
	}
	for _, number := range []uint64{0, 99} {
		if _, err := kuji.EpochsOf(r).Get(t.Context(), number); kuji.CodeOf(err) != kuji.CodeNotFound {
			t.Errorf("epoch %d: %v", number, err)
		}
	}
}

// TestEpochsOfATrimmedLog: a seed that the log still has is found without the epoch's beginning. What the
// log no longer has is not found, and the present epoch always is.
func TestEpochsOfATrimmedLog(t *testing.T) {
	dir := trimmedRealm(t)
	e, r := open(t, dir, worldOptions{TrimLog: true, SegmentSize: 4096})
	v, err := kuji.EpochsOf(r).Get(t.Context(), 1)
	if err != nil || v.Time != 0 || commitmentOf(r.Name(), 1, v.Seed) != v.Commitment {
		t.Errorf("an epoch whose beginning was trimmed: %+v, %v", v, err)
	}
	for round := range 4 {
		drawSome(t, r, fmt.Sprint("more-", round, "-"), 100)
		snapshot(t, r)
	}
	_, err = kuji.EpochsOf(r).Get(t.Context(), 1)
	wantCode(t, err, kuji.CodeNotFound)
	now := do(t, r, kuji.Draw{Player: "ann", Pool: "free"}).Receipt
	if v, err := kuji.EpochsOf(r).Get(t.Context(), now.Epoch); err != nil || !v.Current || v.Commitment != now.Commitment {
		t.Errorf("the present epoch: %+v, %v", v, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestEpochsInMemory: an engine that keeps no log knows its epoch, and no seed.
func TestEpochsInMemory(t *testing.T) {
	e, err := kuji.OpenMemory([32]byte{1}, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	v, err := kuji.EpochsOf(r).Get(t.Context(), 1)
	if err != nil || !v.Current || v.Commitment == [32]byte{} || v.Seed != [32]byte{} {
		t.Errorf("%+v, %v", v, err)
	}
}
