package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// largeCodes are codes whose import is too large for an entry of the drivers in these tests.
func largeCodes(tag any) []string {
	codes := make([]string, 1500)
	for i := range codes {
		codes[i] = fmt.Sprintf("%060d-%v", i, tag)
	}
	return codes
}

// sentFiles counts the payloads that a source sends.
func sentFiles(r *kuji.Realm, n *int) backup.Source {
	return func(ctx context.Context, from uint64) iter.Seq2[backup.Part, error] {
		return func(yield func(backup.Part, error) bool) {
			for part, err := range backup.Of(r)(ctx, from) {
				if strings.HasSuffix(part.File, ".payload") && len(part.Data) == 0 {
					*n++
				}
				if !yield(part, err) {
					return
				}
			}
		}
	}
}

// TestBackupOfDriver backs up a realm that several nodes share, on a log that has
// copies of entries, with payloads in files, behind takeovers, and trimmed. Each backup restores to a data
// directory with the same state, which the key of the nodes proves.
func TestBackupOfDriver(t *testing.T) {
	for _, trim := range []bool{false, true} {
		t.Run(fmt.Sprint("trimmed ", trim), func(t *testing.T) {
			s := drivertest.NewShared(drivertest.SharedOptions{
				Dense: true, Unconditional: true, Rand: rand.New(rand.NewPCG(1, 2)), Faults: drivertest.Faults{Double: 300},
			})
			o := kuji.Options{TrimLog: trim}
			disk, files := vfs.NewMem(), 0
			for node := range 3 {
				_, r := openAt(t, s, node, o) // takes over from a node that was killed
				if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
					t.Fatal(err)
				}
				for i := range 12 {
					if _, err := r.Codes().Import(t.Context(), "list", largeCodes(fmt.Sprint(node, "-", i))); err != nil {
						t.Fatal(err)
					}
					do(t, r, kuji.Draw{ID: fmt.Sprint(node, "-", i), Player: "ann", Pool: "free", Count: 1})
					snapshot(t, r)
					if trim || i%4 < 2 { // the log is trimmed behind a backup, and never before it
						if err := hook.Backup(disk, "backup", "test", sentFiles(r, &files)); err != nil {
							t.Fatalf("node %d, round %d: %v", node, i, err)
						}
					}
				}
				if err := hook.Backup(disk, "backup", "test", sentFiles(r, &files)); err != nil {
					t.Fatal(err)
				}
				want, position, err := r.StateHash(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				to := fmt.Sprint("restored", node)
				if err := hook.Restore(disk, "backup", to); err != nil {
					t.Fatal(err)
				}
				if rep, err := verifyIn(disk, to, "test", nil); err != nil || rep.StateHash != want || rep.Position != position || rep.Void == 0 {
					t.Fatalf("node %d: restored %+v, %v, want state %x at %d, and void entries", node, rep, err, want, position)
				}
				fresh := vfs.NewMem() // begins with snapshots
				err = hook.Backup(fresh, "backup", "test", backup.Of(r))
				rep, wrong := verifyIn(fresh, "backup", "test", nil)
				if err != nil || wrong != nil || rep.StateHash != want || rep.From > 0 != trim {
					t.Fatalf("node %d: a new backup: %v, %+v, %v", node, err, rep, wrong)
				}
			}
			if files < 36 || files > 48 { // copies that come late bring theirs again
				t.Errorf("%d payloads were sent, want each of 36 once, or little more", files)
			}
			served, err := openWorld("restored2", worldOptions{FS: disk})
			if err != nil {
				t.Fatal(err)
			}
			r, err := served.Realm("test")
			if err != nil {
				t.Fatal(err)
			}
			if got := do(t, r, kuji.Draw{ID: "1-3", Player: "ann", Pool: "free", Count: 1}); !got.Replayed {
				t.Errorf("a draw of the backup is carried out again: %+v", got)
			}
			if err := served.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestBackupOfDriverDamaged: a payload that a backup lost, or that has other bytes, is found.
func TestBackupOfDriverDamaged(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{Dense: true})
	_, r := openAt(t, s, 0, kuji.Options{})
	if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Codes().Import(t.Context(), "list", largeCodes("")); err != nil {
		t.Fatal(err)
	}
	part := func(change func(p *backup.Part) bool) backup.Source {
		return func(ctx context.Context, from uint64) iter.Seq2[backup.Part, error] {
			return func(yield func(backup.Part, error) bool) {
				for p, err := range backup.Of(r)(ctx, from) {
					p.Data = bytes.Clone(p.Data)
					if (p.File == "" || change(&p)) && !yield(p, err) {
						return
					}
				}
			}
		}
	}
	disk := vfs.NewMem()
	err := hook.Backup(disk, "flipped", "test", part(func(p *backup.Part) bool {
		if len(p.Data) > 0 {
			p.Data[len(p.Data)/2] ^= 1
		}
		return true
	}))
	wantCode(t, err, kuji.CodeCorrupt)
	err = hook.Backup(disk, "short", "test", part(func(p *backup.Part) bool { return len(p.Data) > 0 })) // no end
	wantCode(t, err, kuji.CodeFailed)
	if err := hook.Backup(disk, "lost", "test", part(func(*backup.Part) bool { return false })); err != nil {
		t.Fatal(err)
	}
	if _, err := verifyIn(disk, "lost", "test", nil); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without the payload: %v", err)
	}
	if err := hook.Restore(disk, "lost", "restored"); err == nil {
		t.Error("a backup without a payload is restored")
	}
}

// TestBackupOfDriverRefused: who does not lead cannot say what was acknowledged; a log with gaps cannot be
// at the same places elsewhere.
func TestBackupOfDriverRefused(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{Dense: true})
	_, first := openAt(t, s, 1, kuji.Options{})
	if _, err := first.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	backup := func(r *kuji.Realm) error {
		return hook.Backup(vfs.NewMem(), "backup", "test", backup.Of(r))
	}
	_, follower := openAt(t, s, 2, kuji.Options{Follow: true})
	wantCode(t, backup(follower), kuji.CodeNotLeader)
	if err := follower.Replica().Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := backup(follower); err != nil {
		t.Errorf("the leader: %v", err)
	}
	_, err := first.Do(t.Context(), kuji.Draw{ID: "2", Player: "bob", Pool: "free"})
	wantCode(t, err, kuji.CodeUnknownOutcome)
	wantCode(t, backup(first), kuji.CodeNotLeader)

	gaps := drivertest.NewShared(drivertest.SharedOptions{})
	_, r := openAt(t, gaps, 1, kuji.Options{})
	if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	if err := backup(r); kuji.CodeOf(err) != kuji.CodeFailed || !strings.Contains(err.Error(), "gaps") {
		t.Errorf("a log with gaps: %v", err)
	}
}
