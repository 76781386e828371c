package admission

import (
	"fmt"
	"log/slog"

	"github.com/kuji-dev/kuji"
)

// Realms and connections share the limit on open files. Without a descriptor, a realm's log stops.
const (
	// spareDescriptors are for the process and the engine: standard streams, the listener, the
	// poller, the lock, profiles, keys, certificates, and connections that are closed at once.
	spareDescriptors = 64
	// realmDescriptors are for one realm: the log's directory, its segment and the next one, one
	// that is read, a snapshot that is written and one that is read, the seeds, a synced directory.
	realmDescriptors = 8
	// historyDescriptors are for the history of one realm: a database file, its journal and its
	// index for each of five connections, and a segment that is read.
	historyDescriptors = 16
	// leastConnections is how many connections a server must be able to have.
	leastConnections = 16
)

// Descriptors divides the files that the process may open among connections and realms.
type Descriptors struct {
	Want    int        // connections, if there are enough
	History bool       // each realm has one
	Realms  func() int // how many are open
}

// perRealm returns how many descriptors a realm takes.
func (d *Descriptors) perRealm() int {
	if d.History {
		return realmDescriptors + historyDescriptors
	}
	return realmDescriptors
}

// Limit returns how many connections a process that may open so many files (0: any number) can
// have, next to so many realms.
func (d *Descriptors) Limit(files uint64, realms int) int {
	reserve := uint64(spareDescriptors + realms*d.perRealm())
	if files == 0 {
		return d.Want
	}
	return int(min(uint64(d.Want), files-min(files, reserve)))
}

// Connections returns how many connections the server can have at the moment.
func (d *Descriptors) Connections() int { return d.Limit(openFiles(), d.Realms()) }

// Check fails if the process may open too few files. It logs if connections will be fewer.
func (d *Descriptors) Check(log *slog.Logger) error {
	files, realms := openFiles(), d.Realms()
	got := d.Limit(files, realms)
	if got < min(leastConnections, d.Want) {
		return fmt.Errorf("server: the limit on open files is %d, want at least %d: %d for each of %d realms, %d spare, %d connections",
			files, spareDescriptors+d.perRealm()*realms+leastConnections, d.perRealm(), realms, spareDescriptors, leastConnections)
	}
	if got < d.Want {
		log.Warn("fewer connections than configured: the limit on open files is too low",
			"connections", got, "configured", d.Want, "files", files, "realms", realms)
	}
	return nil
}

// CheckRealm refuses another realm that would leave too few descriptors for connections.
func (d *Descriptors) CheckRealm() error {
	realms := d.Realms() + 1
	if d.Limit(openFiles(), realms) < min(leastConnections, d.Want) {
		return &kuji.Error{Code: kuji.CodeOverloaded, Message: fmt.Sprintf("the limit on open files has no room for %d realms", realms)}
	}
	return nil
}
