package kuji

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"slices"
	"syscall"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// openRealm opens a realm's directory, creating it if needed, replays its log and begins an epoch.
//
// If the disk is too full to begin an epoch, or to repair the end of the log, the realm is opened
// all the same: stopped, as after a write that failed, so that what is durable can be read.
func openRealm(w world, dir, name string, o Options) (*Realm, error) {
	if err := w.fs.MkdirAll(dir); err != nil {
		return nil, &Error{Code: CodeFailed, Message: "realm " + name, Err: err}
	}
	log, last, full, err := openLog(w, dir, name, o)
	if err != nil {
		return nil, err
	}
	r := &Realm{
		name: name, dir: dir, o: o, world: w, log: log, last: last,
		writing: writing{chain: chain{realm: name}}, state: store.New(), taken: make(chan struct{}),
	}
	err = r.recover()
	if err == nil && full == nil {
		full = r.beginEpoch()
		if !vfs.Full(full) {
			err, full = full, nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	r.open = &batch{}
	r.reset(r.open, r.chain.index+1)
	if full != nil {
		r.openFull(full)
	}
	return r, nil
}

// openFull opens a realm for reading only, because the disk is full.
func (r *Realm) openFull(err error) {
	r.acked.Store(r.chain.index)
	r.showDurable()
	r.open.position = math.MaxUint64 // stays empty
	r.snap.stop.Store(true)
	r.fail(&Error{Code: CodeFailed, Message: fmt.Sprintf("realm %q can only be read: the disk is full; make room and reopen the engine", r.name), Err: err})
}

// openLog opens the log in a realm's directory. It creates one only if nothing says that there was
// one before. If the disk is too full to repair the log's end, it opens it for reading only, and
// full says so.
func openLog(w world, dir, name string, o Options) (log entryLog, last *lastClose, full, err error) {
	last, wrong := readLastClose(w.fs, name, dir)
	if wrong != nil {
		return nil, nil, nil, wrong
	}
	relic, err := relic(w.fs, dir)
	if err != nil {
		return nil, nil, nil, &Error{Code: CodeFailed, Message: "realm " + name, Err: err}
	}
	known := knownLog{exists: relic != "" || o.MustExist}
	if last != nil {
		known.durable = last.next
	}
	log, err = w.log(dir+"/log", known)
	if vfs.Full(err) {
		full = err
		if log, err = w.readLog(dir+"/log", known); errors.Is(err, fs.ErrNotExist) {
			err = full // there was no log yet
		}
	}
	switch {
	case err == nil:
		return log, last, full, nil
	case errors.Is(err, fs.ErrNotExist) && relic != "":
		err = missingLog(name, relic, err)
	case errors.Is(err, fs.ErrNotExist) && o.MustExist:
		err = &Error{Code: CodeNotFound, Field: "realm", Message: "realm " + name + " has no log, and Options.MustExist forbids to create one", Err: err}
	default:
		err = logError(name, err)
	}
	return nil, nil, nil, err
}

// logError classifies an error of the log.
func logError(realm string, err error) *Error {
	code := CodeFailed
	var corrupt *wal.CorruptionError
	switch {
	case errors.As(err, &corrupt):
		code = CodeCorrupt
	case errors.Is(err, vfs.ErrLocked), errors.Is(err, wal.ErrLocked):
		code = CodeLocked
	}
	return &Error{Code: code, Message: "log of realm " + realm, Err: err}
}

// damage returns the code of a file that cannot be used. What the disk does not give is not
// damaged: it may give it later.
func damage(err error) Code {
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return CodeFailed
	}
	return CodeCorrupt
}

// recover replays the log.
func (r *Realm) recover() error {
	from, err := r.restore()
	if err != nil {
		return err
	}
	r.state.Alone(true)
	if err := r.replayLog(from); err != nil {
		return err
	}
	r.state.Alone(false)
	r.stats.Recovered, r.next = r.chain.index, r.log.Next()
	tables, err := rules.Load(r.state, r.state.Catalog())
	if err != nil {
		return &Error{Code: CodeCorrupt, Message: "realm " + r.name, Err: err}
	}
	r.rules = rules.New(r.state, tables)
	r.tables.Store(tables)
	return r.startClock()
}

// replayLog applies the log from where the snapshot ends. One goroutine reads and checks it and
// folds the chain. This one changes the state. A third one remembers request ids, which no change
// depends on.
func (r *Realm) replayLog(from *resume) error {
	const ahead = 4 // entries
	hand, wait := step.Behind(r.world.steps, ahead, r.rememberEntry)
	var failed error
	for e, err := range step.Ahead(r.world.steps, ahead, replay(r.log.Entries, r.name, from, r.last, nil)) {
		if err == nil {
			err = r.changeByEntry(&e)
		}
		if err != nil {
			failed = err
			break
		}
		hand(e)
	}
	return cmp.Or(wait(), failed) // the first in the order of the log
}

// changeByEntry applies a log entry that counts to the state, except for its request ids.
func (r *Realm) changeByEntry(e *replayed) error {
	switch e.kind {
	case entryEpochBegin:
		r.epochs = append(r.epochs, epochInfo{first: e.index, epoch: e.epoch, commitment: e.begin.commitment})
		r.clock.last = e.begin.time
	case entryEpochEnd, entryReveal:
		reveal(r.epochs, e.reveal.epoch)
	case entryBatch:
		for le, err := range e.events(r.state.WarmChange) {
			if err == nil {
				err = e.corrupted(r.state.Change(le.event, le.at))
			}
			if err != nil {
				return err
			}
			r.stats.RecoveredEvents++
		}
		r.clock.last = r.state.Now()
	}
	r.chain, r.offset = e.chain, e.offset
	r.snap.bytes += int64(envelopeSize(r.name) + len(e.payload))
	return nil
}

// rememberEntry remembers the request ids of a log entry that counts.
func (r *Realm) rememberEntry(e replayed) error {
	if e.kind != entryBatch {
		return nil
	}
	for le, err := range e.events(r.state.WarmRemember) {
		if err == nil {
			err = e.corrupted(r.state.Remember(le.event, le.at))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restore loads the newest intact snapshot and returns where the log continues from it, or nil for
// the start of the log if there is no such snapshot.
func (r *Realm) restore() (*resume, error) {
	r.snap.dir, r.snap.fs = r.dir+"/"+snapshotDir, r.world.fs
	files, _, err := listSnapshots(r.world.fs, r.snap.dir)
	if err != nil {
		return nil, &Error{Code: CodeFailed, Message: "snapshots of realm " + r.name, Err: err}
	}
	first := r.log.First()
	loaded, err := newestSnapshot(r.world.fs, r.snap.dir, r.name, files, first)
	if vfs.Short(err) {
		return nil, &Error{Code: CodeFailed, Message: "snapshots of realm " + r.name, Err: err}
	}
	r.snap.err = err // about the damaged ones
	if loaded == nil {
		if first > 0 {
			err = errors.Join(fmt.Errorf("the log begins at offset %d, and no intact snapshot covers what came before", first), err)
			return nil, &Error{Code: damage(err), Message: "snapshots of realm " + r.name, Err: err}
		}
		return nil, nil // the log has everything
	}
	if next := r.log.Next(); next <= loaded.seal.offset {
		err = fmt.Errorf("the newest covers position %d, at log offset %d, but the log ends at %d: acknowledged entries are missing", loaded.seal.chain.index, loaded.seal.offset, next)
		return nil, &Error{Code: CodeCorrupt, Message: "snapshots of realm " + r.name, Err: err}
	}
	r.snap.files = loaded.chain
	if err == nil { // otherwise a chain is damaged: the next snapshot begins another
		r.snap.mark = &loaded.mark
	}
	r.clock.last = loaded.seal.last
	r.state, r.epochs = loaded.state, loaded.seal.epochs
	r.chain, r.offset = loaded.seal.chain, loaded.seal.offset
	return loaded.resume(), nil
}

// newestSnapshot loads the newest intact snapshot that a log goes back to which begins at an offset,
// nil if there is none. The error says what is wrong with newer ones.
func newestSnapshot(fsys vfs.FS, dir, realm string, files []snapshotFile, first uint64) (*restored, error) {
	var errs []error
	for _, f := range slices.Backward(files) {
		loaded, err := loadSnapshot(fsys, dir, realm, files, f)
		if err == nil && loaded.seal.offset < first {
			err = fmt.Errorf("snapshot %s/%s: it ends at log offset %d, before the log begins", dir, f.name(), loaded.seal.offset)
		}
		if err == nil {
			return loaded, errors.Join(errs...)
		}
		if vfs.Short(err) { // nothing is wrong with the file
			return nil, err
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// reveal records that an epoch's seed is in the log.
func reveal(epochs []epochInfo, epoch uint64) {
	for i := range epochs {
		if epochs[i].epoch == epoch {
			epochs[i].revealed = true
		}
	}
}

// beginEpoch logs the commitment to a new seed, and reveals the seeds of epochs that ended in a
// crash. It first saves the new seed in a file next to the log.
func (r *Realm) beginEpoch() error {
	if r.chain.epoch == math.MaxUint64 { // no writer counts that far: the entry is forged
		return &Error{Code: CodeCorrupt, Message: fmt.Sprintf("realm %s: epoch %d cannot be followed by another", r.name, r.chain.epoch)}
	}
	failed := func(err error) error {
		return &Error{Code: CodeFailed, Message: "realm " + r.name + ": beginning an epoch", Err: err}
	}
	saved, err := readSecrets(r.world.fs, r.dir)
	if err != nil {
		return failed(err)
	}
	secrets, keep := r.sortSecrets(saved)
	r.epoch, r.seed = r.chain.epoch+1, seed{}
	r.world.entropy(r.name, r.seed[:])
	r.world.entropy(r.name, r.writer[:])
	r.commitment = r.seed.commitment(r.name, r.epoch)
	r.source = countedSource{src: r.seed.source(r.name, r.epoch)}
	if keep { // a bit or two can be found by trial, with the commitment to tell
		if err := replaceFile(r.world.fs, r.dir, fmt.Sprintf("%s.%d", seedFile, r.epoch), saved.raw); err != nil {
			return failed(err)
		}
	}
	if err := writeSecrets(r.world.fs, r.dir, append(slices.Clone(secrets), revelation{r.epoch, r.seed})); err != nil {
		return failed(err)
	}
	begin := epochBegin{rules: rulesVersion, time: r.now(), commitment: r.commitment}
	if err := r.appendControl(entryEpochBegin, begin.append(nil)); err != nil {
		return failed(err)
	}
	r.clock.last = begin.time
	r.epochs = append(r.epochs, epochInfo{first: r.chain.index, epoch: r.epoch, commitment: r.commitment})
	for _, s := range secrets {
		if err := r.appendControl(entryReveal, s.append(nil)); err != nil {
			return failed(err)
		}
		reveal(r.epochs, s.epoch)
	}
	if err := r.log.Sync(); err != nil {
		return failed(err)
	}
	return nil
}

// sortSecrets returns those of the saved seeds whose epoch began and is not revealed yet. It notes
// what an operator must know: a realm goes on without a seed, but nobody can ever prove the draws
// of its epoch. keep says that the file holds the damaged rest of a seed that is missed.
func (r *Realm) sortSecrets(saved savedSecrets) (usable []revelation, keep bool) {
	of := func(epoch uint64) func(revelation) bool {
		return func(s revelation) bool { return s.epoch == epoch }
	}
	var errs []error
	for _, s := range saved.seeds {
		i := slices.IndexFunc(r.epochs, func(e epochInfo) bool { return e.epoch == s.epoch })
		switch {
		case s.epoch > r.chain.epoch:
			// A crash came between saving the seed and logging the commitment, or the log is an
			// older copy.
			errs = append(errs, fmt.Errorf("the seed of epoch %d is dropped: the log ends in epoch %d", s.epoch, r.chain.epoch))
		case i < 0 || r.epochs[i].revealed || slices.ContainsFunc(usable, of(s.epoch)): // no longer needed
		case !s.reveals(r.name, &r.epochs[i]):
			saved.damage = fmt.Errorf("%s: the seed of epoch %d does not match its commitment", seedFile, s.epoch)
		default:
			usable = append(usable, s)
		}
	}
	for _, e := range r.epochs {
		if !e.revealed && !slices.ContainsFunc(usable, of(e.epoch)) {
			errs = append(errs, fmt.Errorf("epoch %d cannot be proven: its seed is lost", e.epoch))
			keep = saved.damage != nil
		}
	}
	if keep {
		errs = append(errs, saved.damage)
	}
	r.seedsErr = errors.Join(errs...)
	return usable, keep
}

// reveals reports whether this is the seed that an epoch committed to.
func (p *revelation) reveals(realm string, e *epochInfo) bool {
	return p.epoch == e.epoch && p.seed.commitment(realm, e.epoch) == e.commitment
}

// endEpoch reveals the epoch's seed. Nothing may be drawn from it afterwards.
func (r *Realm) endEpoch() error {
	if err := r.log.Sync(); err != nil { // under every policy: all draws must be durable before the seed is known
		return &Error{Code: CodeFailed, Message: "realm " + r.name + ": closing", Err: err}
	}
	end := revelation{epoch: r.epoch, seed: r.seed}
	if err := r.appendControl(entryEpochEnd, end.append(nil)); err != nil {
		return &Error{Code: CodeFailed, Message: "realm " + r.name + ": ending the epoch", Err: err}
	}
	return r.log.Sync()
}

// appendControl appends an entry that is not a batch.
func (r *Realm) appendControl(kind entryKind, payload []byte) error {
	entry := append(make([]byte, envelopeSize(r.name)), payload...)
	r.sealEntry(entry, kind)
	if err := r.append(entry); err != nil {
		return err
	}
	r.acked.Store(r.chain.index)
	return nil
}

// replayed is a log entry that counts, with its payload decoded.
type replayed struct {
	envelope
	offset uint64 // in the log
	chain  chain  // after this entry
	begin  epochBegin
	reveal revelation
}

// corrupt returns an error that says that this entry is damaged.
func (e *replayed) corrupt(err error) error {
	return &Error{Code: CodeCorrupt, Message: fmt.Sprintf("realm %s, position %d (log offset %d)", e.realm, e.index, e.offset), Err: err}
}

// resume is a place in a log to continue from: right after an entry that counts. A snapshot
// supplies what the reader must know of the log before it.
type resume struct {
	offset      uint64              // of that entry
	chain       chain               // after it
	commitments map[uint64][32]byte // of epochs not yet revealed
}

func (r *restored) resume() *resume {
	from := &resume{offset: r.seal.offset, chain: r.seal.chain, commitments: map[uint64][32]byte{}}
	for _, e := range r.seal.epochs {
		if !e.revealed {
			from.commitments[e.epoch] = e.commitment
		}
	}
	return from
}

// matches checks that an entry is the one at which the snapshot was taken.
func (r *resume) matches(le logEntry) error {
	if got := sha256.Sum256(le.data); got != r.chain.hash {
		return fmt.Errorf("the entry at log offset %d has hash %x, but the snapshot says %x for position %d: it belongs to another log", le.offset, got[:8], r.chain.hash[:8], r.chain.index)
	}
	return nil
}

// replay iterates over the entries of a log that count, in order. It folds the chain and checks
// every revealed seed against its commitment. It begins after the entry that from names, or at the
// start of the log if from is nil. The log must go through the place where it was last closed, if
// that is known. It ends after the first error. If passed is not nil, it is called for every entry
// that does not count.
func replay(entries func(uint64) iter.Seq2[logEntry, error], realm string, from *resume, last *lastClose, passed func()) iter.Seq2[replayed, error] {
	return func(yield func(replayed, error) bool) {
		c := chain{realm: realm}
		commitments := map[uint64][32]byte{} // of epochs not yet revealed
		first, end, resumed := uint64(0), uint64(0), true
		if from != nil {
			c, commitments, first, resumed = from.chain, maps.Clone(from.commitments), from.offset, false
		}
		for le, err := range entries(first) {
			if err != nil {
				yield(replayed{}, logError(realm, err))
				return
			}
			end = le.offset + 1
			if !resumed {
				if err := cmp.Or(from.matches(le), last.agrees(&c, le.offset)); err != nil {
					e := replayed{envelope: envelope{realm: realm, index: c.index}, offset: le.offset}
					yield(e, e.corrupt(err))
					return
				}
				resumed = true
				continue
			}
			e := replayed{offset: le.offset}
			var counts bool
			e.envelope, counts, err = c.next(le.data)
			if err == nil && !counts {
				if passed != nil {
					passed()
				}
				continue
			}
			e.realm = realm
			if err != nil {
				e.index = c.index + 1 // not the index in the entry: it cannot be trusted
			} else {
				err = cmp.Or(last.agrees(&c, le.offset), e.decode(commitments))
			}
			if err != nil {
				yield(e, e.corrupt(err))
				return
			}
			e.chain = c
			if !yield(e, nil) {
				return
			}
		}
		err := cmp.Or(c.complete(), last.reached(c.index))
		if !resumed {
			err = fmt.Errorf("the log ends before offset %d, where the snapshot of position %d was taken", first, c.index)
		}
		if err != nil {
			e := replayed{envelope: envelope{realm: realm, index: c.index + 1}, offset: end, chain: c}
			yield(e, e.corrupt(err))
		}
	}
}

// decode decodes the payload, except that of a batch.
func (e *replayed) decode(commitments map[uint64][32]byte) (err error) {
	switch e.kind {
	case entryEpochBegin:
		if e.begin, err = decodeEpochBegin(e.payload); err != nil {
			return err
		}
		if e.begin.rules < rulesVersion {
			return fmt.Errorf("rules version %d; this build knows only %d: an older Kuji wrote this log", e.begin.rules, rulesVersion)
		}
		if e.begin.rules > rulesVersion {
			return fmt.Errorf("rules version %d; this build knows only %d: a newer Kuji wrote this log", e.begin.rules, rulesVersion)
		}
		commitments[e.epoch] = e.begin.commitment
	case entryEpochEnd, entryReveal:
		if e.reveal, err = decodeRevelation(e.payload); err != nil {
			return err
		}
		if (e.kind == entryEpochEnd) != (e.reveal.epoch == e.epoch) {
			return fmt.Errorf("%v of epoch %d within epoch %d", e.kind, e.reveal.epoch, e.epoch)
		}
		want, ok := commitments[e.reveal.epoch]
		if !ok {
			return fmt.Errorf("reveal of epoch %d, which never began or is already revealed", e.reveal.epoch)
		}
		if got := e.reveal.seed.commitment(e.realm, e.reveal.epoch); got != want {
			return fmt.Errorf("the seed revealed for epoch %d does not match its commitment", e.reveal.epoch)
		}
		delete(commitments, e.reveal.epoch)
	}
	return nil
}

// corrupted is corrupt for an error that may be nil.
func (e *replayed) corrupted(err error) error {
	if err == nil {
		return nil
	}
	return e.corrupt(err)
}

// loggedEvent is one event of a batch.
type loggedEvent struct {
	event *store.Event // valid until the next iteration
	at    store.At
}

// eventsAtOnce is the number of events whose memory is fetched together.
const eventsAtOnce = 64

// events iterates over the events of a batch. It calls warm with the next few of them before it
// yields them.
func (e *replayed) events(warm func([]store.Event)) iter.Seq2[loggedEvent, error] {
	return func(yield func(loggedEvent, error) bool) {
		time, n, rest, err := decodeBatch(e.payload)
		if err != nil {
			yield(loggedEvent{}, e.corrupt(err))
			return
		}
		var some [eventsAtOnce]store.Event
		for i := uint32(0); i < n && err == nil; {
			m := uint32(0)
			for m < uint32(len(some)) && i+m < n {
				size := 0
				if size, err = store.Decode(rest, &some[m]); err != nil {
					err = e.corrupt(fmt.Errorf("event %d of %d, with %d bytes left: %w", i+m, n, len(rest), err))
					break
				}
				rest = rest[size:]
				if m++; rules.Kind(some[m-1].Kind) == rules.KindClock && i+m < n {
					err = e.corrupt(fmt.Errorf("event %d of %d sets the clock; only the last one may", i+m-1, n))
					break
				}
			}
			warm(some[:m])
			for j := range some[:m] {
				if !yield(loggedEvent{event: &some[j], at: store.At{Position: e.index, Index: i + uint32(j), Time: time}}, nil) {
					return
				}
			}
			i += m
		}
		if err == nil && len(rest) != 0 {
			err = e.corrupt(fmt.Errorf("%d bytes after the last of %d events", len(rest), n))
		}
		if err != nil {
			yield(loggedEvent{}, err)
		}
	}
}
