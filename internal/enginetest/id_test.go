package enginetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestNewID: ids of one clock ascend with it, differ, and carry its time.
func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	last := ""
	for ms := int64(0); ms < 1<<48; ms = ms*3 + 1 {
		id := kuji.NewID(time.UnixMilli(ms))
		if got, ok := store.IDTime(id); !ok || got != ms || seen[id] || id < last {
			t.Fatalf("made at %d: %s carries %d, %v; the one before was %s", ms, id, got, ok, last)
		}
		seen[id], last = true, id
	}
	now := time.UnixMilli(1_800_000_000_000)
	for range 1000 {
		id := kuji.NewID(now)
		if seen[id] {
			t.Fatalf("%s twice", id)
		}
		seen[id] = true
	}
}

// ledger is the naive model of ids that carry their time: it forgets nothing.
type ledger struct {
	answers map[string]*answered
	order   []string // ids that were made, whether or not they were answered
}

type answered struct {
	made    int64
	arrived int64 // steady time
	res     kuji.Result
	aged    bool // it was older than the age in force once: it may be forgotten
	covered bool // answered while ids had to carry their time
}

// age marks what may be forgotten.
func (l *ledger) age(steady int64, age time.Duration) {
	for _, a := range l.answers {
		a.aged = a.aged || steady-a.arrived > age.Milliseconds()
	}
}

// floor returns the highest floor that there can be: behind every id that may be forgotten.
func (l *ledger) floor() (floor int64) {
	for _, a := range l.answers {
		if a.aged {
			floor = max(floor, a.made+1)
		}
	}
	return floor
}

// TestNoIDWinsTwice: clients with wrong clocks draw, repeat what they have asked soon and long after,
// and the realm takes snapshots, loses power, is opened again, gets other catalogs and has its clock
// set. No id that carries its time is carried out twice, though few are remembered. What is refused
// is refused for a reason.
func TestNoIDWinsTwice(t *testing.T) {
	refused := map[kuji.Code]int{}
	seen := map[kuji.Seen]int{}
	rapid.Check(t, func(rt *rapid.T) { noIDWinsTwice(rt, refused, seen) })
	if testing.Short() {
		return
	}
	for _, code := range []kuji.Code{kuji.CodeTooOld, kuji.CodeInvalid, kuji.CodeOverloaded} {
		if refused[code] < 50 {
			t.Errorf("only %d requests were refused as %v: the test is too small", refused[code], code)
		}
	}
	for _, s := range []kuji.Seen{kuji.NotSeen, kuji.Answered, kuji.MaybeForgotten} {
		if seen[s] < 50 {
			t.Errorf("only %d ids were %v: the test is too small", seen[s], s)
		}
	}
}

func noIDWinsTwice(t *rapid.T, refused map[kuji.Code]int, looked map[kuji.Seen]int) {
	pick := func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, what) }
	s, disk := newSteps(), vfs.NewMem()
	m := ledger{answers: map[string]*answered{}}
	var e *kuji.Engine
	var r *kuji.Realm
	open := func() {
		var err error
		if e, err = openWorld("data", worldOptions{FS: disk, Steps: s, Now: s.Now, SegmentSize: 4096, SnapshotEvery: -1}); err == nil {
			r, err = e.Realm("test")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if _, err := verifyIn(disk, "data", "test", nil); err != nil {
			t.Error(err)
		}
	}()
	open()
	timed, count, age, ahead := false, 0, time.Duration(0), time.Duration(0)
	version := 0
	apply := func() {
		version++
		timed, count, age = pick("form", 6) > 0, 1+pick("count", 12), time.Duration(1+pick("age", 5))*time.Minute
		ahead = time.Duration(10+pick("ahead", 20)) * time.Second
		form := "any"
		if timed {
			form = fmt.Sprintf("time-ordered, ahead: %v", ahead)
		}
		c, err := catalog.Parse(fmt.Appendf(nil, "name: v%d\nidempotency: {count: %d, age: %.0fm, ids: %s}\n%s", version, count, age.Minutes(), form, testCatalog))
		if err == nil {
			_, err = r.Apply(t.Context(), c)
		}
		if err != nil {
			t.Fatal(err)
		}
		m.age(s.now.UnixMilli(), age)
	}
	apply()
	request := func(id string) kuji.Request { return kuji.Draw{ID: id, Player: "ann", Pool: "free"} }
	for range rapid.IntRange(1, 200).Draw(t, "steps") {
		now := s.now.UnixMilli()
		switch pick("step", 20) {
		case 0, 1, 2, 3:
			s.now = s.now.Add(time.Duration(pick("seconds", 90)) * time.Second)
			continue
		case 4:
			s.now = s.now.Add(time.Duration(pick("minutes", 20)) * time.Minute)
			continue
		case 5:
			if _, err := r.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			continue
		case 6:
			disk = disk.CrashClone(vfs.Crash{})
			open()
			continue
		case 7:
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			open()
			continue
		case 8:
			if pick("another catalog", 3) == 0 {
				apply()
			}
			continue
		}
		id := ""
		if len(m.order) == 0 || pick("new", 2) == 0 {
			skew := []int{0, 0, 1, -1, 9, -30, 25, 45, -600, 7200}[pick("clock", 10)]
			id = kuji.NewID(s.now.Add(time.Duration(skew) * time.Second))
			m.order = append(m.order, id)
		} else {
			id = m.order[pick("again", len(m.order))]
		}
		made, _ := store.IDTime(id)
		first := m.answers[id]
		look, err := r.Result(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		before := r.Stats().Events
		m.age(now, age)
		res, err := r.Do(t.Context(), request(id))
		looked[look.Seen]++
		if (look.Seen == kuji.Answered) != res.Replayed {
			t.Fatalf("%s is %v, and answered %v, %v", id, look.Seen, res, err)
		}
		if look.Seen == kuji.NotSeen && first != nil && (timed && first.covered || !first.aged) {
			t.Fatalf("%s is said not to be seen, and was answered %v", id, first.res)
		}
		if look.Seen == kuji.MaybeForgotten && timed && made >= look.Before {
			t.Fatalf("%s was made at %d, may have been forgotten, and so may those from before %d", id, made, look.Before)
		}
		code := kuji.CodeOf(err)
		refused[code]++
		switch {
		case err == nil && res.Replayed:
			want := first.res
			want.Replayed = true
			if !reflect.DeepEqual(res, want) || !reflect.DeepEqual(look.Result, want) || look.Player != "ann" {
				t.Fatalf("%s again: %+v, looked up %+v, first %+v", id, res, look, first.res)
			}
		case err == nil:
			if first != nil && timed && first.covered {
				t.Fatalf("%s, made at %d and answered at %d, is carried out again at %d", id, made, first.arrived, now)
			}
			if first != nil && !first.aged {
				t.Fatalf("%s is carried out again at %d, after %d", id, now, first.arrived)
			}
			if timed && made > now+ahead.Milliseconds() {
				t.Fatalf("%s, made at %d, is accepted at %d", id, made, now)
			}
			m.answers[id] = &answered{made: made, arrived: now, res: res, covered: made <= now+time.Hour.Milliseconds()}
		case code == kuji.CodeTooOld:
			if !timed || made >= m.floor() {
				t.Fatalf("%s, made at %d, is refused as too old at %d; nothing as late as that can be forgotten: %v", id, made, now, err)
			}
			if look.Seen != kuji.MaybeForgotten {
				t.Fatalf("%s is refused as too old, and is said to be %v", id, look.Seen)
			}
		case code == kuji.CodeInvalid:
			if !timed || made <= now+ahead.Milliseconds() {
				t.Fatalf("%s, made at %d, is refused as too far ahead at %d: %v", id, made, now, err)
			}
		case code == kuji.CodeOverloaded:
			young := 0
			for _, a := range m.answers {
				if now-a.arrived <= age.Milliseconds() {
					young++
				}
			}
			if young < count {
				t.Fatalf("%s is refused at %d: %v", id, now, err)
			}
		default:
			t.Fatal(err)
		}
		if got := r.Stats().Events - before; got != 0 && (err != nil || res.Replayed) || got > 1 {
			t.Fatalf("%s: %v, %v logged %d events", id, res, err, got)
		}
	}
}
