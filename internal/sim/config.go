package sim

import (
	"fmt"
	"strings"
)

// Config is everything that determines a run. Equal configurations give equal runs, down to the
// bytes of the trace.
type Config struct {
	Seed     uint64
	Realms   int    // of the engine
	Clients  int    // at the same time, each in one realm
	Requests int    // of each client; repeats come on top
	Lives    int    // of the engine; the last one has no fault
	Steps    int    // of the schedule, in each life but the last
	Faults   Faults // what may go wrong
}

// Faults is a set of things that may go wrong or make things harder.
type Faults uint32

// The faults.
const (
	Power     Faults = 1 << iota // the power is cut at a disk operation
	Kill                         // the process is killed at a disk operation
	Sync                         // an fsync fails, and may lose what it should have made durable
	Write                        // a write fails or is short, or a file cannot be created, renamed or cut
	Full                         // the disk is full
	Rot                          // bytes change on the disk
	Clock                        // the clock jumps, backwards too, and is put right
	Network                      // messages are lost, or arrive twice, late or out of order
	Overlap                      // requests arrive in the middle of disk operations
	Catalogs                     // the catalog changes while players draw
	Relaxed                      // sync policies other than always
	Forget                       // the idempotency window is short
	Snapshots                    // snapshots are taken, and opening uses them
	Trim                         // the log is trimmed up to snapshots
	Short                        // for a while nothing can be opened: no descriptors or no memory are left
	Tail                         // a closed log loses its end
	Chain                        // a snapshot is damaged after the log before it was trimmed

	// AllFaults is every fault.
	AllFaults Faults = 1<<iota - 1

	faultKinds = iota - 1
)

var faultNames = [faultKinds]string{
	"power", "kill", "sync", "write", "full", "rot", "clock", "network", "overlap", "catalogs", "relaxed", "forget",
	"snapshots", "trim", "short", "tail", "chain",
}

// String returns the names, separated by commas, or "none" for the empty set.
func (f Faults) String() string {
	var names []string
	for i, n := range faultNames {
		if f&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ",")
}

// ParseFaults is the inverse of String.
func ParseFaults(s string) (Faults, error) {
	if s == "all" {
		return AllFaults, nil
	}
	var f Faults
next:
	for name := range strings.SplitSeq(s, ",") {
		if name == "none" {
			continue
		}
		for i, n := range faultNames {
			if n == name {
				f |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("fault %q; want all, none or some of %s", name, strings.Join(faultNames[:], ","))
	}
	return f, nil
}

// FromSeed returns the configuration for a seed: varying sizes, all faults.
func FromSeed(seed uint64) Config {
	r := stream(seed, 1)
	c := Config{
		Seed:     seed,
		Realms:   1,
		Clients:  1 + r.IntN(5),
		Requests: 2 + r.IntN(14),
		Lives:    1 + r.IntN(6),
		Steps:    20 + r.IntN(400),
		Faults:   AllFaults,
	}
	if r.IntN(3) == 0 {
		c.Realms = 2 + r.IntN(4)/3
		c.Clients = max(c.Clients, c.Realms)
	}
	return c
}

// Command returns the command that repeats the run.
func (c Config) Command() string {
	s := fmt.Sprintf("go test ./internal/sim -run 'TestSeeds$' -seed %d", c.Seed)
	if c == FromSeed(c.Seed) {
		return s
	}
	return s + fmt.Sprintf(" -realms %d -clients %d -requests %d -lives %d -steps %d -faults %s", c.Realms, c.Clients, c.Requests, c.Lives, c.Steps, c.Faults)
}
