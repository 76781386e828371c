package server

import (
	"fmt"

	"github.com/kuji-dev/kuji"
)

// What the limit on open files (RLIMIT_NOFILE) is shared among. Without a descriptor a log cannot go
// on: its realm's commands would wait.
const (
	// spareDescriptors are for the process and the engine: standard streams, the listener, the
	// poller, the lock, profiles, key files and certificates that are read again, and connections
	// that are accepted only to be closed.
	spareDescriptors = 64
	// realmDescriptors are for one realm: the log's directory, its segment and the next one, a
	// segment that is read, a snapshot that is written and one that is read, the seeds, and a
	// directory that is synced.
	realmDescriptors = 8
	// historyDescriptors are for the history of one realm: a database file, its journal and its index
	// for each of five connections, and a segment that is read.
	historyDescriptors = 16
	// leastConnections is how many connections a server must be able to have.
	leastConnections = 16
)

// perRealm returns how many descriptors a realm takes.
func (s *Server) perRealm() int {
	if s.o.History != nil {
		return realmDescriptors + historyDescriptors
	}
	return realmDescriptors
}

// connectionLimit returns how many connections a process that may open that many files can have,
// at most want, if realms take so many. files is 0 if there is no limit.
func connectionLimit(want int, files uint64, realms int) int {
	reserve := uint64(spareDescriptors + realms)
	if files == 0 || files >= reserve+uint64(want) {
		return want
	}
	if files < reserve {
		return 0
	}
	return int(files - reserve)
}

// connections returns how many connections the server can have at the moment.
func (s *Server) connections() int {
	return connectionLimit(s.o.Limits.Connections, openFiles(), s.perRealm()*s.realms.len())
}

// checkDescriptors fails if the process may not open enough files, and logs if there will be fewer
// connections than configured.
func (s *Server) checkDescriptors() error {
	want, files, realms := s.o.Limits.Connections, openFiles(), s.realms.len()
	got := connectionLimit(want, files, s.perRealm()*realms)
	if got == want {
		return nil
	}
	if got < leastConnections {
		return fmt.Errorf("server: the limit on open files is %d, want at least %d: %d for each of %d realms, %d spare, %d connections",
			files, spareDescriptors+s.perRealm()*realms+leastConnections, s.perRealm(), realms, spareDescriptors, leastConnections)
	}
	s.log.Warn("fewer connections than configured: the limit on open files is too low",
		"connections", got, "configured", want, "files", files, "realms", realms)
	return nil
}

// checkRealm refuses a new realm that would leave too few descriptors for connections.
func (s *Server) checkRealm(name string) error {
	if s.realms.has(name) {
		return nil
	}
	realms := s.realms.len() + 1
	if got := connectionLimit(s.o.Limits.Connections, openFiles(), s.perRealm()*realms); got < min(leastConnections, s.o.Limits.Connections) {
		return &kuji.Error{Code: kuji.CodeOverloaded,
			Message: fmt.Sprintf("the limit on open files has no room for %d realms", realms)}
	}
	return nil
}
