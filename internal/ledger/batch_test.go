package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/ledger"
)

// notes is an Owner that writes down what it is told.
type notes struct {
	mu    sync.Mutex
	taken uint64 // the position of the newest batch that is written
	kept  uint64 // of the newest one that is durable
	lost  error
	wrong []string
}

func (o *notes) Taken(b *ledger.Batch) {
	if b.Position != o.taken+1 && o.taken != 0 || b.Events == 0 {
		o.wrong = append(o.wrong, fmt.Sprintf("batch %d of %d events is taken after %d", b.Position, b.Events, o.taken))
	}
	o.taken = b.Position
}

func (o *notes) Ready() {}

func (o *notes) Durable(b *ledger.Batch) {
	if b.Position != o.taken || o.lost != nil {
		o.wrong = append(o.wrong, fmt.Sprintf("batch %d is durable, %d was taken, lost: %v", b.Position, o.taken, o.lost))
	}
	o.kept = b.Position
}

func (o *notes) Lost(b *ledger.Batch, cause error) error {
	if o.lost != nil {
		o.wrong = append(o.wrong, fmt.Sprintf("batch %d is lost too", b.Position))
	}
	o.lost = fmt.Errorf("nobody knows what became of batch %d: %w", b.Position, cause)
	return o.lost
}

// calls are callbacks that wait for a batch.
type calls []func(error)

func (c *calls) Tell(lost error) {
	for _, done := range *c {
		done(lost)
	}
	*c = nil
}

// tell has a callback wait for a batch.
func tell(g *ledger.Batches, b *ledger.Batch, done func(error), bytes int) {
	if b.Told == nil {
		b.Told = new(calls)
	}
	*b.Told.(*calls) = append(*b.Told.(*calls), done)
	g.Wait(b, bytes)
}

// TestGroup: whoever adds an event is told, once, that it is durable, or that nobody knows: and then
// so is everybody behind it.
func TestGroup(t *testing.T) {
	const writers, each = 8, 20
	full := errors.New("the disk is full")
	for _, good := range []int{0, 3, writers * each} { // appends before the one that fails
		t.Run(fmt.Sprintf("%d appends", good), func(t *testing.T) {
			shared := drivertest.NewShared(drivertest.SharedOptions{})
			l, _, f := open(t, shared, 1, 1)
			for range good {
				f.fail = append(f.fail, func(after driver.Cursor, entry []byte) (driver.Cursor, error) {
					return f.Realm.Append(t.Context(), after, entry)
				})
			}
			f.fail = append(f.fail, func(driver.Cursor, []byte) (driver.Cursor, error) { return 0, full })
			o := &notes{}
			g := ledger.NewBatches(l, &o.mu, o, ledger.HeadSize(realm)+40)
			o.mu.Lock()
			g.Begin()
			o.mu.Unlock()

			told := make([][each]int, writers)
			var durable []string
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for i := range each {
						o.mu.Lock()
						for g.Full() && o.lost == nil {
							taken := g.Taken()
							o.mu.Unlock()
							<-taken
							o.mu.Lock()
						}
						if o.lost != nil {
							o.mu.Unlock()
							return
						}
						b := g.Open()
						event := fmt.Sprintf("<%d %d>", w, i)
						b.Buf = append(b.Buf, event...)
						b.Events++
						done := b.Done()
						tell(g, b, func(err error) {
							o.mu.Lock()
							defer o.mu.Unlock()
							told[w][i]++
							if err == nil {
								durable = append(durable, event)
							} else if !errors.Is(err, full) {
								t.Errorf("event %s: %v", event, err)
							}
							if b.Position > o.kept && o.lost == nil {
								t.Errorf("event %s: answered before it is durable", event)
							}
						}, len(event))
						g.Ask()
						o.mu.Unlock()
						<-done
						if err := b.Err(); err != nil {
							return
						}
					}
				})
			}
			all.Wait()
			o.mu.Lock()
			idle := g.Idle()
			o.mu.Unlock()
			<-idle

			if len(o.wrong) > 0 {
				t.Error(strings.Join(o.wrong, "\n"))
			}
			if g.Waiting() != 0 && o.lost == nil {
				t.Errorf("%d bytes wait, want 0: all callbacks were called", g.Waiting())
			}
			for w := range told {
				for i, n := range told[w] {
					if n > 1 || n == 0 && o.lost == nil {
						t.Errorf("event %d of writer %d: told %d times", i, w, n)
					}
				}
			}
			text, err := read(t, shared)
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range durable {
				if strings.Count(text, event) != 1 {
					t.Errorf("event %s was acknowledged and is in the log %d times", event, strings.Count(text, event))
				}
			}
			if n := strings.Count(text, "<"); n != len(durable) {
				t.Errorf("%d events in the log, %d acknowledged", n, len(durable))
			}
		})
	}
}
