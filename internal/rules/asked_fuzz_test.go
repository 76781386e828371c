package rules_test

import (
	"bytes"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// FuzzAsked reads what any bytes of an event ask for. It never panics. A command that is read is the one that the
// event answers, and if it is not malformed, it says the same when it is read again from an event of its own.
func FuzzAsked(f *testing.F) {
	r := newRealm(f, 1)
	yaml, _ := randomCounters(seeded(1))
	r.put(yaml)
	pick := seeded(2)
	for n := range 400 {
		cmd := randomFact(pick, true)
		switch n % 4 {
		case 0:
			cmd = group(randomFact(pick, false), randomFact(pick, false), randomFact(pick, false))
		case 1:
			if cmd.Kind != rules.KindDraw {
				cmd.Note = &rules.Note{By: "ops", Reason: "a test", Metadata: "m"}
			}
		}
		if ev := r.doOnce(cmd); n < 60 {
			f.Add(bytes.Clone(ev.Raw))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var ev store.Event
		if n, err := store.Decode(raw, &ev); err != nil || n != len(raw) {
			return
		}
		cmd, failed, err := rules.CommandOf(r.state, &ev)
		if err != nil || cmd.Check() != nil {
			return
		}
		if failed < 0 || failed > len(cmd.Members) {
			t.Errorf("member %d of %d failed", failed, len(cmd.Members))
		}
		if same, err := rules.Same(r.state, &cmd, &ev); err != nil || !same {
			t.Errorf("%+v is not what its event asks for: %v", cmd, err)
		}
		status, again := rules.Refused, store.Event{}
		if cmd.Kind != rules.KindRedeem { // whose code no event says in full
			mine := &realm{t: t, state: r.state, rules: r.rules, now: r.now}
			status, again = mine.decide(&cmd, seededSource(3))
		}
		if status == rules.Refused {
			return
		}
		if was, _, err := rules.CommandOf(r.state, &again); err != nil || !equal(&cmd, &was) {
			t.Errorf("%+v is read again as %+v: %v", cmd, was, err)
		}
	})
}
