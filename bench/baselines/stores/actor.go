package stores

import "sync"

// Actor is a goroutine that owns its maps and receives requests on a channel.
type Actor struct {
	inbox   chan message
	replies sync.Pool // of chan int
	done    chan struct{}
}

type message struct {
	id, player string
	entry      int // asked for; -1: a draw
	reply      chan int
}

// NewActor returns an empty store that draws by weights, which are never empty.
func NewActor(weights []uint64) *Actor { return newActor(newLocked(weights, 0)) }

func newActor(own *Locked) *Actor {
	a := &Actor{inbox: make(chan message, 1024), done: make(chan struct{})}
	a.replies.New = func() any { return make(chan int, 1) }
	go func() {
		defer close(a.done)
		for m := range a.inbox {
			if m.entry >= 0 {
				m.reply <- own.players[m.player][m.entry]
			} else {
				m.reply <- own.draw(m.id, m.player)
			}
		}
	}()
	return a
}

func (a *Actor) ask(m message) int {
	m.reply = a.replies.Get().(chan int)
	a.inbox <- m
	answer := <-m.reply
	a.replies.Put(m.reply)
	return answer
}

// Draw implements Store.
func (a *Actor) Draw(id, player string) int {
	return a.ask(message{id: id, player: player, entry: -1})
}

// Held implements Store.
func (a *Actor) Held(player string, entry int) int {
	return a.ask(message{player: player, entry: entry})
}

// Close implements Store.
func (a *Actor) Close() error {
	close(a.inbox)
	<-a.done
	return nil
}
