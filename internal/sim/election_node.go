package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/kuji-dev/kuji/internal/election"
)

// voter is a node of a simulated cluster: what package cluster is around the election.
type voter struct {
	e    *electorate
	name string

	ordeal

	// What it is in this life.
	core     *election.Node
	holding  *election.Holding
	open     map[string]*opened
	looks    int           // counts its looks at the board, and the attempts of each
	attempts int           // the answer to an older one is dropped
	looking  bool          // a look is under way
	hurry    bool          // another one is wanted
	decided  time.Duration // when it last decided what to write
	refuses  time.Duration // it was drained, or began to stop, at that time; 0: it was not
}

// ordeal is what happens to a node.
type ordeal struct {
	life   int
	up     bool
	gone   bool          // it never starts again
	cut    bool          // no message passes
	paused time.Duration // it stands still until then
	away   bool          // it should lead nothing at the end
	rate   float64       // of the clock that only runs
	born   time.Duration
	skew   time.Duration // its wall clock is so far ahead
	ttl    time.Duration // how long the others wait for it
}

// opened is a realm that a node has open.
type opened struct{ epoch uint64 } // 0: it follows

var worldBegins = time.Unix(1e9, 0)

// clock is what the clock that only runs shows.
func (v *voter) clock() time.Time {
	return worldBegins.Add(time.Duration(float64(v.e.now-v.born) * v.rate))
}

// real returns the time in which that clock runs on by d.
func (v *voter) real(d time.Duration) time.Duration { return time.Duration(float64(d) / v.rate) }

// holds reports whether the node answers about a realm without asking the log.
func (v *voter) holds(realm string) bool {
	return v.up && v.e.now >= v.paused && v.holding.Holds(realm, v.clock())
}

// start begins a life.
func (v *voter) start() {
	if v.up || v.gone {
		return
	}
	v.life++
	v.up, v.born, v.paused = true, v.e.now, v.e.now
	v.rate = []float64{0.97, 1.03}[v.e.rng.IntN(2)]
	v.ttl = []time.Duration{election.TTL, 3 * election.TTL}[v.e.rng.IntN(2)]
	v.core = election.New(election.Config{
		Node: v.name, Life: fmt.Sprint(v.name, " ", v.life), Nodes: []int{0, len(v.e.voters)}[v.e.rng.IntN(2)], Level: 1, Default: v.e.realms[0],
		Address: v.name + ":6223", TTL: v.ttl,
	})
	v.holding, v.open = v.core.Holding(), map[string]*opened{}
	v.looking, v.hurry, v.decided, v.refuses = false, false, 0, 0
	v.e.note("%s starts, at rate %.3f; the others wait %v", v.name, v.rate, v.ttl)
	v.core.Find(v.e.realms...)
	v.tick()
}

func (v *voter) kill() {
	v.life++
	v.up = false
	v.e.note("%s dies", v.name)
}

func (v *voter) pause(d time.Duration) {
	v.paused = max(v.paused, v.e.now+d)
	v.e.note("%s stands still for %v", v.name, d)
	v.e.after(v.paused-v.e.now, v, func() {}) // checks what it holds when it goes on
}

func (v *voter) drain(on bool) {
	if !v.up || v.core.Drained() == on {
		return
	}
	v.e.note("%s is drained: %v", v.name, on)
	v.core.Drain(on)
	if v.refuses = 0; on {
		v.refuses = v.e.now
	}
	v.poked()
}

func (v *voter) stop() {
	v.core.Stop()
	v.refuses = v.e.now
	v.poked()
}

// tick looks at the board once a second.
func (v *voter) tick() {
	v.begin()
	v.e.after(v.real(election.RenewEvery), v, v.tick)
}

// poked looks at the board at once.
func (v *voter) poked() {
	if v.hurry = true; !v.looking {
		v.e.after(v.real(20*time.Millisecond), v, func() {
			if v.hurry {
				v.begin()
			}
		})
	}
}

// begin begins a look at the board.
func (v *voter) begin() {
	if v.looking {
		v.hurry = true
		return
	}
	v.looking, v.hurry = true, false
	v.e.Election.Looks++
	v.core.Tick(v.clock(), v.health)
	v.carryOut()
	v.looks++
	look := v.looks
	v.e.after(v.real(v.ttl), v, func() {
		if v.looking && v.looks == look {
			v.end(errors.New("no answer in time"))
		}
	})
	v.attempt()
}

// attempt reads the board, decides, and writes it, as long as the look goes on.
func (v *voter) attempt() {
	v.attempts++
	attempt, asked := v.attempts, false
	current := func() bool { return v.looking && v.attempts == attempt }
	v.e.after(v.real(v.e.between(500*time.Millisecond, 3*time.Second)), v, func() {
		if current() {
			v.attempt()
		}
	})
	v.send(func() {
		version, data := v.e.board.version, v.e.board.data
		v.receive(func() {
			if !current() || asked {
				return // it was read twice
			}
			asked = true
			v.decided = v.e.now
			written := v.core.Look(data, v.clock(), worldBegins.Add(v.e.now+v.skew))
			v.send(func() {
				ok := v.e.write(v, version, written)
				v.receive(func() {
					switch {
					case !current():
					case ok:
						v.end(nil)
					default:
						v.attempt()
					}
				})
			})
		})
	})
}

// end ends a look.
func (v *voter) end(err error) {
	v.looking = false
	v.attempts++
	if err != nil {
		v.e.Election.Silent++
	}
	changed := v.core.Looked(v.clock(), err)
	v.carryOut()
	if changed {
		for _, other := range v.e.voters {
			if other != v {
				v.send(func() {
					if other.up && !other.cut {
						v.e.after(0, other, other.poked)
					}
				})
			}
		}
	}
	if v.hurry {
		v.poked()
	}
}

// send makes something happen at the board, unless the message is lost: perhaps late, or twice.
func (v *voter) send(do func()) {
	life := v.life
	times := 1
	if v.e.chance(30) {
		v.e.Election.Double++
		times = 2
	}
	for range times {
		delay := v.e.brief(20 * time.Millisecond)
		if v.e.chance(30) {
			v.e.Election.Late++
			delay = v.e.between(0, 6*time.Second)
		}
		if v.cut || v.e.chance(30) {
			v.e.Election.Lost++
			continue
		}
		v.e.after(delay, nil, func() {
			if v.e.calm && v.life != life {
				return // what the dead have sent has arrived by then
			}
			do()
		})
	}
}

// receive makes something happen at the node, unless the answer is lost.
func (v *voter) receive(do func()) {
	if v.cut || v.e.chance(40) {
		v.e.Election.Unanswered++
		return
	}
	delay := v.e.brief(20 * time.Millisecond)
	if v.e.chance(100) {
		v.e.Election.Late++
		delay = v.e.between(0, 2*time.Second)
	}
	v.e.after(delay, v, do)
}

// health is how a realm is: one that leads finds out that another node does when it reaches the log.
func (v *voter) health(realm string) (h election.Health) {
	r := v.open[realm]
	if v.e.chance(100) {
		h.Behind = 1000
	}
	if r.epoch > 0 && r.epoch < v.e.epochs[realm] && !v.cut {
		v.e.Election.Deposed++
		h.Err = errors.New("another node leads")
	}
	return h
}

// carryOut begins what the election asks for.
func (v *voter) carryOut() {
	for _, d := range v.core.Todo() {
		switch d.Act {
		case election.Open:
			v.e.after(v.e.brief(300*time.Millisecond), v, func() {
				if v.cut || v.e.chance(50) {
					v.done(d, election.Failed)
					return
				}
				v.open[d.Realm] = &opened{}
				v.done(d, election.Fine)
			})
		case election.Lead:
			v.e.Election.Leads++
			if v.refuses > 0 && v.decided >= v.refuses {
				v.e.fail("node %s is to lead nothing, and takes realm %s", v.name, d.Realm)
			}
			v.lead(d)
		case election.Close:
			v.e.Election.Closes++
			took := v.e.brief(300 * time.Millisecond)
			if v.cut {
				took = 10 * time.Second
			}
			v.e.after(took, v, func() {
				delete(v.open, d.Realm)
				v.done(d, election.Fine)
			})
		}
	}
}

// lead begins an epoch in the log, and then leads, unless the node learns nothing of it. Its lease may have ended
// meanwhile: then it deposes a leader and answers nothing itself.
func (v *voter) lead(d election.Do) {
	v.e.note("%s is to lead %s", v.name, d.Realm)
	if v.cut || v.e.chance(50) {
		v.e.after(v.e.between(time.Second, 5*time.Second), v, func() { v.done(d, election.Failed) })
		return
	}
	v.e.after(v.e.brief(200*time.Millisecond), v, func() {
		v.e.epochs[d.Realm]++
		epoch := v.e.epochs[d.Realm]
		v.e.note("%s has epoch %d of %s", v.name, epoch, d.Realm)
		v.e.after(v.e.brief(200*time.Millisecond), v, func() {
			if v.e.chance(50) {
				v.done(d, election.Failed)
				return
			}
			v.open[d.Realm] = &opened{epoch}
			v.done(d, election.Fine)
		})
	})
}

// done tells the election how an act ended.
func (v *voter) done(d election.Do, out election.Outcome) {
	var err error
	if out != election.Fine {
		err = errors.New("it failed")
	}
	v.core.Done(d, v.clock(), out, err)
	v.carryOut()
	if d.Act != election.Lead {
		v.poked()
	}
}
