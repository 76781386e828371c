package drivertest

import (
	"context"
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/step"
)

// Way is a direction on the way between a node and the log.
type Way int

// The two ways.
const (
	Requests Way = iota // from the node
	Answers             // to the node
)

// Hold is what was sent one way from a node, or to it, since somebody called for it to be held.
type Hold interface {
	// Caught is closed when something is held.
	Caught() <-chan struct{}
	// Deliver lets what is held arrive, late, and ends the hold.
	Deliver()
	// Drop loses what is held, and ends the hold.
	Drop()
}

// network carries messages. Its Shared's mu guards it.
type network struct {
	links map[int]*link
	late  []message // oldest first
}

// link is the way between one node and the log.
type link struct {
	cut  bool
	held [2]*held // by Way; nil: not held
}

// message is something on its way. Either arrive is called, perhaps after lost; or only lost.
type message struct {
	arrive func()
	lost   func() // the sender stops waiting
}

// maxLate bounds the messages that are late at a time.
const maxLate = 64

func (n *network) link(node int) *link {
	l := n.links[node]
	if l == nil {
		l = &link{}
		n.links[node] = l
	}
	return l
}

// carry sends a message one way.
func (s *Shared) carry(node int, way Way, m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Each message that is late gets its chance when another one passes.
	s.net.late = slices.DeleteFunc(s.net.late, func(m message) bool {
		arrives := s.chance(250)
		if arrives {
			step.Go(s.steps, m.arrive)
		}
		return arrives
	})
	l := s.net.link(node)
	switch {
	case l.held[way] != nil:
		l.held[way].catch(m)
	case l.cut, s.chance(s.o.Faults.Lose):
		step.Go(s.steps, m.lost)
	case len(s.net.late) < maxLate && s.chance(s.o.Faults.Late):
		s.net.late = append(s.net.late, m)
		step.Go(s.steps, m.lost)
	default:
		step.Go(s.steps, m.arrive)
		if way == Requests && s.chance(s.o.Faults.Double) {
			step.Go(s.steps, m.arrive)
		}
	}
}

// Partition cuts a node off: everything that it sends or is sent gets lost, and its readers see
// nothing new. With cut false the node is back.
func (s *Shared) Partition(node int, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.net.link(node).cut = cut
	s.wake()
}

// Hold holds what a node sends or is sent from now on. Its readers go on.
func (s *Shared) Hold(node int, way Way) Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &held{shared: s, node: node, way: way, caught: make(chan struct{})}
	s.net.link(node).held[way] = h
	return h
}

// held implements [Hold].
type held struct {
	shared   *Shared
	node     int
	way      Way
	caught   chan struct{}
	messages []message // guarded by shared.mu
}

func (h *held) catch(m message) {
	if len(h.messages) == 0 {
		close(h.caught)
	}
	h.messages = append(h.messages, m)
}

// Caught implements [Hold].
func (h *held) Caught() <-chan struct{} { return h.caught }

// Deliver implements [Hold].
func (h *held) Deliver() {
	for _, m := range h.end() {
		m.arrive()
	}
}

// Drop implements [Hold].
func (h *held) Drop() {
	for _, m := range h.end() {
		m.lost()
	}
}

func (h *held) end() []message {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	if l := h.shared.net.link(h.node); l.held[h.way] == h {
		l.held[h.way] = nil
	}
	messages := h.messages
	h.messages = nil
	return messages
}

// call asks for op to be done where the realm is kept, and waits for the answer. If none comes, its
// error has kind in it: op may have been done, may yet be done, or may be done twice.
func call[T any](ctx context.Context, h *handle, kind error, op func() (T, error)) (T, error) {
	s := h.shared
	var (
		value T
		err   error
		over  bool // the first answer counts; guarded by s.mu
	)
	done := make(chan struct{})
	answer := func(v T, e error) {
		if !over {
			value, err, over = v, e, true
			close(done)
		}
	}
	fail := func(e error) func() {
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			var zero T
			answer(zero, e)
		}
	}
	lost := fail(fmt.Errorf("%w: %w", kind, errLost))

	forget, openErr := h.expect(fail(driver.ErrClosed))
	if openErr != nil {
		return value, openErr
	}
	defer forget()
	s.carry(h.node, Requests, message{lost: lost, arrive: func() {
		s.mu.Lock()
		v, e := op()
		s.mu.Unlock()
		s.carry(h.node, Answers, message{lost: lost, arrive: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			answer(v, e)
		}})
	}})
	if waitErr := step.Wait(ctx, s.steps, done); waitErr != nil {
		fail(fmt.Errorf("%w: %w", kind, waitErr))() // unless an answer has come by now
	}
	<-done
	return value, err
}
