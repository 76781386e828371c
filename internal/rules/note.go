package rules

import (
	"cmp"

	"github.com/kuji-dev/kuji/internal/store"
)

// MaxMetadata bounds the metadata of a note, in bytes.
const MaxMetadata = 1 << 10

// A Note says who asked for something, and why. It changes nothing. An event has it after the
// arguments, if there is one: three texts, each its length as a varint, then its bytes.
type Note struct {
	By       string // the name of an API key; at most MaxBy bytes
	Reason   string // at most MaxReason bytes
	Metadata string // what the caller wants to find in the log; at most MaxMetadata bytes
}

// Check reports what is malformed in a note, or nil. The note may be nil.
func (n *Note) Check() *CommandError {
	if n == nil {
		return nil
	}
	return cmp.Or(checkLength("by", n.By, MaxBy), checkLength("reason", n.Reason, MaxReason),
		checkLength("metadata", n.Metadata, MaxMetadata))
}

func (n *Note) write(w *store.Writer) {
	if n != nil {
		n.texts(w)
	}
}

func (n *Note) texts(w *store.Writer) {
	if *n == (Note{}) {
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
	n := &Note{a.text("who asks", MaxBy), a.text("the reason", MaxReason), a.text("the metadata", MaxMetadata)}
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

// asks returns what a repeat of a request id must have in its note too: all but the key.
func (n *Note) asks() Note {
	if n == nil {
		return Note{}
	}
	return Note{Reason: n.Reason, Metadata: n.Metadata}
}
