package kuji

import (
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// MaxRealms is the most realms that an engine opens.
const MaxRealms = 1024

// Engine holds the realms of one data directory. All methods may be called
// concurrently.
type Engine struct {
	dir   string
	o     Options
	world world
	lock  io.Closer // one engine a directory

	mu     sync.Mutex
	realms map[string]*opening // opened so far, or being opened
	closed bool
}

// opening is a realm being opened, which may take long: others are opened, and
// found, meanwhile.
type opening struct {
	done  chan struct{} // closed when realm and err are final
	realm *Realm
	err   error
}

// Open opens the data directory dir, creating it if need be. One engine at a time, in one
// process, can have it open: another gets CodeLocked. Realms are opened when they are first
// asked for. Other errors: CodeInvalid for no directory and options out of their limits,
// CodeFailed for a directory that cannot be made or read.
func Open(dir string, o Options) (*Engine, error) {
	return openIn(vfs.OS(), nil, dir, o)
}

func openIn(fs vfs.FS, steps step.Runner, dir string, o Options) (*Engine, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	if dir == "" { // its realms would be made in the root directory
		return nil, errf(CodeInvalid, "dir", "empty; the path of a data directory is wanted")
	}
	return open(realWorld(fs, steps, &o), dir, o)
}

// OpenMemory returns an engine that writes nothing: what it holds is gone when it is closed,
// and nothing can be verified afterwards. It is for tests of what is built on Kuji, and for
// simulations. All randomness follows from the seed: with the same seed, the same
// Options.Now and the same requests in the same order, every draw comes out the same.
// Of the options, Now and MaxPending count.
func OpenMemory(seed [32]byte, o Options) (*Engine, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	o.SnapshotEvery = -1
	return open(world{
		fs:      vfs.NewMem(),
		log:     func(string) (entryLog, error) { return &memoryLog{}, nil },
		entropy: func(realm string, p []byte) { memoryEntropy(seed, realm, p) },
	}, "memory", o)
}

func open(w world, dir string, o Options) (*Engine, error) {
	if err := w.fs.MkdirAll(dir + "/realms"); err != nil {
		return nil, &Error{Code: CodeFailed, Message: "data directory", Err: err}
	}
	lock, err := w.fs.Lock(dir + "/lock")
	if errors.Is(err, vfs.ErrLocked) {
		return nil, &Error{Code: CodeLocked, Message: "data directory " + dir + " is in use by another engine", Err: err}
	}
	if err != nil {
		return nil, &Error{Code: CodeFailed, Message: "data directory", Err: err}
	}
	return &Engine{dir: dir, o: o, world: w, lock: lock, realms: map[string]*opening{}}, nil
}

func init() {
	hook.Open = func(fs vfs.FS, steps step.Runner, dir string, options any) (any, error) {
		return openIn(fs, steps, dir, options.(Options))
	}
	hook.Verify = func(fs vfs.FS, dir, realm string, seen any) (any, error) {
		return verify(fs, dir, realm, nil, seen.(func(Record)))
	}
}

// Sync returns the policy that the engine was opened with.
func (e *Engine) Sync() SyncPolicy { return e.o.Sync }

// checkRealmName refuses names that are not 1 to 64 of a-z, 0-9, '-' and '_',
// starting with a letter or digit: they are names of directories too.
func checkRealmName(name string) *Error {
	ok := len(name) >= 1 && len(name) <= maxRealmName
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '-' || c == '_')
	}
	if !ok {
		return errf(CodeInvalid, "realm", "%q; want 1 to %d of a-z, 0-9, '-' and '_', starting with a letter or digit", name, maxRealmName)
	}
	return nil
}

// Realm returns the realm of this name: opened, or created empty. Opening
// replays its log, and is refused with CodeCorrupt when that is damaged.
func (e *Engine) Realm(name string) (*Realm, error) { return e.open(name, true) }

// Lookup is Realm for a realm that must exist already; otherwise CodeNotFound.
func (e *Engine) Lookup(name string) (*Realm, error) { return e.open(name, false) }

func (e *Engine) open(name string, create bool) (*Realm, error) {
	if err := checkRealmName(name); err != nil {
		return nil, err
	}
	o, first, err := e.begin(name, create)
	if err != nil {
		return nil, err
	}
	if !first {
		<-o.done
		return o.realm, o.err
	}
	// Unless it returns. A panic is a defect, which leaves the realm's log as it is, perhaps in
	// the middle of a write: this process does not try again.
	o.err = &Error{Code: CodeFailed, Message: "opening realm " + name + " panicked; start the process anew"}
	defer close(o.done)
	o.realm, o.err = openRealm(e.world, e.dir+"/realms/"+name, name, e.o)
	if o.err != nil { // to be tried again
		e.mu.Lock()
		delete(e.realms, name)
		e.mu.Unlock()
	}
	return o.realm, o.err
}

// begin returns the opening of a realm, and whether the caller is the first, who does it.
func (e *Engine) begin(name string, create bool) (o *opening, first bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, false, errf(CodeClosed, "", "the engine is closed")
	}
	if o := e.realms[name]; o != nil {
		return o, false, nil
	}
	if err := e.mayOpen(name, create); err != nil {
		return nil, false, err
	}
	o = &opening{done: make(chan struct{})}
	e.realms[name] = o
	return o, true, nil
}

// mayOpen reports why a realm that was not opened yet cannot be. The caller
// holds mu.
func (e *Engine) mayOpen(name string, create bool) error {
	names, err := e.list()
	if err != nil || slices.Contains(names, name) {
		return err
	}
	if !create {
		return errf(CodeNotFound, "realm", "there is no realm %q", name)
	}
	for other := range e.realms { // their directories may not be there yet
		if !slices.Contains(names, other) {
			names = append(names, other)
		}
	}
	if len(names) >= MaxRealms {
		return errf(CodeConflict, "realm", "%d realms exist; at most %d are allowed", len(names), MaxRealms)
	}
	return nil
}

// Realms returns the names of the realms in the data directory, sorted. What is
// no directory, or has a name that no realm can have, is somebody's own: it is
// left alone.
func (e *Engine) Realms() ([]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	names, err := e.list()
	if err != nil {
		return nil, err
	}
	realms := names[:0]
	for _, name := range names {
		info, err := e.world.fs.Stat(e.dir + "/realms/" + name)
		if err != nil {
			return nil, &Error{Code: CodeFailed, Message: "data directory", Err: err}
		}
		if info.IsDir() {
			realms = append(realms, name)
		}
	}
	return realms, nil
}

// list returns the names in the data directory that a realm can have.
func (e *Engine) list() ([]string, error) {
	names, err := e.world.fs.List(e.dir + "/realms")
	if err != nil {
		return nil, &Error{Code: CodeFailed, Message: "data directory", Err: err}
	}
	return slices.DeleteFunc(names, func(n string) bool { return checkRealmName(n) != nil }), nil
}

// Close finishes what was accepted, ends the realms' epochs, revealing their
// seeds, and closes the logs. Calls under way are answered first; later ones get
// CodeClosed. A second Close does nothing.
//
// The error says which realms could not be closed well: one that had stopped
// before (see [Realm.Err]), or whose last writes fail. Whatever it is, all is
// released, and the directory can be opened again, which recovers them.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	var open []*opening                                       // no other comes
	for _, name := range slices.Sorted(maps.Keys(e.realms)) { // the same order in every run
		open = append(open, e.realms[name])
	}
	e.mu.Unlock()
	var errs []error
	for _, o := range open {
		<-o.done
		if o.err == nil {
			errs = append(errs, o.realm.close())
		}
	}
	return errors.Join(append(errs, e.lock.Close())...)
}
