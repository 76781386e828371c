package sim

import (
	"fmt"
	"path"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// game is one realm of the engine over all its lives, and what is known of it.
// Nothing that happens in one may show in another.
type game struct {
	w        *world
	name     string
	catalogs []*catalog.Catalog
	applied  int // catalogs that were acknowledged

	known    []kuji.Record // the log as the last audit found it, what was trimmed included
	archive  []kuji.Record // what a trim took from the log, read before
	settled  uint64        // position up to which nothing may ever change
	hash     [32]byte      // of the state that the last audit found
	position uint64        // of that state
	anew     int           // ids that were carried out again once forgotten
	acks     []ack         // results that were told, not yet found in the log
	refusals []refusal     // ids refused, not yet found in the log
	reads    []read        // views that were shown, not yet found in the log
}

func newGame(w *world, number int) *game {
	g := &game{w: w, name: realmName, catalogs: makeCatalogs(w.cfg.Seed, number, w.cfg.Faults)}
	if number > 0 {
		g.name = fmt.Sprint(realmName, number)
	}
	return g
}

// dir is where the realm is on the disk.
func (g *game) dir() string { return path.Join(dataDir, "realms", g.name) }

// session is a game in one life of the engine.
type session struct {
	*game
	l        *life
	realm    *kuji.Realm // nil until it is open, and once it is being closed
	opened   bool        // it was
	hurt     bool        // a write or an fsync of it has failed
	poisoned bool        // it said so
	noted    int         // snapshots that were counted
	trimming bool        // the operation of the disk before removed a segment of it
	safe     uint64      // position below which a relaxed policy loses nothing
}

// owner is the session that an operation of the disk is for, nil for none.
func (l *life) owner(name string) *session {
	for _, s := range l.sessions {
		if name == s.dir() || strings.HasPrefix(name, s.dir()+"/") {
			return s
		}
	}
	return l.opening // which makes its directory
}

// excused reports whether the disk gave cause for a failure of the realm.
func (s *session) excused() bool { return s.hurt || s.l.excused() }

// acknowledged is the position up to which the realm has acknowledged.
func (s *session) acknowledged() uint64 {
	if s == nil || s.realm == nil {
		return 0
	}
	return s.realm.Stats().Position
}

// keeps notes that an fsync has ended that began when the realm had acknowledged
// up to a position: no crash may take that, whatever the policy.
func (s *session) keeps(position uint64) {
	if s != nil && !s.l.over && position > s.safe {
		s.safe = position
		s.w.note("%s is safe up to %d", s.name, position)
	}
}

// any chooses one of the realms.
func (l *life) any() *session {
	if len(l.sessions) == 1 {
		return l.sessions[0]
	}
	return l.sessions[l.w.schedule.IntN(len(l.sessions))]
}

// of is the session of a client's realm.
func (l *life) of(c *client) *session {
	for _, s := range l.sessions {
		if s.game == c.game {
			return s
		}
	}
	panic("sim: a client of no realm")
}

// up reports whether a realm is open.
func (l *life) up() bool {
	for _, s := range l.sessions {
		if s.realm != nil {
			return true
		}
	}
	return false
}
