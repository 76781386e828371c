package rules

import (
	"cmp"

	"github.com/kuji-dev/kuji/internal/store"
)

// SetClock makes time stamps follow a machine's clock that showed To and that somebody has confirmed
// to be right. If the stamps so far are ahead of it, one effect sets them back. If they are late,
// they continue from To.
//
// The event keeps To, who confirmed it and why. It is the last one of its batch, so that every batch
// has one time stamp.
type SetClock struct {
	To     int64  // Unix milliseconds, at most MaxTime
	By     string // who, at most MaxClockText bytes; may be empty
	Reason string // at most MaxClockText bytes; not empty
}

// MaxClockText bounds who sets a clock and why, in bytes.
const MaxClockText = 200

// Check reports what is malformed, or nil.
func (c *SetClock) Check() *CommandError {
	switch {
	case c.To < 0 || c.To > MaxTime:
		return malformed("time", "%d; want Unix milliseconds, at most %d", c.To, int64(MaxTime))
	case c.Reason == "":
		return malformed("reason", "empty; want 1 to %d bytes", MaxClockText)
	}
	return checkWho(c.By, c.Reason)
}

// checkWho checks who does something to a realm, and why.
func checkWho(by, reason string) *CommandError {
	return cmp.Or(checkLength("by", by, MaxClockText), checkLength("reason", reason, MaxClockText))
}

// readWho reads the last arguments of an event, who did something to a realm and why. Then it checks
// all that the event says.
func readWho(r *store.Reader, by, reason *string, check func() *CommandError) error {
	*by = string(r.Bytes("who asked", uint64(r.Byte("who asked"))))
	*reason = string(r.Bytes("the reason", uint64(r.Byte("the reason"))))
	if r.More() {
		r.Fail("bytes after the arguments")
	}
	if err := r.Err(); err != nil {
		return err
	}
	if bad := check(); bad != nil {
		return bad
	}
	return nil
}

// Back returns how far the clock goes back for a batch with this time stamp, 0 if it does not.
func (c *SetClock) Back(now int64) int64 { return max(now-c.To, 0) }

// Write writes the event for a batch with this time stamp to w. c must have passed Check.
func (c *SetClock) Write(w *store.Writer, now int64) {
	w.Begin(uint8(KindClock), "")
	w.BeginAsked()
	w.Uint(uint64(c.To))
	w.Text(c.By)
	w.Text(c.Reason)
	w.EndAsked()
	if back := c.Back(now); back > 0 {
		w.More(store.Clock)
		w.Uint(uint64(back))
	}
	w.End()
}

// SetClockOf returns what an event that Write wrote says.
func SetClockOf(ev *store.Event) (c SetClock, err error) {
	r := store.NewReader(ev.Asked)
	c.To = int64(r.Uint("a time", MaxTime))
	err = readWho(&r, &c.By, &c.Reason, c.Check)
	return c, err
}
