package ledger

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"
)

// logOf makes entries: a first epoch with batches, and the begin of a second one, whose writer had
// seen so many of them. payload is that of the last batch.
func logOf(t *testing.T, seen int, payload string) (entries [][]byte, after chain) {
	t.Helper()
	c := chain{realm: "r"}
	var hint chain
	seal := func(kind Kind, epoch uint64, at chain, payload []byte) []byte {
		entry := append(make([]byte, HeadSize("r")), payload...)
		putEnvelope(entry, &envelope{kind: kind, realm: "r", epoch: epoch, writer: [16]byte{byte(epoch)}, index: at.index + 1, prev: at.hash})
		return entry
	}
	add := func(entry []byte) {
		entries = append(entries, entry)
		if _, counts, err := c.next(entry); !counts || err != nil {
			t.Fatalf("entry %d: counts %v, %v", len(entries), counts, err)
		}
		if len(entries) == seen {
			hint = c
		}
	}
	hint = c
	add(seal(KindEpochBegin, 1, c, []byte("begin")))
	add(seal(KindBatch, 1, c, []byte("a batch")))
	add(seal(KindBatch, 1, c, []byte(payload)))
	add(seal(KindEpochBegin, 2, hint, []byte("begin")))
	add(seal(KindBatch, 2, c, []byte("a batch")))
	return entries, c
}

func foldAll(entries [][]byte) (c chain, counted int, err error) {
	c = chain{realm: "r"}
	for _, e := range entries {
		_, counts, err := c.next(e)
		if err != nil {
			return c, counted, err
		}
		if counts {
			counted++
		}
	}
	return c, counted, c.complete()
}

// TestChainThroughBegin: an epoch-begin counts whatever its writer had seen, and nothing that stands
// before it can be altered unnoticed.
func TestChainThroughBegin(t *testing.T) {
	for seen := range 4 {
		entries, want := logOf(t, seen, "payload")
		if got, counted, err := foldAll(entries); err != nil || got != want || counted != 5 || got.index != 5 {
			t.Errorf("seen %d: %d count, at %d: %v", seen, counted, got.index, err)
		}
		other, _ := logOf(t, seen, "another")
		altered := append([][]byte{entries[0], entries[1], other[2]}, entries[3:]...)
		if _, counted, err := foldAll(altered); err == nil || !strings.Contains(err.Error(), "chain is broken") || counted > 4 {
			t.Errorf("seen %d: an altered entry before the epoch-begin, and %d count: %v", seen, counted, err)
		}
		if _, _, err := foldAll([][]byte{entries[0], entries[2], entries[3]}); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("seen %d: an entry is missing that the writer of the next one had seen: %v", seen, err)
		}
		if seen == 3 {
			if _, _, err := foldAll(append([][]byte{entries[0], entries[1]}, entries[3:]...)); err == nil || !strings.Contains(err.Error(), "missing") {
				t.Errorf("an entry that the next writer had seen is missing: %v", err)
			}
			if _, _, err := foldAll([][]byte{entries[0], entries[1], entries[3]}); err == nil || !strings.Contains(err.Error(), "missing") {
				t.Errorf("the same, and the log ends with its epoch-begin: %v", err)
			}
		}
	}
}

// TestChainVoid: what is doubled, late, or of a lower epoch is void and changes nothing.
func TestChainVoid(t *testing.T) {
	entries, want := logOf(t, 3, "payload")
	for i := range entries {
		doubled := append(append([][]byte{}, entries...), entries[i])
		got, counted, err := foldAll(doubled)
		got.ahead = want.ahead
		if err != nil || counted != 5 || got != want {
			t.Errorf("entry %d again at the end: %d count, %v", i, counted, err)
		}
	}
}

// TestChainOfTwoBegins: of two writers that begin the same epoch, the first one's entries count. Those of
// the other are void wherever they stand, and are no damage.
func TestChainOfTwoBegins(t *testing.T) {
	seal := func(kind Kind, writer byte, index uint64, prev [32]byte) []byte {
		entry := append(make([]byte, HeadSize("r")), "payload"...)
		putEnvelope(entry, &envelope{kind: kind, realm: "r", epoch: 1, writer: [16]byte{writer}, index: index, prev: prev})
		return entry
	}
	c := chain{realm: "r"}
	for i, step := range []struct {
		kind   Kind
		writer byte
		counts bool
	}{
		{KindEpochBegin, 1, true},
		{KindEpochBegin, 2, false},
		{KindBatch, 2, false},
		{KindBatch, 1, true},
		{KindReveal, 2, false},
		{KindEpochEnd, 2, false},
		{KindBatch, 1, true},
	} {
		prev := c.hash
		if step.writer == 2 { // its own chain: it never read the other one's begin
			prev = [32]byte{9}
		}
		if _, counts, err := c.next(seal(step.kind, step.writer, c.index+1, prev)); err != nil || counts != step.counts {
			t.Errorf("entry %d, of writer %d: counts %v, %v, want %v", i, step.writer, counts, err, step.counts)
		}
	}
}

// TestChainEnded: nothing counts in an epoch that has ended. Its seed is known, so its draws could be
// foretold.
func TestChainEnded(t *testing.T) {
	c := chain{realm: "r"}
	seal := func(kind Kind) []byte {
		entry := append(make([]byte, HeadSize("r")), "payload"...)
		putEnvelope(entry, &envelope{kind: kind, realm: "r", epoch: 1, index: c.index + 1, prev: c.hash})
		return entry
	}
	for _, kind := range []Kind{KindEpochBegin, KindBatch, KindEpochEnd} {
		if _, counts, err := c.next(seal(kind)); !counts || err != nil {
			t.Fatalf("%v: counts %v, %v", kind, counts, err)
		}
	}
	for _, kind := range []Kind{KindBatch, KindReveal, KindEpochEnd, KindEpochBegin} {
		after := c
		if _, counts, err := after.next(seal(kind)); counts || err != nil {
			t.Errorf("%v in an epoch that has ended: counts %v, %v, want void", kind, counts, err)
		}
	}
}

// TestSealedSeed: a seed opens with its key, for its realm, epoch and writer only.
func TestSealedSeed(t *testing.T) {
	key, s := [32]byte{1}, seed{2}
	e := Epoch{Number: 7, Writer: [16]byte{3}, Commitment: s.commitment("r", 7)}
	if err := e.seal("r", &key, [nonceLen]byte{4}, &s); err != nil {
		t.Fatal(err)
	}
	if got, ok := e.open("r", key); !ok || got != s {
		t.Errorf("opened %x, %v", got, ok)
	}
	if bytes.Contains(e.Sealed[:], s[:]) {
		t.Error("the seed stands in clear")
	}
	for name, change := range map[string]func(*Epoch, *[32]byte, *string){
		"key":    func(_ *Epoch, k *[32]byte, _ *string) { k[31] ^= 1 },
		"realm":  func(_ *Epoch, _ *[32]byte, r *string) { *r = "s" },
		"epoch":  func(e *Epoch, _ *[32]byte, _ *string) { e.Number++; e.Commitment = s.commitment("r", 8) },
		"writer": func(e *Epoch, _ *[32]byte, _ *string) { e.Writer[0]++ },
		"bytes":  func(e *Epoch, _ *[32]byte, _ *string) { e.Sealed[20] ^= 1 },
		"commitment": func(e *Epoch, _ *[32]byte, _ *string) {
			e.Commitment = sha256.Sum256(nil)
		},
	} {
		f, k, realm := e, key, "r"
		change(&f, &k, &realm)
		if _, ok := f.open(realm, k); ok {
			t.Errorf("it opens with another %s", name)
		}
	}
}
