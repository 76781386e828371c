package rules

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/store"
)

// A proposal is a catalog that waits until somebody else approves it. It stands in records, so that it is
// found however far the log was trimmed: one of what is said about it, and its bytes in pieces. Another
// record says which number comes next, and which proposal put the catalog in force. Approving is putting
// the catalog in force, by an event that names both who approved and who proposed.

// Limits of proposals.
const (
	MaxProposals     = 20       // that wait in a realm
	MaxProposal      = 8 << 20  // bytes of a compiled catalog that waits
	MaxProposedBytes = 32 << 20 // of all that wait in a realm

	proposalPiece = 256 << 10
)

// Proposal is a catalog that waits.
type Proposal struct {
	Number uint64 // from 1 on
	Over   uint64 // the version in force when it was proposed: it can be approved only over this one
	At     store.At
	Bytes  uint64 // of the compiled catalog
	Hash   [32]byte
	Name   string // of the catalog
	Note          // who proposed it, and why

	all proposed // as ProposalOf found it
}

// proposed is what stands in the record of all proposals.
type proposed struct {
	last     uint64 // number of the newest
	approved uint64 // number of the one that put a catalog in force last; 0: none did
	version  uint64 // that this catalog got
}

func proposalKey(number uint64) key     { return key{recordProposal}.num(number) }
func pieceKey(number uint64, i int) key { return key{recordPiece}.num(number).short(uint32(i)) }
func (p *Proposal) pieces() int         { return int((p.Bytes + proposalPiece - 1) / proposalPiece) }

func proposedOf(s State) (p proposed) {
	value, ok := s.Record(key{recordProposed})
	if !ok {
		return p
	}
	r := store.NewReader(value)
	for _, n := range []*uint64{&p.last, &p.approved, &p.version} {
		*n = r.Uint("a number", 1<<63)
	}
	return p
}

func (p *proposed) put(w *store.Writer) {
	var value []byte
	for _, n := range []uint64{p.last, p.approved, p.version} {
		value = binary.AppendUvarint(value, n)
	}
	w.Put(key{recordProposed}, value)
}

func (p *Proposal) value() []byte {
	w := store.Writer{Buf: append([]byte(nil), p.Hash[:]...)}
	for _, n := range []uint64{p.Over, p.At.Position, uint64(p.At.Index), uint64(p.At.Time), p.Bytes} {
		w.Uint(n)
	}
	for _, text := range []string{p.Name, p.By, p.Reason, p.Metadata} {
		writeText(&w, text)
	}
	return w.Buf
}

// readProposal reads a record. It is one that value wrote.
func readProposal(number uint64, value []byte) (p Proposal) {
	p.Number = number
	copy(p.Hash[:], value)
	a := asked{Reader: store.NewReader(value[len(p.Hash):])}
	p.Over = a.Uint("a version", 1<<63)
	p.At.Position, p.At.Index, p.At.Time = a.Uint("a position", 1<<63), uint32(a.Uint("an index", 1<<32-1)), int64(a.Uint("a time", MaxTime))
	p.Bytes = a.Uint("a size", MaxProposal)
	p.Name = a.text("a name", catalog.MaxName)
	p.By, p.Reason, p.Metadata = a.text("who asks", MaxBy), a.text("the reason", MaxReason), a.text("the metadata", MaxMetadata)
	return p
}

// Proposals returns the catalogs that wait, the oldest first.
func Proposals(s State) (all []Proposal) {
	from := key{recordProposal}
	for k, value := range s.Records(from, from.after()) {
		all = append(all, readProposal(key(k).last(), value))
	}
	return all
}

// ProposalOf returns a catalog that waits, and its bytes.
func ProposalOf(s State, number uint64) (p Proposal, canonical []byte, ok bool) {
	value, ok := s.Record(proposalKey(number))
	if !ok {
		return p, nil, false
	}
	p = readProposal(number, value)
	p.all = proposedOf(s)
	canonical = make([]byte, 0, p.Bytes)
	for i := range p.pieces() {
		piece, _ := s.Record(pieceKey(number, i))
		canonical = append(canonical, piece...)
	}
	return p, canonical, true
}

// Approved returns the version that a proposal got that was approved last; 0: it was another one.
func Approved(s State, number uint64) (version uint64) {
	if p := proposedOf(s); number > 0 && p.approved == number {
		return p.version
	}
	return 0
}

// A Proposing is a catalog that somebody proposes.
type Proposing struct {
	Canonical []byte
	Name      string
	Note      Note
}

// NewProposing prepares the proposal of a catalog.
func NewProposing(c *catalog.Catalog, n Note) *Proposing {
	return &Proposing{Canonical: c.AppendCanonical(nil), Name: c.Name, Note: n}
}

// Refused returns the same proposal that waits already, or why there can be no such proposal: a
// *ConflictError, or a *format.LevelError.
func (c *Proposing) Refused(s State, t *Tables, level format.Level) (same *Proposal, err error) {
	if err := format.Allow(level, format.Word{Of: "command", Name: KindPropose.String()}); err != nil {
		return nil, err
	}
	hash, size := sha256.Sum256(c.Canonical), uint64(len(c.Canonical))
	all, sum := Proposals(s), size
	for i := range all {
		sum += all[i].Bytes
		if all[i].Hash == hash && all[i].Over == t.Version && all[i].By == c.Note.By {
			return &all[i], nil
		}
	}
	refuse := func(format string, args ...any) (*Proposal, error) {
		return nil, &ConflictError{Subject: "proposal", Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case t.Version == 0:
		return refuse("the realm has no catalog yet: the first one is applied, not proposed")
	case hash == t.Hash:
		return refuse("the catalog is in force already")
	case size > MaxProposal:
		return refuse("the catalog has %d bytes when compiled; at most %d can wait", size, MaxProposal)
	case len(all) >= MaxProposals:
		return refuse("%d wait already, the most that can: approve or withdraw one", len(all))
	case sum > MaxProposedBytes:
		return refuse("all that wait would have %d bytes, at most %d can: approve or withdraw one", sum, MaxProposedBytes)
	}
	return nil, nil
}

// Write writes the event at its place in the log. The proposal was not refused.
func (c *Proposing) Write(s State, t *Tables, at store.At, w *store.Writer) *Proposal {
	all := proposedOf(s)
	all.last++
	p := &Proposal{
		Number: all.last, Over: t.Version, At: at, Bytes: uint64(len(c.Canonical)), Hash: sha256.Sum256(c.Canonical), Name: c.Name, Note: c.Note,
	}
	w.Begin(uint8(KindPropose), "")
	w.BeginAsked()
	w.Uint(p.Number)
	c.Note.write(w)
	w.EndAsked()
	all.put(w)
	w.Put(proposalKey(p.Number), p.value())
	i := 0
	for piece := range slices.Chunk(c.Canonical, proposalPiece) {
		w.Put(pieceKey(p.Number, i), piece)
		i++
	}
	w.End()
	return p
}

// drop writes that a proposal waits no more.
func (p *Proposal) drop(w *store.Writer) {
	w.Drop(proposalKey(p.Number))
	for i := range p.pieces() {
		w.Drop(pieceKey(p.Number, i))
	}
}

// Withdraw writes the event that drops a proposal.
func (p *Proposal) Withdraw(n *Note, w *store.Writer) {
	w.Begin(uint8(KindWithdraw), "")
	w.BeginAsked()
	w.Uint(p.Number)
	n.write(w)
	w.EndAsked()
	p.drop(w)
	w.End()
}

// CheckApproval returns why a proposal cannot be approved, a *ConflictError, or nil. Two names must stand in
// the log, so a proposal by nobody, or its approval by nobody, is none.
func (p *Proposal) CheckApproval(t *Tables, by string) error {
	refuse := func(format string, args ...any) error {
		return &ConflictError{Subject: "proposal", Message: fmt.Sprintf("%d: ", p.Number) + fmt.Sprintf(format, args...)}
	}
	switch v := t.Version; {
	case p.By == "":
		return refuse("nobody says who proposed it: that takes a server with keys; propose the catalog again")
	case by == "":
		return refuse("nobody says who approves it: that takes a server with keys")
	case p.By == by:
		return refuse("%q has proposed it; somebody else must approve it", by)
	case v != p.Over:
		return refuse("it was made over version %d, and version %d is in force: propose the catalog again", p.Over, v)
	}
	return nil
}

// PrepareApproved gets a proposal of ProposalOf ready to be put in force, as Prepare does with a catalog.
func PrepareApproved(s Names, t *Tables, p *Proposal, c *catalog.Catalog, n *Note) (*Prepared, error) {
	all := p.all
	all.approved, all.version = p.Number, t.Version+1
	return prepare(s, t, c, 0, func(w *store.Writer) {
		w.Begin(uint8(KindApprove), "")
		w.BeginAsked()
		w.Uint(p.Number)
		writeText(w, p.By)
		writeText(w, p.Reason)
		n.write(w)
		w.EndAsked()
		all.put(w)
		p.drop(w)
	})
}

// Proposition is what an event says about a proposal.
type Proposition struct {
	Number   uint64
	By, Why  string // of an approval: who proposed it, and why
	Note     *Note  // who asked for the event, and why; may be nil
	Proposed *Proposing
}

// PropositionOf returns what an event about a proposal says: a propose, a withdraw or an approve.
func PropositionOf(ev *store.Event) (p Proposition, err error) {
	a := asked{Reader: store.NewReader(ev.Asked)}
	p.Number = a.Uint("the number of a proposal", 1<<63)
	if Kind(ev.Kind) == KindApprove {
		p.By, p.Why = a.text("who proposed it", MaxBy), a.text("why it was proposed", MaxReason)
	}
	p.Note = a.note()
	if a.More() {
		a.Fail("bytes after the note")
	}
	if err := a.Err(); err != nil || Kind(ev.Kind) != KindPropose {
		return p, err
	}
	p.Proposed = &Proposing{}
	if p.Note != nil {
		p.Proposed.Note = *p.Note
	}
	var e store.Effect
	effects := ev.Changes()
	for effects.Next(&e) {
		if e.Verb == store.Put && e.N > 0 && e.Bytes[0] == recordPiece {
			p.Proposed.Canonical = append(p.Proposed.Canonical, e.Bytes[e.N:]...)
		}
	}
	return p, effects.Err()
}

// Proposes reports whether events of a kind are about proposals: see PropositionOf.
func (k Kind) Proposes() bool { return k == KindPropose || k == KindWithdraw || k == KindApprove }
