package kuji

import (
	"fmt"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/ledger"
)

// Nodes that carry out one log have the same chain at the same position. A leader tells where its
// chain stands; a follower remembers where its own stood at its last positions, and compares.

// mark is where the chain stands after a position.
type mark struct {
	position uint64
	hash     [32]byte
}

// marks are a follower's last marks, by position.
type marks [1024]mark

// note notes where the chain stands. The caller holds mu, or nobody else has the realm.
func (r *Realm) note(at ledger.At) {
	r.mark = mark{at.Position(), at.ChainHash()}
	if f := r.follower; f != nil {
		f.marks[r.mark.position%uint64(len(f.marks))] = r.mark
	}
}

// Compare compares the chain of a realm that follows with that of another node, by [Stats.Chain], at
// a position. If they differ, one of the two has read or written what the log does not have: the
// realm stops as at damage, with CodeCorrupt, and does not lead. A position that the realm has not
// come to, or has left 1024 behind, is not compared.
func (r *Realm) Compare(node string, position uint64, hash [32]byte) error {
	r.mu.Lock()
	f := r.follower
	if f == nil || f.lead || hash == ([32]byte{}) {
		r.mu.Unlock()
		return nil
	}
	own := f.marks[position%uint64(len(f.marks))]
	r.mu.Unlock()
	if own.position != position || own.hash == hash {
		return nil
	}
	err := r.failed("comparing chains", &driver.CorruptError{
		Place: fmt.Sprintf("position %d", position),
		Err:   fmt.Errorf("the chain has hash %x here, and %x at node %s", own.hash, hash, node),
	})
	f.stop()
	r.halt(err)
	r.mu.Lock()
	r.stats.Differs = 1
	r.mu.Unlock()
	return err
}
