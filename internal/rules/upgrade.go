package rules

import (
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/store"
)

// Upgrade raises the format level of a realm: from now on its log may hold the words of that level,
// and builds that do not know these words refuse the log by name. An administrator has confirmed that
// there is no way back. A new realm gets its level with its first catalog: see [Prepare].
type Upgrade struct {
	To     format.Level
	By     string // who, at most MaxClockText bytes; may be empty
	Reason string // why, at most MaxClockText bytes; may be empty
}

// Check reports what is malformed, or nil.
func (u *Upgrade) Check() *CommandError {
	if u.To <= format.First || u.To > format.Newest {
		return malformed("level", "%d; want %d to %d", u.To, format.First+1, format.Newest)
	}
	return checkWho(u.By, u.Reason)
}

// Write writes the event to w. u must have passed Check.
func (u *Upgrade) Write(w *store.Writer) {
	w.Begin(uint8(KindUpgrade), "")
	w.BeginAsked()
	w.Text(u.By)
	w.Text(u.Reason)
	w.EndAsked()
	w.More(store.Level, uint64(u.To))
	w.End()
}

// UpgradeOf returns what an event that Write wrote says.
func UpgradeOf(ev *store.Event) (u Upgrade, err error) {
	r := store.NewReader(ev.Asked)
	if u.To, err = LevelOf(ev); err == nil {
		err = readWho(&r, &u.By, &u.Reason, u.Check)
	}
	return u, err
}

// Allow refuses a command that a realm of a format level does not have, with a *format.LevelError.
func (c *Command) Allow(l format.Level) error {
	if l >= format.Newest {
		return nil
	}
	for i := range c.Members {
		if err := c.Members[i].Allow(l); err != nil {
			return err
		}
	}
	return format.Allow(l, format.Word{Of: "command", Name: c.Kind.String()})
}

// LevelOf returns the format level that an event raises the realm to, 0 if it does not.
func LevelOf(ev *store.Event) (format.Level, error) {
	var e store.Effect
	effects := ev.Changes()
	for effects.Next(&e) {
		if e.Verb == store.Level {
			return format.Level(e.Value), nil
		}
	}
	return 0, effects.Err()
}
