package drivertest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/step"
)

func sharedWorld(o SharedOptions) *World {
	return worldOf(NewShared(o), o)
}

func worldOf(s *Shared, o SharedOptions) *World {
	return &World{
		Open:          func(_ testing.TB, node int) driver.Driver { return s.Node(node) },
		Unconditional: o.Unconditional,
		Hold:          s.Hold,
		Failover:      func(testing.TB, string) {},
		SetFull:       func(_ testing.TB, full bool) { s.SetFull(full) },
		Damage: func(t testing.TB, name string, at driver.Cursor) {
			if err := s.Damage(name, at); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func TestShared(t *testing.T) {
	Run(t, func(testing.TB) *World { return sharedWorld(SharedOptions{}) })
}

func TestSharedUnconditional(t *testing.T) {
	Run(t, func(testing.TB) *World { return sharedWorld(SharedOptions{Unconditional: true}) })
}

// steps is a Runner of tasks in a drawn order.
type steps struct {
	step.Runner // of which nothing else is used
	rand        *rand.Rand
	tasks       []func()
}

func (s *steps) Now() time.Time { return time.UnixMilli(0) }
func (s *steps) Go(task func()) { s.tasks = append(s.tasks, task) }
func (s *steps) Step() {
	i := s.rand.IntN(len(s.tasks))
	task := s.tasks[i]
	s.tasks = append(s.tasks[:i], s.tasks[i+1:]...)
	task()
}

// history is what two nodes do and see over a network with every fault, by a seed.
func history(t *testing.T, seed uint64, unconditional bool) string {
	random := rand.New(rand.NewPCG(seed, 1))
	runner := &steps{rand: random}
	shared := NewShared(SharedOptions{steps: runner, Rand: random, Unconditional: unconditional,
		Faults: Faults{Lose: 100, Double: 100, Late: 150, Lag: 200}})
	ctx := t.Context()
	var nodes [2]driver.Realm
	for i := range nodes {
		r, err := shared.Node(i).Open(ctx, "main", driver.Options{})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = r
	}
	var seen strings.Builder
	last := driver.Cursor(0)
	for i := range 60 {
		node := random.IntN(2)
		if random.IntN(20) == 0 {
			at, err := nodes[node].Begin(ctx, fmt.Appendf(nil, "begin %d", i))
			fmt.Fprintln(&seen, i, node, "begin", at, err)
			continue
		}
		at, err := nodes[node].Append(ctx, last, fmt.Appendf(nil, "entry %d", i))
		fmt.Fprintln(&seen, i, node, last, at, err)
		if err == nil {
			last = at
		} else if got, err := nodes[node].Last(ctx); err == nil {
			last = got // perhaps an old one
		}
	}
	for len(runner.tasks) > 0 {
		runner.Step()
	}
	var logs [2]string
	for i, r := range nodes {
		for entry, err := range r.Read(ctx, 0, shared.realms["main"].last) {
			logs[i] += fmt.Sprintln(entry.Cursor, string(entry.Data), err)
		}
	}
	if logs[0] != logs[1] {
		t.Fatalf("seed %d: two nodes read\n%s\nand\n%s", seed, logs[0], logs[1])
	}
	return seen.String() + logs[0]
}

// The same seed gives the same run, and every fault happens in some of them.
func TestSharedFollowsFromItsSeed(t *testing.T) {
	all := ""
	for seed := range uint64(50) {
		one := history(t, seed, seed%2 == 0)
		if two := history(t, seed, seed%2 == 0); one != two {
			t.Fatalf("seed %d gave\n%s\nand then\n%s", seed, one, two)
		}
		all += one
	}
	for _, fault := range []error{errLost, driver.ErrDeposed, driver.ErrUnknown} {
		if !strings.Contains(all, fault.Error()) {
			t.Errorf("no run had %q", fault)
		}
	}
}
