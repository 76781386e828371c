package driver

import (
	"context"
	"fmt"
)

// Shared is a Driver whose realms several processes may have open at a time. It has a board, by which
// they agree who writes which realm. Without that agreement nothing is wrong, but writers depose each other.
type Shared interface {
	Driver
	Board
}

// Board is what all nodes of a cluster share besides realms: at most MaxBoard bytes. Its updates have one
// order, which is the same for all nodes.
type Board interface {
	// Update replaces the board's content. change gets the newest content, or nil, and returns the next;
	// it keeps neither. It is called again if another node was faster. If both are equal, nothing is
	// written, and the content may have been replaced meanwhile. An error of change ends the update.
	//
	// After no error, the update is as durable as an entry of a log. After any other error than that of
	// change, it may have happened or may yet happen.
	Update(ctx context.Context, change func(old []byte) (data []byte, err error)) error
}

// MaxBoard is the most that a board holds, in bytes.
const MaxBoard = 512 << 10

// CheckBoard returns an error if data is too large for a board.
func CheckBoard(data []byte) error {
	if len(data) > MaxBoard {
		return fmt.Errorf("a board of %d bytes: want at most %d", len(data), MaxBoard)
	}
	return nil
}

// Volatile is a Driver that keeps nothing: its logs cannot be read again, and a realm that is closed is lost.
type Volatile interface{ Volatile() }

// Nudged is a Driver whose readers learn of new entries by asking for them from time to time. A node that
// tells the others what it appended spares them the waiting.
type Nudged interface {
	// OnAppend makes the driver call tell, which must return at once, after each append. Call it before
	// the first one.
	OnAppend(tell func(realm string, at Cursor))

	// Nudge tells the driver that another process's append was acknowledged. Whoever says so is believed.
	Nudge(realm string, at Cursor)
}

// Promiser is a Driver that does not decide alone what acknowledged entries survive.
type Promiser interface {
	// Promise returns what they survive now. It asks nobody.
	Promise() Promise
}

// Promise says what acknowledged entries survive.
type Promise struct {
	Survives Survives
	Why      string // the settings that it follows from, as text
}

// Survives is the worst that acknowledged entries survive.
type Survives int

// Each of these includes those before it.
const (
	SurvivesNothing Survives = iota // nobody knows what the settings are, or they promise nothing
	SurvivesServer                  // the end of the process that sent the entry
	SurvivesCrash                   // a crash of the machine that keeps the log
	SurvivesMachine                 // the loss of that machine
)

// String returns a word for it.
func (s Survives) String() string {
	return [...]string{"nothing", "server", "crash", "machine"}[min(max(s, 0), SurvivesMachine)]
}

// Witness is a Driver whose log can lose its end without a trace in what is left: a database that fails
// over to a copy which lags behind, for example. So processes remember outside it how far each log came,
// and tell each other. Whatever meets a log that falls short of a mark ends in a [CutError].
type Witness interface {
	// Mark returns the furthest mark that this process knows of a realm; false: it knows none.
	Mark(realm string) (Mark, bool)

	// Tell tells the driver a mark that another process knows.
	Tell(realm string, m Mark)

	// Cut returns how a realm's log falls short of what is known; nil: it does not.
	Cut(ctx context.Context, realm string) (*CutError, error)

	// AcceptCut gives up what a cut has lost, for all processes. They have closed the realm. It fails
	// if the log falls short in another way by now.
	AcceptCut(ctx context.Context, realm string, cut *CutError) error
}

// Mark says that an entry was durable. As an entry names the one before, it stands for the whole log so far.
type Mark struct {
	// Line counts the cuts that were accepted before. An accepted cut makes marks of earlier lines void
	// if they are above it.
	Line   uint64   `json:"line,omitempty"`
	Cursor Cursor   `json:"cursor"`
	Hash   [32]byte `json:"hash"` // of the entry there
}

// CutError is the error of an Open, an append or a read that meets a log which has lost entries.
type CutError struct {
	Realm string
	Last  Cursor // the last entry that is as it was: at most, if other entries stand in place of those lost
	Known Mark   // an entry that was durable, and is not there any more
}

func (e *CutError) Error() string {
	return fmt.Sprintf("the log of realm %s has lost entries: the one at %d was durable and is not there, and what is left may be as it was up to %d",
		e.Realm, e.Known.Cursor, e.Last)
}
