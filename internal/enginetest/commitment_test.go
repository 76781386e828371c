package enginetest

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestCommitmentForetellsNothing: what everybody sees of a seed is not the key
// of the draws: who takes it for one guesses no better than anybody.
func TestCommitmentForetellsNothing(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	right := 0
	const draws = 200
	var src *rand.ChaCha8
	for i := range draws {
		res := do(t, r, kuji.Draw{ID: fmt.Sprint(i), Player: "ann", Pool: "free"})
		if src == nil {
			src = rand.NewChaCha8(res.Receipt.Commitment)
		}
		point, _ := bits.Mul64(src.Uint64(), 4) // as docs/internals/formats/event.md says, of weights 1 and 3
		if (point < 1) == (res.Outcomes[0].Entry == "sword") {
			right++
		}
	}
	if right == draws {
		t.Errorf("all %d draws follow from the commitment", draws)
	}
}

// TestSeedsAreNew: every start draws from another seed, and the commitment of
// each is another one.
func TestSeedsAreNew(t *testing.T) {
	dir := t.TempDir()
	seeds, commitments := map[string]bool{}, map[[32]byte]bool{}
	for i := range 4 {
		e, r := open(t, dir, worldOptions{})
		res := do(t, r, kuji.Draw{ID: fmt.Sprint(i), Player: "ann", Pool: "free"})
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		entries := logEntries(t, dir)
		end := entries[len(entries)-1]
		seed := string(end[len(end)-32:])
		if strings.Trim(seed, "\x00") == "" || seeds[seed] || commitments[res.Receipt.Commitment] {
			t.Errorf("start %d: seed or commitment as in an earlier one", i)
		}
		seeds[seed], commitments[res.Receipt.Commitment] = true, true
		for at, entry := range entries[:len(entries)-1] {
			if bytes.Contains(entry, []byte(seed)) {
				t.Errorf("start %d: entry %d has the seed before the epoch ends", i, at)
			}
		}
	}
}
