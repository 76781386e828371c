package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
)

// DefaultRealm is the realm of requests that do not name one.
const DefaultRealm = "default"

// realms holds the open realms. A request to a known realm costs one read of the table.
type realms struct {
	engine *kuji.Engine
	err    func(*kuji.Realm) error // (*kuji.Realm).Err, except in tests
	shared bool                    // with other servers: they follow until they are made to lead
	begin  func(*kuji.Realm)       // begins the history of a realm; nil: the server keeps none

	mu      sync.RWMutex
	byName  map[string]*kuji.Realm
	backups map[string]time.Time // when the last backup of a realm began that was sent to its end
	create  sync.Mutex           // held while a realm is created or looked for on disk
}

// open opens every realm of the engine, and creates the default one.
func (t *realms) open() error {
	t.create.Lock()
	defer t.create.Unlock()
	names, err := t.engine.Realms()
	if err != nil {
		return fmt.Errorf("server: list realms: %w", err)
	}
	for _, name := range append(names, DefaultRealm) {
		r, err := t.engine.Realm(name)
		if err != nil {
			return fmt.Errorf("server: open realm %q: %w", name, err)
		}
		t.add(r)
	}
	return nil
}

// get returns an existing realm, the default realm if the name is empty.
func (t *realms) get(name string) (*kuji.Realm, error) {
	name = cmp.Or(name, DefaultRealm)
	if r := t.known(name); r != nil {
		return r, nil
	}
	// The program that embeds the engine may have created it.
	t.create.Lock()
	defer t.create.Unlock()
	r, err := t.engine.Lookup(name)
	if err != nil {
		return nil, err
	}
	t.add(r)
	return r, nil
}

func (t *realms) add(r *kuji.Realm) {
	t.mu.Lock()
	t.byName[r.Name()] = r
	t.mu.Unlock()
	if t.begin != nil && !t.shared {
		t.begin(r)
	}
}

// backedUp notes that a backup was sent to its end, with everything that the realm's log had when it began.
func (t *realms) backedUp(r *kuji.Realm, began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.backups == nil {
		t.backups = map[string]time.Time{}
	}
	if name := r.Name(); t.byName[name] == r && began.After(t.backups[name]) { // not deleted meanwhile
		t.backups[name] = began
	}
}

// lastBackup returns when the last whole backup of a realm began, in Unix milliseconds; 0: none since the start.
func (t *realms) lastBackup(name string) int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at, ok := t.backups[name]; ok {
		return at.UnixMilli()
	}
	return 0
}

// remove forgets a realm that is to be closed.
func (t *realms) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, name)
	delete(t.backups, name)
}

// known returns a realm that is open, or nil.
func (t *realms) known(name string) *kuji.Realm {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[name]
}

// follows reports whether a realm is open and does not lead.
func (t *realms) follows(name string) bool {
	r := t.known(name)
	return r != nil && !r.Replica().Leads()
}

// new creates a realm if it does not exist.
func (t *realms) new(name string) (created bool, err error) {
	t.create.Lock()
	defer t.create.Unlock()
	_, err = t.engine.Lookup(name)
	if created = kuji.CodeOf(err) == kuji.CodeNotFound; err != nil && !created {
		return false, err
	}
	r, err := t.engine.Realm(name)
	if err != nil {
		return false, err
	}
	t.add(r)
	return created, nil
}

// delete deletes a realm, of which confirm is the name once more. Nobody looks for the realm on disk meanwhile.
func (t *realms) delete(ctx context.Context, name, confirm string) error {
	t.create.Lock()
	defer t.create.Unlock()
	t.remove(name)
	err := t.engine.DeleteRealm(ctx, name, confirm)
	if err != nil {
		if r, there := t.engine.Lookup(name); there == nil {
			t.add(r)
		}
	}
	return err
}

func (t *realms) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.byName)
}

// sorted returns the open realms, sorted by name.
func (t *realms) sorted() []*kuji.Realm {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]*kuji.Realm, 0, len(t.byName))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		all = append(all, t.byName[name])
	}
	return all
}

// Open opens a realm that exists, to follow it, for a server with [Options].Cluster, which opens
// none by itself. One that is open stays so. Errors are those of [kuji.Engine.Lookup].
func (s *Server) Open(realm string) (*kuji.Realm, error) {
	r, err := s.realms.engine.Lookup(realm)
	if err == nil {
		s.realms.add(r)
	}
	return r, err
}

// Lead makes a realm lead, and returns it. It creates one that does not exist. Errors are those of
// [kuji.Engine.Realm] and [kuji.Replica.Lead]; the realm must then be closed.
func (s *Server) Lead(ctx context.Context, realm string) (*kuji.Realm, error) {
	r, err := s.realms.engine.Realm(realm)
	if err != nil {
		return nil, err
	}
	s.realms.add(r)
	if err := r.Replica().Lead(ctx); err != nil {
		return nil, err
	}
	if s.o.History != nil {
		s.o.History.Follow(r)
	}
	return r, nil
}

// CloseRealm closes a realm, as [kuji.Engine.CloseRealm] does. Open opens it again.
func (s *Server) CloseRealm(ctx context.Context, realm string) error {
	s.realms.remove(realm)
	return s.realms.engine.CloseRealm(ctx, realm)
}

// Realms returns the realms that are open, sorted by name.
func (s *Server) Realms() []*kuji.Realm { return s.realms.sorted() }
