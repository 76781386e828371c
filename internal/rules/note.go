package rules

import (
	"github.com/kuji-dev/kuji/internal/store"
)

// MaxMetadata bounds the metadata of a note, in bytes.
const MaxMetadata = 1 << 10

// A Note says who asked for something, and why. An event has it after the arguments, if there is one:
// three texts, each a varint and so many bytes. It changes nothing. A repeat of a request id must give
// the same reason and metadata; the key may be another.
type Note struct {
	By       string // the name of an API key; at most MaxBy bytes
	Reason   string // at most MaxReason bytes
	Metadata string // what the caller wants to find in the log; at most MaxMetadata bytes
}

// Check reports what is malformed in a note, or nil. The note may be nil.
func (n *Note) Check() *CommandError {
	switch {
	case n == nil:
	case len(n.By) > MaxBy:
		return malformed("by", "%d bytes long; at most %d are allowed", len(n.By), MaxBy)
	case len(n.Reason) > MaxReason:
		return malformed("reason", "%d bytes long; at most %d are allowed", len(n.Reason), MaxReason)
	case len(n.Metadata) > MaxMetadata:
		return malformed("metadata", "%d bytes long; at most %d are allowed", len(n.Metadata), MaxMetadata)
	}
	return nil
}

// write writes the note at the end of what is asked.
func (n *Note) write(w *store.Writer) {
	if n == nil || *n == (Note{}) {
		return
	}
	for _, text := range [...]string{n.By, n.Reason, n.Metadata} {
		writeText(w, text)
	}
}

// note reads what write wrote, nil if there is none.
func (a *asked) note() *Note {
	if !a.More() {
		return nil
	}
	n := &Note{By: a.text("who asks", MaxBy), Reason: a.text("the reason", MaxReason), Metadata: a.text("the metadata", MaxMetadata)}
	if *n == (Note{}) {
		a.Fail("a note that says nothing")
	}
	return n
}

// NoteOf returns the note of a catalog's event, nil if it has none.
func NoteOf(ev *store.Event) (*Note, error) {
	a := asked{Reader: store.NewReader(ev.Asked)}
	n := a.note()
	if a.More() {
		a.Fail("bytes after the note")
	}
	return n, a.Err()
}

// sameNote reports whether two notes give the same reason and metadata.
func sameNote(a, b *Note) bool {
	var x, y Note
	if a != nil {
		x = *a
	}
	if b != nil {
		y = *b
	}
	return x.Reason == y.Reason && x.Metadata == y.Metadata
}
