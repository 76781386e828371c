package enginetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
	"github.com/kuji-dev/kuji/wal"
)

// logEntries returns the records of a realm's log.
func logEntries(t *testing.T, dir string) (entries [][]byte) {
	t.Helper()
	l, err := wal.Open(dir+"/realms/test/log", wal.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range l.Records(0) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, bytes.Clone(r.Data))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return entries
}

// rewrite replaces a realm's log by one that holds other entries, and removes what says where the
// old one was closed: what someone does who can compute checksums.
func rewrite(t *testing.T, dir string, change func([][]byte) [][]byte) {
	t.Helper()
	path := dir + "/realms/test/log"
	entries := logEntries(t, dir)
	if err := errors.Join(os.RemoveAll(path), os.RemoveAll(dir+"/realms/test/closed")); err != nil {
		t.Fatal(err)
	}
	l, err := wal.Open(path, wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range change(entries) {
		if _, err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTamperedHistory: entries that are dropped, swapped or repeated, each whole
// in itself, are damage when something is missing and harmless when not.
func TestTamperedHistory(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func([][]byte) [][]byte
		sound  bool
		void   uint64
		wrong  uint64 // the first position
	}{
		{"as it was", func(e [][]byte) [][]byte { return e }, true, 0, 0},
		{"one repeated", func(e [][]byte) [][]byte { return slices.Insert(e, 6, e[5]) }, true, 1, 0},
		{"one repeated at the end", func(e [][]byte) [][]byte { return append(e, e[5], e[6]) }, true, 2, 0},
		{"one dropped", func(e [][]byte) [][]byte { return slices.Delete(e, 6, 7) }, false, 0, 7},
		{"two swapped", func(e [][]byte) [][]byte { e[6], e[7] = e[7], e[6]; return e }, false, 0, 8},
		{"the last two swapped", func(e [][]byte) [][]byte {
			n := len(e)
			e[n-1], e[n-2] = e[n-2], e[n-1]
			return e
		}, false, 0, 13},
	} {
		for _, epochs := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s in the first of %d", tc.name, epochs), func(t *testing.T) {
				dir := t.TempDir()
				first := 0 // entries of the first epoch
				for range epochs {
					e, r := open(t, dir, worldOptions{})
					for range 10 {
						do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
					}
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
					if first == 0 {
						first = len(logEntries(t, dir))
					}
				}
				rewrite(t, dir, func(e [][]byte) [][]byte {
					return slices.Concat(tc.change(slices.Clone(e[:first])), e[first:])
				})
				rep, verr := verify.Dir(dir, "test", verify.Options{})
				if tc.sound && rep.Void != tc.void {
					t.Errorf("%d void entries, want %d", rep.Void, tc.void)
				}
				e, err := openWorld(dir, worldOptions{})
				if err != nil {
					t.Fatal(err)
				}
				_, err = e.Realm("test")
				if tc.sound && (verr != nil || err != nil) {
					t.Errorf("Verify: %v; opening: %v", verr, err)
				}
				if !tc.sound {
					if got := wrongPosition(verr); got != tc.wrong {
						t.Errorf("Verify names position %d, want %d: %v", got, tc.wrong, verr)
					}
					wantCode(t, err, kuji.CodeCorrupt)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// wrongPosition is the position that an error of Verify names.
func wrongPosition(err error) uint64 {
	if wrong, ok := errors.AsType[*verify.Error](err); ok {
		return wrong.Position
	}
	return 0
}

// TestEveryByteOfALog: whichever byte of a log is damaged, its records or what stands
// between them, Verify names the position that it belongs to; and a realm that opens all
// the same acknowledges nothing that the next start could not find.
func TestEveryByteOfALog(t *testing.T) {
	for name, closed := range map[string]bool{"closed": true, "killed": false} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			o := worldOptions{FS: disk}
			e, r := open(t, "data", o)
			for range 3 {
				do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
			}
			if _, err := r.Snapshot(t.Context()); err != nil { // behind which recovery begins
				t.Fatal(err)
			}
			do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
			was := disk
			if !closed {
				was = disk.KillClone()
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			dir := "data/realms/test/log"
			names, err := was.List(dir)
			if err != nil || len(names) != 1 {
				t.Fatal(names, err)
			}
			file := dir + "/" + names[0]
			info, err := was.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			position := make([]uint64, info.Size()) // that a byte belongs to; 0: to none
			for i := range 64 {
				position[i] = 1 // the header: of the segment, without which there is nothing
			}
			tail, end := int64(0), int64(0) // of the last group
			for g, err := range wal.Groups(dir, on(was, wal.Options{})) {
				if err != nil {
					t.Fatal(err)
				}
				if g.Count != 1 {
					t.Fatalf("a group of %d entries", g.Count)
				}
				tail, end = g.Pos, g.Pos+g.Bytes
				for at := g.Pos; at < end; at++ {
					position[at] = g.First + 1
				}
				length := binary.LittleEndian.Uint32(bytesAt(t, was, file, g.Pos+48+4, 4))
				for at := g.Pos + 48 + 8 + int64(length); at < end; at++ {
					position[at] = g.First + 2 // zeros, behind the entry
				}
			}
			for at := int64(0); at < min(info.Size(), end+64); at += 5 {
				c := was.KillClone()
				if err := c.Flip(file, at, 1, 0x10); err != nil {
					t.Fatal(err)
				}
				want := position[at]
				if at >= tail && !closed {
					want = 0 // as if torn
				}
				_, err := verifyIn(c, "data", "test", nil)
				if got := wrongPosition(err); got != want || want == 0 && err != nil {
					t.Fatalf("byte %d: Verify names position %d, want %d: %v", at, got, want, err)
				}
				o.FS = c
				e, err := openWorld("data", o)
				if err != nil {
					t.Fatal(err)
				}
				r, err := e.Realm("test")
				if err != nil {
					if want == 0 || kuji.CodeOf(err) != kuji.CodeCorrupt {
						t.Fatalf("byte %d: opening: %v", at, err)
					}
				} else {
					if want != 0 {
						t.Fatalf("byte %d, of position %d: the realm opens", at, want)
					}
					rc := do(t, r, kuji.Draw{Player: "ann", Pool: "free"}).Receipt
					rep, err := verifyIn(c.KillClone(), "data", "test", nil)
					if err != nil || rep.Position < rc.Position {
						t.Fatalf("byte %d: %d was acknowledged, then killed: good up to %d, %v", at, rc.Position, rep.Position, err)
					}
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func bytesAt(t testing.TB, fsys vfs.FS, name string, pos, n int64) []byte {
	t.Helper()
	f, err := fsys.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, pos); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDeposedWriter: an entry of a writer that was deposed, or of another one
// that chose the same epoch, is void, even if it continues the chain.
func TestDeposedWriter(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(late []byte)
	}{
		{"of the epoch before", func([]byte) {}},
		{"of another writer", func(late []byte) { binary.LittleEndian.PutUint64(late[16:], 2) }},
	} {
		dir := t.TempDir()
		for i := range 2 {
			e, r := open(t, dir, worldOptions{})
			do(t, r, kuji.Draw{ID: fmt.Sprint(i), Player: "ann", Pool: "free"})
			if i == 0 {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		crashed := t.TempDir() // the second writer has not ended its epoch
		if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		rewrite(t, crashed, func(entries [][]byte) [][]byte {
			last := entries[len(entries)-1]
			late := bytes.Clone(entries[2]) // the first draw
			binary.LittleEndian.PutUint64(late[40:], binary.LittleEndian.Uint64(last[40:])+1)
			prev := sha256.Sum256(last)
			copy(late[56:88], prev[:])
			late[88+len("test")+12+4] = 'x' // its request id
			tc.change(late)
			binary.LittleEndian.PutUint32(late[4:], crc32.Checksum(late[8:], crc32.MakeTable(crc32.Castagnoli)))
			return append(entries, late)
		})
		rep, err := verify.Dir(crashed, "test", verify.Options{})
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if rep.Events != 3 || rep.Void != 1 {
			t.Errorf("%s: %d events count and %d entries do not, want 3 and 1", tc.name, rep.Events, rep.Void)
		}
	}
}

// TestEntryChecksum: the last entry, which nothing follows, is covered by its
// own checksum.
func TestEntryChecksum(t *testing.T) {
	dir, crashed := t.TempDir(), t.TempDir()
	_, r := open(t, dir, worldOptions{})
	const id = "request"
	do(t, r, kuji.Draw{ID: id, Player: "ann", Pool: "free"})
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	rewrite(t, crashed, func(entries [][]byte) [][]byte {
		last := entries[len(entries)-1]
		last[bytes.Index(last, []byte(id))]++ // any id will do, for all but the checksum
		return entries
	})
	if rep, err := verify.Dir(crashed, "test", verify.Options{}); err == nil {
		t.Errorf("Verify finds nothing wrong: %+v", rep)
	}
}

// rechain computes checksums and hashes anew, from an entry on.
func rechain(entries [][]byte, from int) {
	for i := from; i < len(entries); i++ {
		if i > 0 {
			prev := sha256.Sum256(entries[i-1])
			copy(entries[i][56:88], prev[:])
		}
		binary.LittleEndian.PutUint32(entries[i][4:], crc32.Checksum(entries[i][8:], crc32.MakeTable(crc32.Castagnoli)))
	}
}

// TestForgedHistory: who writes the whole log anew is found out by the seeds:
// a prize that was not drawn, and a seed that was not committed to.
func TestForgedHistory(t *testing.T) {
	for _, tc := range []struct {
		name string
		open bool // refused by Open, too
		at   int  // the entry, from the end
		flip func(entry []byte)

		wrong uint64 // position
	}{
		{"a prize", false, 3, func(b []byte) { b[len(b)-3] ^= 1 << 3 }, 7}, // the number of the entry taken, 0 or 1
		{"a seed", true, 1, func(b []byte) { b[len(b)-1] ^= 1 }, 9},
		{"a kind of entry that nobody knows", true, 4, func(b []byte) { b[8] = 5 }, 6},
		{"a kind of event that nobody knows", false, 4, func(b []byte) { b[88+len("test")+13] |= 0xf8 }, 6},
		{"an effect that nobody knows", true, 4, func(b []byte) { b[len(b)-2] = 15<<3 | 7 }, 6},
		{"an event that does not end", true, 4, func(b []byte) { b[88+len("test")+8]++ }, 6},
	} {
		dir := t.TempDir()
		e, r := open(t, dir, worldOptions{})
		for i := range 6 {
			do(t, r, kuji.Draw{Player: fmt.Sprint("p", i), Pool: "free"})
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		rewrite(t, dir, func(entries [][]byte) [][]byte {
			at := len(entries) - tc.at
			tc.flip(entries[at])
			rechain(entries, at)
			return entries
		})
		if rep, err := verify.Dir(dir, "test", verify.Options{}); err == nil || wrongPosition(err) != tc.wrong || rep.Position != tc.wrong-1 {
			t.Errorf("%s: right up to position %d, and then: %v; want position %d named", tc.name, rep.Position, err, tc.wrong)
		}
		if e, err := openWorld(dir, worldOptions{}); err != nil {
			t.Fatal(err)
		} else {
			_, err = e.Realm("test")
			if refused := kuji.CodeOf(err) == kuji.CodeCorrupt; refused != tc.open {
				t.Errorf("%s: Open says %v", tc.name, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAlteredEntry: an entry that was altered by someone who computes its
// checksum breaks the chain of hashes, wherever another one follows it.
func TestAlteredEntry(t *testing.T) {
	for at := range 12 {
		dir := t.TempDir()
		e, r := open(t, dir, worldOptions{})
		for i := range 10 {
			do(t, r, kuji.Draw{ID: fmt.Sprint(i), Player: "ann", Pool: "free"})
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		rewrite(t, dir, func(entries [][]byte) [][]byte {
			if len(entries) != 13 {
				t.Fatalf("%d entries, want 13", len(entries))
			}
			b := entries[at]
			b[88+len("test")+1]++ // in an epoch-begin or a batch, of its time
			binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], crc32.MakeTable(crc32.Castagnoli)))
			return entries
		})
		if rep, err := verify.Dir(dir, "test", verify.Options{}); err == nil {
			t.Errorf("entry %d altered: Verify finds nothing wrong: %+v", at, rep)
		}
		e, err := openWorld(dir, worldOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Realm("test")
		wantCode(t, err, kuji.CodeCorrupt)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHostileGoValues: values that no parser makes are refused and stop nothing.
func TestHostileGoValues(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	_, err := r.Apply(t.Context(), nil)
	wantCode(t, err, kuji.CodeInvalid)
	_, err = r.Catalogs().Plan(t.Context(), nil)
	wantCode(t, err, kuji.CodeInvalid)
	_, err = r.Apply(t.Context(), &catalog.Catalog{})
	wantCode(t, err, kuji.CodeInvalid)
	loop := &kuji.Atomic{}
	loop.Members = []kuji.Request{loop}
	_, err = r.Do(t.Context(), loop)
	wantCode(t, err, kuji.CodeInvalid)
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "free"}); res.Status != kuji.OK {
		t.Errorf("afterwards: %v", res)
	}
}

// TestGroupsVerify: groups of many draws and groups of grants are decided
// again as they were, and their draws are counted.
func TestGroupsVerify(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	draw := kuji.Draw{Player: "ann", Pool: "many", Count: 1000}
	if _, err := r.Apply(t.Context(), parse(t, `{kuji: 1, items: {gem: {kind: currency}}, pools: {many: {max_count: 1000, entries: [{id: e, weight: 1, reward: nothing}]}}}`)); kuji.CodeOf(err) != 0 {
		t.Fatal(err)
	}
	grant := kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}
	res, err := r.DoAll(t.Context(), []kuji.Request{
		kuji.Atomic{Members: []kuji.Request{draw, draw}},
		kuji.Atomic{Members: []kuji.Request{grant, draw, draw}},
	})
	if err != nil || res[0].Status != kuji.OK || res[1].Status != kuji.OK {
		t.Fatal(res, err)
	}
	if got := r.Stats().Draws; got != 4000 {
		t.Errorf("%d draws counted, want 4000", got)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) {
		for _, m := range rec.Members {
			if m.Kind == "grant" && m.Count != 0 {
				err = fmt.Errorf("a grant with a count: %+v", m)
			}
		}
	}})
	if err != nil || rep.Draws != 4000 {
		t.Errorf("%d draws, %v", rep.Draws, err)
	}
}

// TestLogOfAnotherRealm: a realm's directory under another name is refused: its
// entries say whose they are.
func TestLogOfAnotherRealm(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	do(t, r, kuji.Draw{ID: "1", Player: "ann", Pool: "free"})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+"/realms/test", dir+"/realms/other"); err != nil {
		t.Fatal(err)
	}
	if rep, err := verify.Dir(dir, "other", verify.Options{}); wrongPosition(err) != 1 {
		t.Errorf("%+v, %v", rep, err)
	}
	if e, err := openWorld(dir, worldOptions{}); err != nil {
		t.Fatal(err)
	} else {
		_, err = e.Realm("other")
		wantCode(t, err, kuji.CodeCorrupt)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
