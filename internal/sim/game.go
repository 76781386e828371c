package sim

import (
	"fmt"
	"path"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// game is one realm of the engine in all its lives, and what is known about it. What happens in one
// realm may not affect another.
type game struct {
	w        *world
	name     string
	catalogs []*catalog.Catalog
	applied  int // catalogs that were acknowledged
	files    int // of codes that were acknowledged

	known    []kuji.Record // the log as the last audit found it, including trimmed records
	archive  []kuji.Record // the trimmed part of the log, read before
	settled  uint64        // position up to which nothing may ever change
	closed   bool          // the last life closed it without an error
	ended    uint64        // position at which it was last closed
	hash     [32]byte      // of the state that the last audit found
	position uint64        // of that state
	repeated int           // ids carried out again after they were forgotten
	clock    leash
	claims
}

// claims are what clients know of a realm and no audit has found in the log yet.
type claims struct {
	acks     []ack     // results that they were told
	refusals []refusal // of ids
	reads    []read    // views that they were shown
	round    uint64    // the last one that a client was told of
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
	realm    *kuji.Realm // nil before it is open and while it is closed
	opened   bool        // it was opened
	hurt     bool        // one of its writes or fsyncs has failed
	poisoned bool        // it has reported that
	noted    int         // snapshots counted so far
	trimming bool        // the last disk operation removed one of its segments
	safe     uint64      // position below which a relaxed policy loses nothing
}

// owner returns the session whose files a disk operation is about; nil for none.
func (l *life) owner(name string) *session {
	for _, s := range l.sessions {
		if name == s.dir() || strings.HasPrefix(name, s.dir()+"/") {
			return s
		}
	}
	return l.opening // it creates its directory
}

// excused reports whether the disk gave the realm a reason to fail.
func (s *session) excused() bool { return s.hurt || s.l.excused() }

// acknowledged returns the position up to which the realm has acknowledged.
func (s *session) acknowledged() uint64 {
	if s == nil || s.realm == nil {
		return 0
	}
	return s.realm.Stats().Position
}

// keeps records that an fsync ended. It began after the realm had acknowledged a position, so no
// crash may remove that position, whatever the policy.
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

// of returns the session of a client's realm.
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
