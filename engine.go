package kuji

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/driver/memory"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// MaxRealms is the most realms in one engine.
const MaxRealms = 1024

// Engine holds the realms of one data directory, or of a driver. All methods may be called concurrently.
type Engine struct {
	o     Options
	world world

	mu     sync.Mutex
	realms map[string]*opening // opened so far, or being opened
	closed bool
}

// opening is a realm that is being opened. Other realms can be opened meanwhile.
type opening struct {
	done  chan struct{} // closed when realm and err are final
	realm *Realm
	err   error
}

// Open opens the data directory dir, and creates it if needed. With Options.Driver, dir must be empty.
// CodeLocked: another engine has it open. CodeInvalid: dir is empty, or an option is out of range.
// CodeNotFound: it does not exist, under Options.MustExist. CodeFailed: it cannot be created or read.
func Open(dir string, o Options) (*Engine, error) {
	return openIn(nil, nil, dir, o)
}

func openIn(fs vfs.FS, steps step.Runner, dir string, o Options) (*Engine, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	w := world{driver: o.Driver, key: o.Key, oldKeys: o.OldKeys, levels: &levels{}, steps: steps, entropy: func(_ string, p []byte) { step.Entropy(steps, p) }}
	switch {
	case o.Driver != nil && dir != "":
		return nil, errf(CodeInvalid, "dir", "%q; want none if there is a driver", dir)
	case o.Driver == nil && o.Follow:
		return nil, errf(CodeInvalid, "Follow", "set without a Driver; want one that several nodes share")
	case o.Driver != nil && o.Key == [32]byte{}:
		return nil, errf(CodeInvalid, "Key", "none; want the key of all nodes that share the driver")
	case o.Driver != nil:
	case dir == "": // its realms would land in the root directory
		return nil, errf(CodeInvalid, "dir", "empty; want the path of a data directory")
	default:
		if err := w.openDisk(fs, dir, &o); err != nil {
			return nil, err
		}
	}
	return &Engine{o: o, world: w, realms: map[string]*opening{}}, nil
}

func (w *world) openDisk(fs vfs.FS, dir string, o *Options) error {
	do := disk.Options{Sync: disk.Sync(o.Sync), SyncEvery: o.SyncEvery, SegmentSize: o.SegmentSize, MustExist: o.MustExist}
	hook.Disk(&do, fs, w.steps)
	d, err := OpenDir(dir, do)
	if err != nil {
		return err
	}
	w.driver = d
	if w.key == [32]byte{} {
		if w.key, w.keyErr, err = d.Key(false); err != nil {
			return errors.Join(&Error{Code: CodeFailed, Message: "data directory", Err: err}, d.Close())
		}
	}
	return nil
}

// OpenDir opens the driver of a data directory, to read or copy it. CodeLocked: an engine has it open.
// CodeNotFound: it does not exist, under disk.Options.MustExist. CodeFailed: it cannot be read or made.
func OpenDir(dir string, o disk.Options) (*disk.Driver, error) {
	d, err := disk.Open(dir, o)
	switch {
	case errors.Is(err, driver.ErrLocked):
		return nil, &Error{Code: CodeLocked, Message: "data directory " + dir + " is in use by an engine; stop it first", Err: err}
	case errors.Is(err, driver.ErrNotExist):
		return nil, &Error{Code: CodeNotFound, Field: "data", Message: dir + " is not a data directory of Kuji", Err: err}
	case err != nil:
		return nil, &Error{Code: CodeFailed, Message: "data directory", Err: err}
	}
	return d, nil
}

// OpenMemory returns an engine that writes nothing, for simulations and tests. Its data is lost at Close
// and cannot be verified. The same seed, Options.Now and requests in the same order give the same
// outcomes. Of the options, only Now and MaxPending have an effect.
func OpenMemory(seed [32]byte, o Options) (*Engine, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	o.SnapshotEvery, o.MustExist, o.Follow = -1, false, false
	w := world{driver: &memory.Driver{}, levels: &levels{}, entropy: func(realm string, p []byte) { ledger.MemoryEntropy(seed, realm, p) }}
	return &Engine{o: o, world: w, realms: map[string]*opening{}}, nil
}

func init() {
	hook.Open = func(fs vfs.FS, steps step.Runner, dir string, options any) (any, error) {
		return openIn(fs, steps, dir, options.(Options))
	}
	hook.OpenDriver = func(steps step.Runner, options any) (any, error) {
		return openIn(nil, steps, "", options.(Options))
	}
}

// Follows reports whether the engine was opened with Options.Follow.
func (e *Engine) Follows() bool { return e.o.Follow }

// Promise returns what acknowledged commands survive. known is false if the driver decides that alone: then
// it is what Sync says, or, of a replicated log, the loss of a minority of its machines.
func (e *Engine) Promise() (p driver.Promise, known bool) {
	d, known := e.world.driver.(driver.Promiser)
	if known {
		p = d.Promise()
	}
	return p, known
}

// Sync returns the policy that the engine was opened with.
func (e *Engine) Sync() SyncPolicy { return e.o.Sync }

// CheckRealm refuses what cannot be the name of a realm, and of its directory, with CodeInvalid.
func CheckRealm(name string) error {
	if err := driver.CheckRealm(name); err != nil {
		return errf(CodeInvalid, "realm", "%v", err)
	}
	return nil
}

// Realm returns the realm with this name, and creates it empty if it does not exist. The first call
// replays its log. CodeInvalid: a bad name. CodeConflict: MaxRealms realms exist. CodeCorrupt: the log
// is damaged or has lost its end. CodeFailed: it cannot be read or written. CodeNotFound: it does not
// exist, under Options.MustExist. CodeClosed: the engine is closed.
func (e *Engine) Realm(name string) (*Realm, error) { return e.open(name, true) }

// Lookup is Realm, but it creates nothing: CodeNotFound if the realm does not exist.
func (e *Engine) Lookup(name string) (*Realm, error) { return e.open(name, false) }

func (e *Engine) open(name string, create bool) (*Realm, error) {
	if err := CheckRealm(name); err != nil {
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
	// It stays if openRealm panics, perhaps in the middle of a write: this process does not try again.
	o.err = &Error{Code: CodeFailed, Message: "opening realm " + name + " panicked; restart the process"}
	defer close(o.done)
	o.realm, o.err = openRealm(e.world, name, e.o)
	if o.err != nil { // the next call tries again
		e.forget(name, o)
	}
	return o.realm, o.err
}

// forget takes an opening out of the table, unless another one has its place.
func (e *Engine) forget(name string, o *opening) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.realms[name] == o {
		delete(e.realms, name)
	}
}

// begin returns the opening of a realm. first is true for the first caller, who must do the work.
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

// mayOpen reports why a realm that is not open yet cannot be opened. The caller holds mu.
func (e *Engine) mayOpen(name string, create bool) error {
	names, err := e.Realms()
	if err != nil || slices.Contains(names, name) {
		return err
	}
	if !create || e.o.MustExist {
		return errf(CodeNotFound, "realm", "there is no realm %q", name)
	}
	for other := range e.realms { // they may not exist yet
		if !slices.Contains(names, other) {
			names = append(names, other)
		}
	}
	if len(names) >= MaxRealms {
		return errf(CodeConflict, "realm", "%d realms exist; at most %d are allowed", len(names), MaxRealms)
	}
	return nil
}

// Realms returns the names of the realms that exist, sorted. It ignores what is not a realm's directory.
func (e *Engine) Realms() ([]string, error) {
	names, err := e.world.driver.Realms(context.Background())
	if err != nil {
		return nil, &Error{Code: CodeFailed, Message: "data directory", Err: err}
	}
	return names, nil
}

// CloseRealm closes one realm as Close does, and forgets it: the next Realm or Lookup opens it again
// from the log, also if it had stopped or led. Callers who ask for it meanwhile wait and get CodeClosed.
// What takes longer than ctx is cut off. A realm that is not open is no error. An error says that the
// realm did not close cleanly; it is closed all the same.
func (e *Engine) CloseRealm(ctx context.Context, name string) error {
	e.mu.Lock()
	was := e.realms[name]
	if e.closed || was == nil {
		e.mu.Unlock()
		return nil
	}
	now := &opening{done: make(chan struct{}), err: errf(CodeClosed, "", "realm %q was being closed", name)}
	e.realms[name] = now
	e.mu.Unlock()
	defer close(now.done)
	defer e.forget(name, now)
	<-was.done
	if was.err != nil {
		return nil
	}
	defer context.AfterFunc(ctx, func() { cut(was.realm) })()
	return closeRealm(was.realm)
}

// Close answers the calls under way, ends the realms' epochs, which reveals their seeds, and closes the
// logs and the driver. Later calls get CodeClosed; a second Close does nothing. The error names the realms
// that had stopped (see [Realm.Err]) or whose last writes failed. Even then all resources are released.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	var open []*opening                                       // no more are added
	for _, name := range slices.Sorted(maps.Keys(e.realms)) { // the same order in every run
		open = append(open, e.realms[name])
	}
	e.mu.Unlock()
	var errs []error
	for _, o := range open {
		<-o.done
		if o.err == nil {
			errs = append(errs, closeRealm(o.realm))
		}
	}
	return errors.Join(append(errs, e.world.driver.Close())...)
}
