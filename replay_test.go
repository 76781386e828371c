package kuji

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// batchesOf writes a log of some stretches and returns its batches: many small
// ones, some that fill a part of a stretch, and one of several stretches.
func batchesOf(t *testing.T) []replayed {
	t.Helper()
	batches := batchesOfSizes(t, 1, 1, 1, 300, 1, 1000, 1, 1, 5000, 1, 2, 900, 900, 900, 1)
	largest := 0
	for i := range batches {
		largest = max(largest, len(batches[i].payload))
	}
	if largest < 2*stretchBytes {
		t.Fatalf("the largest batch has %d bytes, want more than two stretches of %d", largest, stretchBytes)
	}
	return batches
}

// batchesOfSizes writes a log of batches of so many events and returns them.
func batchesOfSizes(t *testing.T, sizes ...int) []replayed {
	t.Helper()
	disk := vfs.NewMem()
	e, err := Open("data", Options{FS: disk, SnapshotEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte("kuji: 1\nitems: {gem: {kind: currency}}\npools: {p: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, size := range sizes {
		reqs := make([]Request, size)
		for i := range reqs {
			n++
			player := fmt.Sprint("p", n*7919%3000)
			if reqs[i] = (Draw{ID: fmt.Sprintf("%040d", n), Player: player, Pool: "p"}); n%5 == 0 {
				reqs[i] = Grant{Player: player, Items: []Stack{{Item: "gem", Quantity: 3}}}
			}
		}
		if _, err := r.DoAll(t.Context(), reqs); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := openWALReadOnly(disk, "data/realms/test/log")
	if err != nil {
		t.Fatal(err)
	}
	var batches []replayed
	for e, err := range replay(log.Entries, "test", nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if e.kind == entryBatch {
			e.payload = slices.Clone(e.payload)
			batches = append(batches, e)
		}
	}
	return batches
}

// reference applies batches one event after the other.
func reference(batches []replayed) (*economy.State, error) {
	s := economy.New()
	for i := range batches {
		e := &batches[i]
		for le, err := range e.events() {
			if err != nil {
				return s, err
			}
			if err := s.Apply(le.event, le.raw, le.at); err != nil {
				return s, e.corrupt(err)
			}
		}
	}
	return s, nil
}

// taken applies batches as recovery does; after them comes an error of the log, if any.
func taken(batches []replayed, single bool, end error) (*economy.State, error) {
	in := intake{realm: "test", state: economy.New(), single: single}
	return in.state, in.run(func() error {
		for i := range batches {
			if err := in.batch(&batches[i]); err != nil {
				return err
			}
		}
		return end
	})
}

// TestIntake: batches that two goroutines take in, or one, give the state that
// they give one event after the other, or the same error: the first in the order of the log.
func TestIntake(t *testing.T) {
	batches := batchesOf(t)
	r := rand.New(rand.NewPCG(1, 1))
	kinds := map[string]int{}
	for trial := range 300 {
		bad := slices.Clone(batches)
		for range min(trial, 1+r.IntN(3)) { // the first is as it was
			e := &bad[r.IntN(len(bad))]
			e.payload = slices.Clone(e.payload)
			switch at := r.IntN(len(e.payload)); r.IntN(4) {
			case 0:
				e.payload = e.payload[:at]
			case 1: // somebody else, something else, or nothing that can be read
				e.payload[at] ^= 1 << r.IntN(8)
			case 2:
				e.payload = append(e.payload, 0)
			case 3: // a batch a second time
				e.payload = bad[r.IntN(len(bad))].payload
			}
		}
		want, wantErr := reference(bad)
		for _, single := range []bool{false, true} {
			for _, end := range []error{nil, fmt.Errorf("the log's own")} {
				got, err := taken(bad, single, end)
				if wantErr == nil && end != nil {
					if err != end {
						t.Fatalf("trial %d, single %v: %v, want %v", trial, single, err, end)
					}
				} else if fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("trial %d, single %v:\n%v, event by event\n%v", trial, single, err, wantErr)
				}
				if err == nil && got.Hash() != want.Hash() {
					t.Fatalf("trial %d, single %v: another state than event by event", trial, single)
				}
			}
		}
		for _, kind := range []string{"a second time", "is not new", "event format", "bytes after the last", "<nil>"} {
			if strings.Contains(fmt.Sprint(wantErr), kind) {
				kinds[kind]++
			}
		}
	}
	if len(kinds) < 5 {
		t.Errorf("all trials gave only %v", kinds)
	}
}

// TestIntakePanic: a panic of the applier or of the rememberer is one of the opener.
func TestIntakePanic(t *testing.T) {
	for name, spoil := range map[string]func(in *intake, s *stretch){
		"applier":    func(in *intake, s *stretch) { s.group = nil },
		"rememberer": func(in *intake, s *stretch) { close(in.free) }, // to which it gives the stretch
	} {
		t.Run(name, func(t *testing.T) {
			in := intake{realm: "test", state: economy.New()}
			in.start()
			defer func() {
				if recover() == nil {
					t.Error("a panic beside the opener was lost")
				}
			}()
			err := in.run(func() error {
				s, err := in.room(1)
				if err != nil {
					return err
				}
				spoil(&in, s)
				_, err = in.next()
				return err
			})
			t.Fatalf("went on after a panic: %v", err)
		})
	}
}

// TestIntakeSettles: in a log so long that what it says is new is looked at several times,
// the first event that does not fit is named, where it stands.
func TestIntakeSettles(t *testing.T) {
	batches := batchesOfSizes(t, slices.Repeat([]int{1400}, 30)...)
	r := rand.New(rand.NewPCG(1, 2))
	intake := func(batches []replayed, single bool) (*economy.State, error) {
		in := intake{realm: "test", state: economy.New(), every: 9000, single: single}
		return in.state, in.run(func() error {
			for i := range batches {
				if err := in.batch(&batches[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	kinds := map[string]int{}
	for trial := range 24 {
		bad := slices.Clone(batches)
		for range min(trial, 1+r.IntN(2)) { // the first is as it was
			// An event of one batch, in the place of the last of another.
			from, to := &bad[1+r.IntN(len(bad)-1)], &bad[2+r.IntN(len(bad)-2)]
			n := r.IntN(1400)
			if trial%2 == 0 { // a grant, to somebody who is new
				from, n = &bad[1+r.IntN(2)], n/5*5+4
			}
			instead, at := eventAt(t, from, n), 1399
			if trial%3 == 0 { // and behind it one of a player who does not exist, which is noticed at once
				instead, at = economy.AppendEvent(instead, &economy.Event{Kind: economy.KindGrant, Player: economy.Ref{Known: true, Num: 1 << 20}, Items: []economy.ItemRef{{Ref: economy.Ref{Known: true}, Quantity: 1}}}), 1398
			}
			size := 0
			for ; at < 1400; at++ {
				size += len(eventAt(t, to, at))
			}
			to.payload = append(slices.Clone(to.payload[:len(to.payload)-size]), instead...)
		}
		want, wantErr := reference(bad)
		for _, single := range []bool{false, true} {
			got, err := intake(bad, single)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("trial %d:\n%v, event by event\n%v", trial, err, wantErr)
			}
			if err == nil && got.Hash() != want.Hash() {
				t.Fatalf("trial %d: another state than event by event", trial)
			}
		}
		for _, kind := range []string{"a second time", "is not new", "<nil>"} {
			if strings.Contains(fmt.Sprint(wantErr), kind) {
				kinds[kind]++
			}
		}
	}
	if len(kinds) < 3 {
		t.Errorf("all trials gave only %v", kinds)
	}
}

// eventAt returns the bytes of one event of a batch.
func eventAt(t *testing.T, e *replayed, n int) []byte {
	t.Helper()
	i := 0
	for le, err := range e.events() {
		if err != nil {
			t.Fatal(err)
		}
		if i == n {
			return slices.Clone(le.raw)
		}
		i++
	}
	t.Fatalf("a batch of %d events has no number %d", i, n)
	return nil
}

// TestIntakeStopsAtAClash: behind a player who was said to be new and was not, whose number
// leads to nobody, nothing is applied.
func TestIntakeStopsAtAClash(t *testing.T) {
	var yaml strings.Builder
	yaml.WriteString("kuji: 1\nitems:\n")
	var items []economy.ItemRef
	for i := range 60 {
		fmt.Fprintf(&yaml, "  item%d: {}\n", i)
		items = append(items, economy.ItemRef{Ref: economy.Ref{Known: true, Num: uint32(i)}, Quantity: 1})
	}
	c, err := catalog.Parse([]byte(yaml.String()))
	if err != nil {
		t.Fatal(err)
	}
	grant := func(to economy.Ref, n int) economy.Event {
		return economy.Event{Kind: economy.KindGrant, Player: to, Items: items[:n]}
	}
	in := intake{realm: "test", state: economy.New(), every: 1}
	err = in.run(func() error {
		for i, ev := range []economy.Event{
			{Kind: economy.KindCatalog, Catalog: c.AppendCanonical(nil)},
			grant(economy.Ref{ID: "ann"}, 1),
			grant(economy.Ref{ID: "ann"}, 1),
		} {
			if err := in.batch(batchOf(uint64(i+1), 1, ev)); err != nil {
				return err
			}
		}
		if _, err := in.next(); err != nil {
			return err
		}
		return in.batch(batchOf(4, 1, grant(economy.Ref{Known: true, Num: 1}, len(items)))) // which moves a player
	})
	if err == nil || !strings.Contains(err.Error(), "is not new") {
		t.Errorf("%v, want that ann is not new", err)
	}
}

// batchOf returns a batch at a position, of some time.
func batchOf(position uint64, time int64, events ...economy.Event) *replayed {
	payload := binary.LittleEndian.AppendUint64(nil, uint64(time))
	payload = binary.LittleEndian.AppendUint32(payload, uint32(len(events)))
	for i := range events {
		payload = economy.AppendEvent(payload, &events[i])
	}
	e := &replayed{envelope: envelope{kind: entryBatch, realm: "test", index: position}, offset: 1000 * position}
	e.payload = payload
	return e
}

// grantWith returns a grant of a gem to a player who exists.
func grantWith(id string) economy.Event {
	return economy.Event{Kind: economy.KindGrant, ID: id, Player: economy.Ref{Known: true}, Items: []economy.ItemRef{{Ref: economy.Ref{Known: true}, Quantity: 1}}}
}

// TestIntakeIDAgain: a request id that is there twice is named where it stands, however
// much of the log comes behind, and also when ids are forgotten there.
func TestIntakeIDAgain(t *testing.T) {
	c, err := catalog.Parse([]byte("{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: a, weight: 1, reward: nothing}]}}, idempotency: {count: 1, age: 1m}}"))
	if err != nil {
		t.Fatal(err)
	}
	// So many events that the stretches together have fewer: see settleEvery.
	const every, size = 7000, stretches * stretchBytes / 7000
	for name, later := range map[string]int64{"all are kept": 0, "others are forgotten": c.Idempotency.Age.Milliseconds() + 1} {
		t.Run(name, func(t *testing.T) {
			first := grantWith("")
			first.Player = economy.Ref{ID: "ann"}
			log := []replayed{*batchOf(1, 1, economy.Event{Kind: economy.KindCatalog, Catalog: c.AppendCanonical(nil)}, first)}
			for i := uint64(2); i < 4*every; i++ {
				id, time := fmt.Sprintf("%0*d", size, i), int64(1)
				switch {
				case i == 12:
					id = fmt.Sprintf("%0*d", size, 3)
				case i > 12:
					time += later
				}
				log = append(log, *batchOf(i, time, grantWith(id)))
			}
			_, want := reference(log)
			if want == nil || !strings.Contains(want.Error(), "a second time") {
				t.Fatal(want)
			}
			for _, single := range []bool{false, true} {
				in := intake{realm: "test", state: economy.New(), every: every, single: single}
				err := in.run(func() error {
					for i := range log {
						if err := in.batch(&log[i]); err != nil {
							return err
						}
					}
					return nil
				})
				if fmt.Sprint(err) != want.Error() {
					t.Errorf("single %v: %v, want\n%v", single, err, want)
				}
			}
		})
	}
}

// TestIntakeLetsGo: of a batch that is larger than a stretch nothing is kept once it was
// applied.
func TestIntakeLetsGo(t *testing.T) {
	c, err := catalog.Parse([]byte("{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}]}}}"))
	if err != nil {
		t.Fatal(err)
	}
	ann := economy.Event{Kind: economy.KindGrant, Player: economy.Ref{ID: "ann"}, Items: grantWith("").Items}
	draw := economy.AppendEvent(nil, &economy.Event{Kind: economy.KindDraw, Player: economy.Ref{Known: true}, Pool: economy.Ref{Known: true}, Count: 1, Choices: []economy.Choice{{}}})
	large := batchOf(2, 1, grantWith("these bytes")) // and behind it many draws
	const draws = 1 << 20
	large.payload = append(large.payload, bytes.Repeat(draw, draws)...)
	binary.LittleEndian.PutUint32(large.payload[8:], 1+draws)
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	in := intake{realm: "test", state: economy.New(), single: true}
	err = in.run(func() error {
		if err := in.batch(batchOf(1, 1, economy.Event{Kind: economy.KindCatalog, Catalog: c.AppendCanonical(nil)}, ann)); err != nil {
			return err
		}
		if err := in.batch(large); err != nil {
			return err
		}
		if _, err := in.next(); err != nil {
			return err
		}
		before := heap()
		if in.open.group = nil; heap() < before-len(large.payload)/2 {
			t.Errorf("%d bytes are kept behind a batch of %d", before-heap(), len(large.payload))
		}
		in.open = nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(large)
}
