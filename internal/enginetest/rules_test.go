package enginetest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/verify"
)

// chained computes the hashes and checksums of a whole log anew, epoch-begins included.
func chained(entries [][]byte) [][]byte {
	var hash [32]byte
	for _, e := range entries {
		copy(e[56:88], hash[:])
		binary.LittleEndian.PutUint32(e[4:], crc32.Checksum(e[8:], crc32.MakeTable(crc32.Castagnoli)))
		own := sha256.Sum256(e)
		if hash = own; e[8] == 1 { // an epoch-begin
			hash = sha256.Sum256(append(e[56:88:88], own[:]...))
		}
	}
	return entries
}

// underRules makes a realm of two epochs, both closed, whose log says that a version of the rules decided
// the first one. It returns the state's hash.
func underRules(t *testing.T, version byte, change func(entries [][]byte)) (dir string, hash [32]byte) {
	t.Helper()
	dir = t.TempDir()
	for life := range 2 {
		e, r := open(t, dir, worldOptions{SnapshotEvery: -1})
		drawSome(t, r, fmt.Sprint(life), 20)
		var err error
		if hash, _, err = r.StateHash(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(t, dir, func(entries [][]byte) [][]byte {
		entries[0][88+len("test")] = version
		if change != nil {
			change(entries)
		}
		return chained(entries)
	})
	return dir, hash
}

// TestOtherRules: a log that other rules decided, older or newer ones, is recovered, read, backed up and
// restored like any. The verifier names the epochs that it cannot decide again, decides the others, and
// checks the chain, the effects and the state of all.
func TestOtherRules(t *testing.T) {
	for _, version := range []byte{1, 4, 255} {
		dir, hash := underRules(t, version, nil)
		named := func(what string, reports ...verify.Report) {
			t.Helper()
			for _, rep := range reports {
				first, second := &rep.Epochs[0], &rep.Epochs[1]
				if rep.StateHash != hash {
					t.Errorf("rules %d, %s: state %x, want %x", version, what, rep.StateHash, hash)
				}
				if first.Rules != version || !first.Revealed || !strings.Contains(first.Undecided, fmt.Sprintf("version %d", version)) || first.Events == 0 {
					t.Errorf("rules %d, %s: the first epoch is %+v", version, what, first)
				}
				if second.Rules == version || !second.Revealed || second.Undecided != "" {
					t.Errorf("rules %d, %s: the second epoch is %+v", version, what, second)
				}
			}
		}
		var want []kuji.Record
		rep, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) { want = append(want, rec) }})
		if err != nil {
			t.Fatal(err)
		}
		named("verified", rep)
		e, r := open(t, dir, worldOptions{})
		if got, _, err := r.StateHash(t.Context()); err != nil || got != hash {
			t.Errorf("rules %d: opened with state %x, want %x: %v", version, got, hash, err)
		}
		n := 0
		for rec, err := range r.Feed().Events(t.Context(), 1) {
			if err != nil || fmt.Sprintf("%+v", rec) != fmt.Sprintf("%+v", want[n]) {
				t.Fatalf("rules %d: the feed shows %+v, want %+v: %v", version, rec, want[n], err)
			}
			if n++; n == len(want) {
				break
			}
		}
		to := t.TempDir()
		if _, err := backup.Write(t.Context(), to+"/backup", "test", backup.Of(r)); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		reports, err := backup.Restore(t.Context(), to+"/backup", to+"/data", nil)
		if err != nil {
			t.Fatal(err)
		}
		named("restored", reports...)
	}
}

// TestOtherRulesDamaged: of an epoch that is not decided again, effects that break the state are found
// all the same.
func TestOtherRulesDamaged(t *testing.T) {
	dir, _ := underRules(t, 9, func(entries [][]byte) {
		e := entries[4]
		e[len(e)-2] = 15<<3 | 7 // an effect that needs what is not there
	})
	rep, err := verify.Dir(dir, "test", verify.Options{})
	if wrongPosition(err) != 5 {
		t.Errorf("an event of other rules that does not fit the state passes for good: %+v, %v", rep, err)
	}
}
