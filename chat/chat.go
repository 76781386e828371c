// Package chat turns messages of a chat into commands of a realm. It finds the player who wrote a message, counts
// that they were there, finds the phrases that start something, and sends what those start as one batch.
//
//	config, err := chat.Parse(yaml)
//	h, err := chat.New(realm, *config)
//	reply, err := h.Handle(ctx, chat.Message{Platform: "twitch", User: "1234", Name: "Ann", Text: "!search", ID: id, At: sent})
//
// What a message starts is carried out once, however often the message comes: its request ids are made of the
// message's id. That somebody was there is gathered, and logged once a second without ids.
//
// A connection to a platform, a text for viewers, and a rule of rewards may not enter this package. What it keeps
// is lost when the process ends, and all of it has limits.
package chat

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kuji-dev/kuji"
)

// Realm is what carries out commands: a [kuji.Realm], or whatever sends them to one.
type Realm interface {
	DoAll(ctx context.Context, reqs []kuji.Request) ([]kuji.Result, error)
}

// Limits of a message.
const (
	// MaxText is how much of a message's text is read, in bytes. The rest of a longer one is not looked at.
	MaxText = 16 << 10
	// MaxMessageID is the longest id of a message, in bytes.
	MaxMessageID = 256
	// MaxPlatform is the longest name of a platform, in bytes.
	MaxPlatform = 32
)

// Message is what somebody wrote.
type Message struct {
	Platform string // letters, digits, "_" and "-", such as twitch
	User     string // the platform's id of the user, never a name: names change hands
	Name     string // the name that is shown; the log keeps it when the player is registered, and nothing depends on it
	Text     string
	ID       string // the platform's id of the message: the same however often the message comes
	// At is when the platform says that the message was sent, the same however often it comes. Zero: it does not say.
	// Then cooldowns go by Config.Now, and a realm with ids that carry their time cannot be used.
	At time.Time
}

// Reply is what became of a message.
type Reply struct {
	Player string  // the player's id in the realm, as in twitch:1234
	Found  []Found // the triggers whose phrases were found, by priority; nil: none
}

// Found is a trigger whose phrase was found in a message.
type Found struct {
	Trigger string
	Phrase  string // as the configuration has it
	State   State
	Ready   time.Time // with Cooling: when the trigger can be started again
	Word    string    // with Unclear: the name of the word that is missing or cannot stand there
	// Results has what became of each action of the trigger, in order. With the status Refused, Err says why; with
	// kuji.CodeOverloaded the message can be sent again later.
	Results []kuji.Result
}

// State says what became of a trigger that was found.
type State uint8

const (
	Started State = iota // its actions were carried out: see Found.Results
	Cooling              // it was started a short time ago
	Unclear              // the words after the phrase are not those that it takes
)

// String returns "started", "cooling" or "unclear".
func (s State) String() string {
	if int(s) < len(states) {
		return states[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

var states = [...]string{"started", "cooling", "unclear"}

// check returns what is wrong with a message, or nil.
func (m *Message) check() error {
	switch {
	case len(m.Platform) == 0 || len(m.Platform) > MaxPlatform || !plainName(m.Platform):
		return invalid("platform", "%q; want 1 to %d letters, digits, _ and -", m.Platform, MaxPlatform)
	case m.User == "":
		return invalid("user", "it is missing; want the platform's id of the user")
	case len(m.Platform)+1+len(m.User) > kuji.MaxID:
		return invalid("user", "%q and the platform have %d bytes; want at most %d with a colon between", m.User, len(m.Platform)+len(m.User), kuji.MaxID)
	case !printable(m.User):
		return invalid("user", "%q; want UTF-8 without control characters", m.User)
	case m.ID == "" || len(m.ID) > MaxMessageID:
		return invalid("id", "%d bytes; want the platform's id of the message, of 1 to %d bytes", len(m.ID), MaxMessageID)
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return &kuji.Error{Code: kuji.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

func plainName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !wordByte(c) && !('A' <= c && c <= 'Z') && c != '-' {
			return false
		}
	}
	return true
}

func printable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
		}
	}
	return true
}

// cut returns at most so many bytes of a text, whole characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
