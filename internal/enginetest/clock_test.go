package enginetest

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestOddClocks: whatever the clock says, stamps never decrease, over restarts
// neither, limits hold, and the log verifies.
func TestOddClocks(t *testing.T) {
	c, err := catalog.Parse([]byte(`kuji: 1
items: {gem: {}}
pools:
  day: {limits: [{per: day, draws: 1}], entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
  week: {limits: [{per: week, draws: 1}], entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
  window: {limits: [{per: window, window: 1h, draws: 1}], entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	disk, now, last := vfs.NewMem(), int64(0), int64(0)
	for _, at := range []int64{-5, 1_700_000_000_000, 1_600_000_000_000, math.MinInt64, 1 << 43, 1<<44 - 1, 1 << 44, 1<<44 + 1, 1_700_000_000_000, 1 << 55, math.MaxInt64 / 1000} {
		now = at
		e, err := openWorld("data", worldOptions{FS: disk, Now: func() time.Time { return time.UnixMilli(now) }, Confirmed: time.UnixMilli(now)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Realm("a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for _, pool := range []string{"day", "week", "window"} {
			for i := range 3 { // the second and third are over the limit, whatever came before
				res, err := r.Do(t.Context(), kuji.Draw{Player: "ann", Pool: pool})
				if err != nil {
					t.Fatal(err)
				}
				if res.Receipt.Time < last {
					t.Errorf("clock at %d: stamp %d after %d", at, res.Receipt.Time, last)
				}
				if last = res.Receipt.Time; i > 0 && res.Status != kuji.LimitReached {
					t.Errorf("clock at %d, pool %s: %v", at, pool, res)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := verifyIn(disk, "data", "a", nil); err != nil {
			t.Fatalf("clock at %d: %v", at, err)
		}
	}
}

// machine is a world with a wall clock that somebody can set, and a monotonic clock that nobody can.
type machine struct {
	*steps
	disk *vfs.Mem
	set  time.Duration // how far the wall clock was set ahead
}

func newMachine() *machine { return &machine{steps: newSteps(), disk: vfs.NewMem()} }

func (m *machine) Now() time.Time { return m.now.Add(m.set) }

// passes lets time pass.
func (m *machine) passes(d time.Duration) { m.now = m.now.Add(d) }

// open opens the realm, and believes the clock up to a time that was confirmed.
func (m *machine) open(confirmed time.Time) (*kuji.Engine, *kuji.Realm, error) {
	e, err := openWorld("data", worldOptions{FS: m.disk, Steps: m, Now: m.Now, Confirmed: confirmed, SnapshotEvery: -1})
	if err != nil {
		return nil, nil, err
	}
	r, err := e.Realm("test")
	if err != nil {
		return nil, nil, errors.Join(err, e.Close())
	}
	return e, r, nil
}

const clockCatalog = `kuji: 1
idempotency: {count: 1048576, age: 1h}
items: {gem: {}}
pools:
  box: {entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
  day: {limits: [{per: day, draws: 2}], entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
  week: {limits: [{per: week, draws: 2}], entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
  window: {limits: [{per: window, window: 3h, draws: 2}], entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
  summer: {ends: 2027-06-01T00:00:00Z, entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}]}
`

// start opens the realm for the first time, with a catalog.
func (m *machine) start(t *testing.T) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	e, r, err := m.open(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(clockCatalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return e, r
}

// restart closes the engine and opens it again.
func (m *machine) restart(t *testing.T, e *kuji.Engine, confirmed time.Time) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, r, err := m.open(confirmed)
	if err != nil {
		t.Fatal(err)
	}
	return e, r
}

func wantStatus(t *testing.T, r *kuji.Realm, player, pool string, want kuji.Status) {
	t.Helper()
	if res := do(t, r, kuji.Draw{Player: player, Pool: pool}); res.Status != want {
		t.Errorf("a draw by %s from %s at %s: %v, want %v", player, pool, time.UnixMilli(res.Receipt.Time).UTC(), res, want)
	}
}

const year = 365 * 24 * time.Hour

// TestLeap: a clock that jumps while the realm is open is followed up to MaxLeap from where the
// monotonic clock expects it. Beyond, time goes on without it, and the realm says that it drifts.
func TestLeap(t *testing.T) {
	m := newMachine()
	e, r := m.start(t)
	stamp := func() time.Duration { // after the truth
		t.Helper()
		res := do(t, r, kuji.Draw{Player: "ann", Pool: "box"})
		return time.UnixMilli(res.Receipt.Time).Sub(m.now)
	}
	for _, tt := range []struct {
		set, want time.Duration
		drifts    bool
	}{
		{0, 0, false},
		{kuji.MaxLeap, kuji.MaxLeap, false},
		{kuji.MaxLeap + time.Millisecond, 0, true},
		{year, 0, true},
		{200 * year, 0, true},
		{-kuji.MaxLeap, -kuji.MaxLeap, false},
		{-kuji.MaxLeap - time.Millisecond, 0, true},
		{-year, 0, true},
		{0, 0, false},
	} {
		m.passes(3 * time.Hour) // so that no stamp stands still
		m.set = tt.set
		if got := stamp(); got != tt.want {
			t.Errorf("the clock is set by %v: stamps by %v, want %v", tt.set, got, tt.want)
		}
		if v := r.Stats().Clock; v.Drifts() != tt.drifts || v != r.Stats().Clock || tt.drifts && tt.set.Abs() < 2*year && v.Drift() != tt.set {
			t.Errorf("the clock is set by %v: it is said to drift by %v", tt.set, v.Drift())
		}
	}
	// Confirmed, it is followed at once, and over restarts.
	m.set = 90 * 24 * time.Hour
	set, err := r.SetClock(t.Context(), m.Now(), "ops", "the old time was wrong")
	if err != nil {
		t.Fatal(err)
	}
	if got := stamp(); got != m.set || set.To != m.Now().UnixMilli() || r.Stats().Clock.Drift() != 0 {
		t.Errorf("the clock was confirmed as %v ahead: %+v, stamps are by %v", m.set, set, got)
	}
	e, r = m.restart(t, e, time.Time{})
	if got := stamp(); got != m.set {
		t.Errorf("after a restart, stamps are by %v, want %v", got, m.set)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verifyIn(m.disk, "data", "test", nil); err != nil {
		t.Fatal(err)
	}
}

// TestLeapAtStart: a realm is not opened with a clock that is too far ahead of its log, unless that
// time is confirmed. Nothing is written meanwhile.
func TestLeapAtStart(t *testing.T) {
	m := newMachine()
	e, r := m.start(t)
	do(t, r, kuji.Draw{Player: "ann", Pool: "box"})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	m.passes(kuji.MaxDowntime)
	e, _, err := m.open(time.Time{})
	if err != nil {
		t.Fatalf("after %v: %v", kuji.MaxDowntime, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	m.passes(kuji.MaxDowntime + time.Millisecond) // since the epoch began: a realm without draws has times too
	used := m.disk.Used()
	for _, confirmed := range []time.Time{{}, m.Now().Add(-kuji.MaxLeap - time.Millisecond)} {
		_, _, err = m.open(confirmed)
		var typed *kuji.Error
		if !errors.As(err, &typed) || typed.Code != kuji.CodeClock || typed.Field != "ClockConfirmed" || !strings.Contains(err.Error(), m.Now().UTC().Format(time.RFC3339)) {
			t.Errorf("confirmed %v: %v, want %v", confirmed, err, kuji.CodeClock)
		}
	}
	if m.disk.Used() != used {
		t.Errorf("%d bytes were written", m.disk.Used()-used)
	}
	for _, confirmed := range []time.Time{m.Now().Add(-kuji.MaxLeap), m.Now().Add(year)} {
		e, r, err = m.open(confirmed)
		if err != nil {
			t.Fatalf("confirmed %v: %v", confirmed, err)
		}
		if res := do(t, r, kuji.Draw{Player: "ann", Pool: "box"}); res.Receipt.Time != m.Now().UnixMilli() {
			t.Errorf("stamped %d, want %d", res.Receipt.Time, m.Now().UnixMilli())
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		m.passes(2 * kuji.MaxDowntime)
	}
}

// TestClockBehindAtStart: while the clock is behind the log, stamps stand still. Once it has caught
// up, it is followed, as at a start, but not to a time at which the realm could not be opened.
func TestClockBehindAtStart(t *testing.T) {
	m := newMachine()
	e, r := m.start(t)
	last := do(t, r, kuji.Draw{Player: "ann", Pool: "box"}).Receipt.Time
	m.set = -50 * year // no battery
	_, r = m.restart(t, e, time.Time{})
	for _, tt := range []struct{ set, want time.Duration }{
		{-50 * year, 0}, {-time.Hour, 0}, {kuji.MaxDowntime + time.Millisecond, 0}, {10 * 24 * time.Hour, 10 * 24 * time.Hour}, {20 * 24 * time.Hour, 10 * 24 * time.Hour},
	} {
		m.set = tt.set
		res := do(t, r, kuji.Draw{Player: "ann", Pool: "box"})
		if got := time.Duration(res.Receipt.Time-last) * time.Millisecond; got != tt.want {
			t.Errorf("the clock is set by %v: stamps by %v, want %v", tt.set, got, tt.want)
		}
		if v := r.Stats().Clock; v.Drifts() != (tt.set != tt.want) {
			t.Errorf("the clock is set by %v: it is said to drift by %v", tt.set, v.Drift())
		}
	}
}

// TestSetClock: a realm whose time is a year ahead follows the machine's clock again. Pools start
// and end by it. Nobody gets more draws by that, limits end when they would have ended, and request
// ids are remembered for their age and not longer.
func TestSetClock(t *testing.T) {
	for _, name := range []string{"from the log", "from a snapshot"} {
		t.Run(name, func(t *testing.T) { testSetClock(t, name == "from a snapshot") })
	}
}

func testSetClock(t *testing.T, snapshots bool) {
	m := newMachine() // Friday, 2027-01-15 08:00 UTC
	e, _ := m.start(t)
	limited := []string{"day", "week", "window"}
	m.set = year
	e, r := m.restart(t, e, m.Now())
	first := do(t, r, kuji.Draw{ID: "first", Player: "ann", Pool: "box"})
	for _, pool := range limited {
		wantStatus(t, r, "ann", pool, kuji.OK)
		wantStatus(t, r, "ann", pool, kuji.OK)
		wantStatus(t, r, "bob", pool, kuji.OK)
	}
	wantStatus(t, r, "ann", "summer", kuji.Ended)
	m.set = 0
	e, r = m.restart(t, e, time.Time{})
	m.passes(time.Hour)
	stuck := do(t, r, kuji.Draw{Player: "ann", Pool: "box"})
	if v := r.Stats().Clock; stuck.Receipt.Time != first.Receipt.Time || !v.Drifts() || v.Drift() != time.Hour-year {
		t.Fatalf("stamped %d after %d; %+v: want a clock that stands still, and says so", stuck.Receipt.Time, first.Receipt.Time, v)
	}

	set, err := r.SetClock(t.Context(), m.Now().Add(-kuji.MaxLeap), "key ops", "the machine was a year ahead")
	if err != nil {
		t.Fatal(err)
	}
	if set.To != m.now.UnixMilli() || set.Receipt.Time != first.Receipt.Time || set.By != "key ops" || r.Stats().Clock != (kuji.ClockView{Wall: set.To, Time: set.To, Back: first.Receipt.Time - set.To}) {
		t.Fatalf("%+v, %+v", set, r.Stats().Clock)
	}
	again := func() {
		t.Helper()
		if snapshots {
			snapshot(t, r)
		}
		before, _, err := r.StateHash(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e, r = m.restart(t, e, time.Time{})
		if after, _, err := r.StateHash(t.Context()); err != nil || after != before {
			t.Fatalf("state %x became %x over a restart: %v", before, after, err)
		}
	}
	again()
	if now := do(t, r, kuji.Draw{Player: "ann", Pool: "box"}); now.Receipt.Time != set.To {
		t.Errorf("stamped %d, want %d", now.Receipt.Time, set.To)
	}
	wantStatus(t, r, "ann", "summer", kuji.OK)
	if res := do(t, r, kuji.Draw{ID: "first", Player: "ann", Pool: "box"}); !res.Replayed || res.Receipt != first.Receipt {
		t.Errorf("the first answer again: %+v, want %+v", res, first)
	}
	for _, pool := range limited {
		wantStatus(t, r, "ann", pool, kuji.LimitReached)
		wantStatus(t, r, "bob", pool, kuji.OK)
		wantStatus(t, r, "bob", pool, kuji.LimitReached)
		wantStatus(t, r, "cat", pool, kuji.OK)
	}
	again()
	m.passes(3*time.Hour - time.Millisecond)
	wantStatus(t, r, "ann", "window", kuji.LimitReached)
	m.passes(time.Millisecond)
	wantStatus(t, r, "ann", "window", kuji.OK)
	m.passes(12*time.Hour - time.Millisecond) // until midnight
	wantStatus(t, r, "ann", "day", kuji.LimitReached)
	m.passes(time.Millisecond)
	wantStatus(t, r, "ann", "day", kuji.OK)
	m.passes(2*24*time.Hour - time.Millisecond) // until Monday
	wantStatus(t, r, "ann", "week", kuji.LimitReached)
	m.passes(time.Millisecond)
	wantStatus(t, r, "ann", "week", kuji.OK)
	again()
	for m.set < year { // the false time comes, truly
		m.set += 20 * 24 * time.Hour
		e, r = m.restart(t, e, time.Time{})
	}
	m.set = year + time.Hour - 64*time.Hour
	again()
	for _, pool := range limited {
		wantStatus(t, r, "bob", pool, kuji.OK)
		wantStatus(t, r, "bob", pool, kuji.OK)
		wantStatus(t, r, "bob", pool, kuji.LimitReached)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var sets []kuji.ClockSet
	if _, err := verifyIn(m.disk, "data", "test", func(rec kuji.Record) {
		if rec.Kind == "clock" {
			sets = append(sets, *rec.Clock)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if want := (kuji.ClockSet{To: set.To, By: set.By, Reason: set.Reason}); len(sets) != 1 || sets[0] != want {
		t.Errorf("the log has %+v, want %+v", sets, want)
	}
}

// TestSetClockForgets: ids age again once the clock is set, by the age from then on.
func TestSetClockForgets(t *testing.T) {
	m := newMachine()
	_, r := m.start(t)
	c, err := catalog.Parse([]byte(strings.Replace(clockCatalog, "count: 1048576, age: 1h", "count: 2, age: 1h", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	m.set = year
	if _, err := r.SetClock(t.Context(), m.Now(), "", "wrongly"); err != nil {
		t.Fatal(err)
	}
	ask := func(id string, want kuji.Code) {
		t.Helper()
		if _, err := r.Do(t.Context(), kuji.Draw{ID: id, Player: "ann", Pool: "box"}); kuji.CodeOf(err) != want {
			t.Errorf("a draw with the id %s: %v, want code %v", id, err, want)
		}
	}
	ask("a", 0)
	ask("b", 0)
	ask("c", kuji.CodeOverloaded)
	m.set = 0
	if _, err := r.SetClock(t.Context(), m.Now(), "", "rightly"); err != nil {
		t.Fatal(err)
	}
	m.passes(time.Hour)
	ask("c", kuji.CodeOverloaded)
	if oldest := r.Stats().OldestRequestID; oldest != m.now.Add(year-time.Hour).UnixMilli() {
		t.Errorf("the oldest id is of %d", oldest)
	}
	m.passes(time.Millisecond)
	ask("c", 0)
}

// TestSetClockForward: a step forward lets that time pass at once, and that is all that it gives: one
// more window, day or week of draws a step, however often the clock goes forth and back.
func TestSetClockForward(t *testing.T) {
	m := newMachine() // Friday, 2027-01-15 08:00 UTC
	_, r := m.start(t)
	set := func(apart time.Duration) {
		t.Helper()
		m.set = apart
		if _, err := r.SetClock(t.Context(), m.Now(), "", "for a test"); err != nil {
			t.Fatal(err)
		}
	}
	draws := func() (n int) {
		t.Helper()
		for do(t, r, kuji.Draw{Player: "ann", Pool: "window"}).Status == kuji.OK {
			n++
		}
		return n
	}
	if n := draws(); n != 2 {
		t.Fatalf("%d draws, want 2 in 3 hours", n)
	}
	for _, step := range []struct {
		apart time.Duration
		want  int
	}{
		{2 * time.Hour, 0},                 // not yet a window ago
		{0, 0},                             // back: what was drawn stays drawn
		{time.Hour, 2},                     // forward by three hours in all: a window
		{0, 0},                             // back
		{0, 0},                             // again
		{3 * time.Hour, 2},                 // and a second one
		{-30 * time.Hour, 0},               // far back
		{-30*time.Hour + 5*time.Minute, 0}, // forward by less than a window
	} {
		set(step.apart)
		if n := draws(); n != step.want {
			t.Errorf("%v apart: %d draws, want %d", step.apart, n, step.want)
		}
	}
}

// TestSetClockIDs: ids of clocks that were ahead, once they are forgotten, make the realm refuse
// older ones. It says until when, and a catalog that takes any id is the way out.
func TestSetClockIDs(t *testing.T) {
	m := newMachine()
	_, r := m.start(t)
	apply := func(form string) {
		t.Helper()
		c, err := catalog.Parse([]byte(strings.Replace(clockCatalog, "count: 1048576, age: 1h", "count: 1, age: 1m, "+form, 1)))
		if err == nil {
			_, err = r.Apply(t.Context(), c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	apply("ids: time-ordered, ahead: 10s")
	draw := func(want kuji.Code) {
		t.Helper()
		if _, err := r.Do(t.Context(), kuji.Draw{ID: kuji.NewID(m.Now()), Player: "ann", Pool: "box"}); kuji.CodeOf(err) != want {
			t.Fatalf("a draw with an id of now: %v, want code %v", err, want)
		}
	}
	set := func(apart time.Duration) kuji.ClockSet {
		t.Helper()
		m.set = apart
		set, err := r.SetClock(t.Context(), m.Now(), "", "for a test")
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	const ahead = 40 * 24 * time.Hour
	if s := set(ahead); s.IDsFrom != 0 {
		t.Errorf("no id is forgotten, and ids must be from %d on", s.IDsFrom)
	}
	newest := m.Now().UnixMilli()
	draw(0)
	m.passes(2 * time.Minute)
	draw(0) // the first is forgotten
	s := set(0)
	v := r.Stats().Clock
	if s.IDsFrom != newest+1 || v.IDsFrom != s.IDsFrom || !v.RefusesIDs() || v.Drifts() || !strings.HasPrefix(v.String(), "refuses request ids until 2027-02-24") {
		t.Fatalf("%+v, %+v (%v): want ids from %d on, and that this is said", s, v, v, newest+1)
	}
	draw(kuji.CodeTooOld)
	apply("ids: any")
	if v := r.Stats().Clock; v.RefusesIDs() || v.String() != "good" {
		t.Errorf("any id is taken: %+v (%v)", v, v)
	}
	m.passes(2 * time.Minute)
	draw(0)
	apply("ids: time-ordered, ahead: 10s")
	m.passes(2 * time.Minute)
	draw(kuji.CodeTooOld)
	m.passes(ahead)
	draw(0)
	if v := r.Stats().Clock; v.RefusesIDs() {
		t.Errorf("that time has come: %+v", v)
	}
}

// TestSetClockRefused: what cannot be right is refused and not logged.
func TestSetClockRefused(t *testing.T) {
	m := newMachine()
	e, r := m.start(t)
	position := r.Stats().Position
	for _, tt := range []struct {
		at         time.Time
		by, reason string
		code       kuji.Code
		field      string
	}{
		{m.Now().Add(kuji.MaxLeap + time.Millisecond), "", "why", kuji.CodeConflict, "time"},
		{m.Now().Add(-kuji.MaxLeap - time.Millisecond), "", "why", kuji.CodeConflict, "time"},
		{m.Now(), "", "", kuji.CodeInvalid, "reason"},
		{m.Now(), "", strings.Repeat("x", 201), kuji.CodeInvalid, "reason"},
		{m.Now(), strings.Repeat("x", 201), "why", kuji.CodeInvalid, "by"},
		{m.Now(), "", "\xff", kuji.CodeInvalid, "reason"},
		{time.Time{}, "", "why", kuji.CodeInvalid, "time"},
		{time.UnixMilli(1 << 44), "", "why", kuji.CodeInvalid, "time"},
	} {
		_, err := r.SetClock(t.Context(), tt.at, tt.by, tt.reason)
		var typed *kuji.Error
		if !errors.As(err, &typed) || typed.Code != tt.code || typed.Field != tt.field {
			t.Errorf("%v by %q because %q: %v, want %v about %q", tt.at, tt.by, tt.reason, err, tt.code, tt.field)
		}
	}
	if now := r.Stats().Position; now != position {
		t.Errorf("position %d became %d", position, now)
	}
	// There is an end to setting it back, too.
	for i := range 5 {
		m.set = time.UnixMilli(1<<44 - 1).Sub(m.now)
		if _, err := r.SetClock(t.Context(), m.Now(), "", "wrongly"); err != nil {
			t.Fatal(err)
		}
		m.set = 0
		if _, err := r.SetClock(t.Context(), m.Now(), "", "rightly"); err != nil {
			if kuji.CodeOf(err) != kuji.CodeConflict || i < 3 {
				t.Errorf("time %d: %v", i, err)
			}
			break
		}
		wantStatus(t, r, "ann", "window", kuji.OK)
		m.passes(3 * time.Hour)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verifyIn(m.disk, "data", "test", nil); err != nil {
		t.Fatal(err)
	}
}

// TestSetClockEndsTheBatch: what is asked meanwhile waits for the next one, which has other stamps.
func TestSetClockEndsTheBatch(t *testing.T) {
	m := newMachine()
	e, r := m.start(t)
	m.set = year
	if _, err := r.SetClock(t.Context(), m.Now(), "", "wrongly"); err != nil {
		t.Fatal(err)
	}
	m.set = 0
	do(t, r, kuji.Draw{Player: "ann", Pool: "box"})
	var inside, after kuji.Result
	var refused error
	r.Submit(kuji.Draw{Player: "ann", Pool: "box"}, func(res kuji.Result, _ error) { inside = res })
	m.instead = func() { // while SetClock waits
		m.instead = nil
		r.Submit(kuji.Draw{Player: "ann", Pool: "box"}, func(_ kuji.Result, err error) { refused = err })
		results := make([]kuji.Result, 1)
		c, err := r.StartAll(t.Context(), []kuji.Request{kuji.Draw{Player: "ann", Pool: "box"}}, results)
		if err != nil {
			t.Error(err)
			return
		}
		after = results[0]
		if err := c.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	set, err := r.SetClock(t.Context(), m.Now(), "", "rightly")
	if err != nil {
		t.Fatal(err)
	}
	if kuji.CodeOf(refused) != kuji.CodeOverloaded {
		t.Errorf("Submit to a batch that has set the clock: %v, want %v", refused, kuji.CodeOverloaded)
	}
	if inside.Receipt.Position != set.Receipt.Position || after.Receipt.Position <= set.Receipt.Position || after.Receipt.Time != set.To {
		t.Errorf("before: %+v, set: %+v, after: %+v", inside.Receipt, set, after.Receipt)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verifyIn(m.disk, "data", "test", nil); err != nil {
		t.Fatal(err)
	}
}
