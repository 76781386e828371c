package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
)

// quiet is a log that nobody reads.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

var errEnd = errors.New("the feed of the test has ended")

// feedOf makes the events of a log of n positions, as many messages of the feed bring them.
func feedOf(seed uint64, n int) (steps []Step, all []kuji.Record) {
	r := rand.New(rand.NewPCG(seed, 0))
	for pos := uint64(1); pos <= uint64(n); pos++ {
		var step Step
		size := 1 + r.IntN(1+r.IntN(6))
		for i := range size {
			rec := kuji.Record{Position: pos, Index: i, Last: i == size-1, Time: int64(pos) * 1000, Kind: "draw", ID: fmt.Sprintf("%d-%d", pos, i), Player: fmt.Sprint("p", r.IntN(9)), Bytes: 50}
			all = append(all, rec)
			step.Events = append(step.Events, rec)
			step.Next = pos
			if rec.Last {
				step.Next++
			}
			if r.IntN(4) == 0 || rec.Last {
				steps = append(steps, step)
				step = Step{}
			}
		}
		if r.IntN(5) == 0 {
			steps = append(steps, Step{Next: pos + 1}) // a sign of life
		}
	}
	return steps, all
}

// sourceOf brings the steps, from a position on, and ends with errEnd.
func sourceOf(steps []Step) Source {
	return func(_ context.Context, from uint64) iter.Seq2[Step, error] {
		return func(yield func(Step, error) bool) {
			for _, s := range steps {
				s.Events = slices.DeleteFunc(slices.Clone(s.Events), func(e kuji.Record) bool { return e.Position < from })
				if (len(s.Events) > 0 || s.Next > from) && !yield(s, nil) {
					return
				}
			}
			yield(Step{}, errEnd)
		}
	}
}

// wantAll checks that all events came in order, and each again at most after what came before it did.
func wantAll(t *testing.T, got, want []kuji.Record) {
	t.Helper()
	next := 0
	for i, e := range got {
		switch {
		case next < len(want) && e.ID == want[next].ID:
			next++
		case next > 0 && !placeOf(&want[next-1]).before(placeOf(&e)): // again
		default:
			t.Fatalf("event %d is %s; after %d events", i, e.ID, next)
		}
	}
	if next != len(want) {
		t.Fatalf("%d events came, want %d", next, len(want))
	}
}

// memoryTarget keeps what it gets. Each delivery fails that fail says.
type memoryTarget struct {
	at   Place
	got  []kuji.Record
	most int // events in a batch
	fail func() bool
}

func (m *memoryTarget) Place(context.Context) (Place, error) { return m.at, nil }

func (m *memoryTarget) Deliver(_ context.Context, b *Batch) error {
	if b.From != m.at && m.at != (Place{}) {
		return fmt.Errorf("a batch from %v; the target stands at %v", b.From, m.at)
	}
	m.most = max(m.most, len(b.Events))
	m.got = append(m.got, b.Events...)
	if m.fail() { // delivered, and not noted
		return io.ErrUnexpectedEOF
	}
	m.at = b.To
	return nil
}

// TestRun: whenever a target fails, and however the feed was cut into messages, the next run goes on
// where it stands, and all events come in order.
func TestRun(t *testing.T) {
	for seed := range uint64(50) {
		steps, all := feedOf(seed, 100)
		r := rand.New(rand.NewPCG(seed, 1))
		m := &memoryTarget{fail: func() bool { return r.IntN(4) == 0 }}
		var err error
		for !errors.Is(err, errEnd) {
			_, err = Run(t.Context(), sourceOf(steps), m, 1, quiet)
			if err == nil || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errEnd) {
				t.Fatal(err)
			}
		}
		wantAll(t, m.got, all)
		if want := (Place{Position: 101}); m.at != want {
			t.Fatalf("the target stands at %v, want %v", m.at, want)
		}
	}
}

// TestFirst: a target that has nothing begins where it is told, and one that stands somewhere does not.
func TestFirst(t *testing.T) {
	steps, all := feedOf(1, 50)
	for _, c := range []struct {
		at    Place
		first uint64
		want  Place
	}{{Place{}, 0, Place{1, 0}}, {Place{}, 20, Place{20, 0}}, {Place{30, 0}, 20, Place{30, 0}}} {
		m := &memoryTarget{at: c.at, fail: func() bool { return false }}
		if _, err := Run(t.Context(), sourceOf(steps), m, c.first, quiet); !errors.Is(err, errEnd) {
			t.Fatal(err)
		}
		at := slices.IndexFunc(all, func(e kuji.Record) bool { return !placeOf(&e).before(c.want) })
		wantAll(t, m.got, all[at:])
	}
}

// TestBounds: however far a target is behind, no batch grows beyond its bounds, and what is read ahead
// is one batch.
func TestBounds(t *testing.T) {
	read := 0
	source := func(context.Context, uint64) iter.Seq2[Step, error] {
		return func(yield func(Step, error) bool) {
			for pos := uint64(1); ; pos++ {
				read++
				if !yield(Step{[]kuji.Record{{Position: pos, Last: true, Bytes: 1 << 10}}, pos + 1}, nil) {
					return
				}
			}
		}
	}
	m := &memoryTarget{fail: func() bool { return false }}
	ctx, cancel := context.WithCancel(t.Context())
	m.fail = func() bool {
		if len(m.got) > 10*maxBatch {
			cancel()
		}
		return false
	}
	if _, err := Run(ctx, source, m, 1, quiet); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if m.most > maxBatch {
		t.Errorf("a batch of %d events, want at most %d", m.most, maxBatch)
	}
	if ahead := read - len(m.got); ahead > 2*maxBatch+2 {
		t.Errorf("%d events were read ahead, want at most %d", ahead, 2*maxBatch+2)
	}
}

// TestOtherFeed: a target of another feed is refused, and says of which.
func TestOtherFeed(t *testing.T) {
	err := Feed{Realm: "a", Player: "ann"}.check(Feed{Realm: "b"}, "the file x")
	if kuji.CodeOf(err) != kuji.CodeConflict || !strings.Contains(err.Error(), `the file x is that of the feed {"realm":"b"}, want {"realm":"a","player":"ann"}`) {
		t.Error(err)
	}
	if err := (Feed{Realm: "a"}).check(Feed{Realm: "a"}, "x"); err != nil {
		t.Error(err)
	}
}
