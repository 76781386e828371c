package wal_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/vfs/powercut"
	"github.com/kuji-dev/kuji/wal"
)

// A process appends to a log on a real file system and tells each record that was
// acknowledged as durable; the power goes in the middle of it; after that,
// every record told has to be in the log, and nothing that was never appended.
func TestPowerCuts(t *testing.T) {
	powercut.Each(t, 256<<20, cutLog)
}

func cutLog(t *testing.T, disk *powercut.Disk, cuts int) {
	rng := rand.New(rand.NewPCG(1, 2))
	acked := make(map[uint64]ack)
	for cut := range cuts {
		told := appendUntilCut(t, disk, cut, 1+rng.IntN(2000), cut%2 == 0)
		for _, a := range told {
			acked[a.Offset] = a
		}
		if err := disk.Restart(); err != nil {
			t.Fatal(err)
		}
		next := checkAcked(t, logDir(disk), acked, cut%3 == 0)
		t.Logf("cut %d: %d records acknowledged by this process, %d in the log", cut, len(told), next)
	}
	t.Logf("%d power cuts, %d records acknowledged", cuts, len(acked))
}

func logDir(disk *powercut.Disk) string { return filepath.Join(disk.Dir(), "log") }

// ack tells that a record is durable.
type ack struct {
	Offset                uint64
	Cut, Appender, Number uint32
}

// recordOf returns the bytes of the record that an ack tells of: what it is,
// and noise that follows from it.
func recordOf(a ack) []byte {
	r := rand.New(rand.NewPCG(uint64(a.Cut)<<32|uint64(a.Appender), uint64(a.Number)))
	data := make([]byte, 12+r.IntN(700))
	binary.LittleEndian.PutUint32(data, a.Cut)
	binary.LittleEndian.PutUint32(data[4:], a.Appender)
	binary.LittleEndian.PutUint32(data[8:], a.Number)
	for i := 12; i < len(data); i++ {
		data[i] = byte(r.Uint32())
	}
	return data
}

const (
	childDir = "KUJI_POWERCUT_CHILD_DIR"
	childCut = "KUJI_POWERCUT_CHILD_CUT"
)

// appendUntilCut starts the process, cuts the power after so many
// acknowledgements, and returns all that count.
//
// Of an fdatasync that is running when a file system is shut down, the kernel can
// report success although the bytes are lost (seen with Linux 6.18 and a bare
// pwrite and fdatasync: 4 of 60 cuts). A machine without power does not get
// there, so only what was acknowledged before the cut counts.
func appendUntilCut(t *testing.T, disk *powercut.Disk, cut, after int, journal bool) []ack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPowerCutChild$")
	child.Env = append(os.Environ(), childDir+"="+logDir(disk), fmt.Sprintf("%s=%d", childCut, cut))
	child.ExtraFiles = []*os.File{w}
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	if err := errors.Join(child.Start(), w.Close()); err != nil {
		t.Fatal(err)
	}
	var told []ack
	in := bufio.NewReader(r)
	for {
		var a ack
		if err := binary.Read(in, binary.LittleEndian, &a); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("reading acknowledgements: %v", err)
			}
			break
		}
		if len(told) == after {
			continue // too late to count
		}
		if told = append(told, a); len(told) == after {
			if err := disk.Cut(journal); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(child.Wait(), r.Close()); err != nil || len(told) < after {
		t.Fatalf("the process ended after %d acknowledgements, want %d and the power cut: %v\n%s", len(told), after, err, &out)
	}
	return told
}

// checkAcked opens the log and looks at every record. It returns the next
// offset.
func checkAcked(t *testing.T, dir string, acked map[uint64]ack, readOnly bool) uint64 {
	t.Helper()
	l, err := wal.Open(dir, wal.Options{SegmentSize: powercutSegment, ReadOnly: readOnly})
	if err != nil {
		t.Fatalf("Open after the power cut: %v", err)
	}
	seen := 0
	for rec, err := range l.Records(l.First()) {
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.Data) < 12 {
			t.Fatalf("record %d: %d bytes, never appended", rec.Offset, len(rec.Data))
		}
		got := ack{rec.Offset, binary.LittleEndian.Uint32(rec.Data), binary.LittleEndian.Uint32(rec.Data[4:]), binary.LittleEndian.Uint32(rec.Data[8:])}
		if !bytes.Equal(rec.Data, recordOf(got)) {
			t.Fatalf("record %d: %d bytes, never appended", rec.Offset, len(rec.Data))
		}
		if want, ok := acked[rec.Offset]; ok {
			if seen++; got != want {
				t.Fatalf("record %d is %+v, acknowledged was %+v", rec.Offset, got, want)
			}
		}
	}
	next := l.Next()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if seen != len(acked) {
		t.Fatalf("%d of %d acknowledged records are lost; the log ends at %d", len(acked)-seen, len(acked), next)
	}
	return next
}

const powercutSegment = 64 << 10

// TestPowerCutChild is the process whose power is cut. By itself it does
// nothing.
func TestPowerCutChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("runs as a process of TestPowerCuts")
	}
	var cut uint32
	if _, err := fmt.Sscan(os.Getenv(childCut), &cut); err != nil {
		t.Fatal(err)
	}
	l, err := wal.Open(dir, wal.Options{SegmentSize: powercutSegment})
	if err != nil {
		t.Fatal(err)
	}
	out := os.NewFile(3, "acknowledgements")
	var mu sync.Mutex
	tell := func(acks ...ack) error {
		mu.Lock()
		defer mu.Unlock()
		return binary.Write(out, binary.LittleEndian, acks)
	}
	var wg sync.WaitGroup
	for appender := range uint32(4) {
		wg.Go(func() { // until the disk fails
			if appender == 0 {
				appendThenSync(l, cut, tell)
				return
			}
			for number := uint32(0); ; number++ {
				a := ack{Cut: cut, Appender: appender, Number: number}
				var err error
				if a.Offset, err = l.AppendSync(context.Background(), recordOf(a)); err != nil || tell(a) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	// Close reports what failed; nothing is acknowledged any more.
	t.Logf("Close: %v", l.Close())
}

// appendThenSync acknowledges several appends after one Sync.
func appendThenSync(l *wal.Log, cut uint32, tell func(...ack) error) {
	rng := rand.New(rand.NewPCG(uint64(cut), 3))
	for number := uint32(0); ; {
		var pending []ack
		for range 1 + rng.IntN(200) {
			a := ack{Cut: cut, Number: number}
			var err error
			if a.Offset, err = l.Append(recordOf(a)); err != nil {
				return
			}
			pending = append(pending, a)
			number++
		}
		if l.Sync() != nil || tell(pending...) != nil {
			return
		}
	}
}
