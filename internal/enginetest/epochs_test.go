package enginetest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
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

// TestEpochsForgotten: a writer that starts from a snapshot remembers only the epochs that it needs. The log
// has the others, too.
func TestEpochsForgotten(t *testing.T) {
	disk := vfs.NewMem()
	var receipts []kuji.Receipt
	for range 5 {
		e, r := open(t, "data", worldOptions{FS: disk})
		receipts = append(receipts, do(t, r, kuji.Draw{Player: "ann", Pool: "free"}).Receipt)
		snapshot(t, r)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, r := open(t, "data", worldOptions{FS: disk})
	for _, rc := range receipts {
		v, err := kuji.EpochsOf(r).Get(t.Context(), rc.Epoch)
		if err != nil || v.Commitment != rc.Commitment || v.Time == 0 || commitmentOf("test", rc.Epoch, v.Seed) != rc.Commitment {
			t.Errorf("epoch %d: %+v, %v", rc.Epoch, v, err)
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

// counted is a driver that counts the entries that are read.
type counted struct {
	driver.Driver
	read *atomic.Int64
}

type countedRealm struct {
	driver.Realm
	read *atomic.Int64
}

func (d counted) Open(ctx context.Context, realm string, o driver.Options) (driver.Realm, error) {
	r, err := d.Driver.Open(ctx, realm, o)
	return countedRealm{r, d.read}, err
}

func (r countedRealm) Read(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		for e, err := range r.Realm.Read(ctx, after, through) {
			r.read.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestEpochsOfALongLog: to find an epoch, only some of the log is read, however long the epoch was.
func TestEpochsOfALongLog(t *testing.T) {
	log, read := drivertest.NewShared(drivertest.SharedOptions{}), new(atomic.Int64)
	const entries, draws = 800, 100 // with long ids: 6 MB an epoch
	var receipts []kuji.Receipt
	var r *kuji.Realm
	for epoch := range 3 {
		e, err := kuji.Open("", kuji.Options{Driver: counted{log.Node(1), read}, Key: [32]byte{1}})
		if err != nil {
			t.Fatal(err)
		}
		if r, err = e.Realm("test"); err != nil {
			t.Fatal(err)
		}
		if epoch == 0 {
			if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
				t.Fatal(err)
			}
		}
		for n := range entries {
			all := make([]kuji.Request, draws)
			for i := range all {
				all[i] = kuji.Draw{ID: fmt.Sprintf("%d-%03d-%050d", epoch, n, i), Player: fmt.Sprint("p", i), Pool: "free"}
			}
			res, err := r.DoAll(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}
			if res[0].Err != nil {
				t.Fatal(res[0].Err)
			}
			receipts = append(receipts[:epoch], res[0].Receipt)
		}
		if epoch < 2 {
			err = e.Close()
		} else {
			t.Cleanup(func() { e.Close() }) // the test does not care how
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, rc := range receipts {
		read.Store(0)
		v, err := kuji.EpochsOf(r).Get(t.Context(), rc.Epoch)
		if err != nil || v.Commitment != rc.Commitment || v.Time == 0 || v.Position >= rc.Position {
			t.Fatalf("epoch %d: %+v, %v", rc.Epoch, v, err)
		}
		if revealed := commitmentOf("test", rc.Epoch, v.Seed) == rc.Commitment; revealed != (i < 2) {
			t.Errorf("epoch %d: %+v; the seed is told: %v", rc.Epoch, v, revealed)
		}
		if n := read.Load(); n > entries/2 {
			t.Errorf("epoch %d: %d entries were read to find it, of %d that it has", rc.Epoch, n, entries)
		}
	}
}
