package kuji

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Two chains of snapshots are kept that share no file: the newest, and one before it. So damage in
// any one file leaves a state to recover from, as long as the log goes back to it:
//
//	a new chain begins, and its first snapshot is durable
//	with Options.TrimLog, read back from the disk: that snapshot, and the chain before it
//	remove all other snapshots
//	with Options.TrimLog, trim the log before the newest snapshot of the chain before it
//
// What cannot be read back is not relied on. If that is the new snapshot, it goes, and the next one
// begins a chain again. If it is the chain before it, the one before that takes its place, or the
// part of it that is whole. Until the next chain begins, the log is kept from there on.

// prune does this. Only the job that just ended calls it.
func (r *Realm) prune(j *snapshotJob) error {
	r.mu.Lock()
	newest, before := slices.Clone(r.snap.files), slices.Clone(r.snap.before)
	r.mu.Unlock()
	there, _, err := listSnapshots(r.snap.fs, r.snap.dir) // damaged ones too
	if err != nil {
		return err
	}
	others := without(there, newest)
	older := slices.DeleteFunc(slices.Clone(others), func(f snapshotFile) bool { return f.position >= newest[0].position })
	if len(newest) > 1 && oneChain(older) && len(older) == len(others) || len(others) == 0 {
		return nil // this was done when the newest chain began
	}
	if r.o.TrimLog {
		if _, _, err := r.readBack(j, newest); err != nil {
			return r.distrust(newest, err)
		}
	}
	kept, at, damage := r.otherChain(j, older, before)
	if kept == nil {
		kept = older // none of them is good, or all may be
	}
	errs := []error{damage, r.removeSnapshots(without(others, kept))}
	if r.o.TrimLog && at.chain.index > 0 {
		// Keep the entry at the position: it proves that the snapshot belongs to this log.
		errs = append(errs, r.log.TrimBefore(at.offset))
	}
	return errors.Join(errs...)
}

// oneChain reports whether files are one chain and nothing else, or nothing.
func oneChain(files []snapshotFile) bool {
	if len(files) == 0 {
		return true
	}
	chain, ok := snapshotChain(files, files[len(files)-1])
	return ok && len(chain) == len(files)
}

// without returns the files that are not among some.
func without(files, some []snapshotFile) []snapshotFile {
	return slices.DeleteFunc(slices.Clone(files), func(f snapshotFile) bool {
		return slices.ContainsFunc(some, func(o snapshotFile) bool { return o.name() == f.name() })
	})
}

// otherChain returns the newest chain among files, up to its newest snapshot that can be read back
// and that the log goes back to, and that snapshot's seal. It returns nil if there is none. The
// error says what is damaged. If the log is never trimmed, nothing is read, and there is no seal.
// before is the newest chain as far as is known, or nil.
func (r *Realm) otherChain(j *snapshotJob, files, before []snapshotFile) (chain []snapshotFile, at seal, err error) {
	var errs []error
	for len(files) > 0 {
		chain, ok := before, len(before) > 0
		if before = nil; !ok {
			chain, ok = snapshotChain(files, files[len(files)-1])
		}
		if !ok { // the rest of a removal, or somebody's
			files = files[:len(files)-1]
			continue
		}
		if !r.o.TrimLog {
			return chain, seal{}, nil
		}
		whole, s, err := r.readBack(j, chain)
		if errors.Is(err, errRealmStopped) {
			return nil, seal{}, err
		}
		if err != nil {
			errs = append(errs, err)
			r.beginAnew()
		}
		if whole > 0 && s.offset >= r.log.First() {
			return chain[:whole], s, errors.Join(errs...)
		}
		files = without(files, chain)
	}
	return nil, seal{}, errors.Join(errs...)
}

// readBack loads a chain of snapshots from the disk, keeping nothing of it, and returns how many of
// them are whole, and the seal of the last of these.
func (r *Realm) readBack(j *snapshotJob, chain []snapshotFile) (whole int, last seal, err error) {
	checker := &readBack{Loader: store.NewChecker(), r: r, j: j}
	chain = slices.Clone(chain)
	for i := range chain {
		if err := dropCache(r.snap.fs, r.snap.dir+"/"+chain[i].name()); err != nil {
			return i, last, fmt.Errorf("reading snapshots back: %w", err)
		}
		written := chain[i].digest // zero if it was not this realm's life that wrote it
		s, err := loadFile(r.snap.fs, r.snap.dir, r.name, chain, i, checker)
		if err == nil && written != [32]byte{} && written != chain[i].digest {
			err = fmt.Errorf("snapshot %s/%s: it is not what was written", r.snap.dir, chain[i].name())
		}
		if err != nil {
			return i, last, fmt.Errorf("reading snapshots back: %w", err)
		}
		last = s
	}
	return len(chain), last, nil
}

// readBack pauses while requests are served, and gives up when the realm stops.
type readBack struct {
	*store.Loader
	r *Realm
	j *snapshotJob
}

func (b *readBack) Block(kind store.BlockKind, data []byte) error {
	if b.r.snap.stop.Load() {
		return errRealmStopped
	}
	b.j.pause(b.r)
	return b.Loader.Block(kind, data)
}

// dropCache makes the next read of a file come from the disk, where the system can.
func dropCache(fsys vfs.FS, name string) error {
	file, err := fsys.Open(name)
	if err != nil {
		return err
	}
	if d, ok := file.(vfs.CacheDropper); ok {
		err = d.DropCache()
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) { // in a sandbox
			err = nil
		}
	}
	return errors.Join(err, file.Close())
}

// beginAnew makes the next snapshot begin a chain.
func (r *Realm) beginAnew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.snap.mark = nil
}

var errNotReadBack = errors.New("the snapshot was removed again")

// distrust removes the first snapshot of the newest chain, which was just written and cannot be
// read back. A chain with more of them stays, like any that is damaged, until others have taken its
// place.
func (r *Realm) distrust(newest []snapshotFile, cause error) error {
	if errors.Is(cause, errRealmStopped) {
		return cause // it was not read to its end
	}
	r.beginAnew()
	if len(newest) > 1 {
		return cause
	}
	r.mu.Lock()
	r.snap.files = nil
	r.mu.Unlock()
	return errors.Join(cause, errNotReadBack, r.removeSnapshots(newest))
}

// removeSnapshots removes files durably and then frees their space. Nobody has them open. It takes
// them one by one, to keep each commit of the file system's journal small: the log's fsyncs wait
// for it.
func (r *Realm) removeSnapshots(files []snapshotFile) error {
	if len(files) == 0 {
		return nil // without an fsync, which would delay those of the log
	}
	var errs []error
	for i := range files {
		free, err := vfs.Unlink(r.snap.fs, r.snap.dir+"/"+files[i].name())
		if free != nil {
			err = r.snap.fs.SyncDir(r.snap.dir)
			// Do not cut a file that may be back after a crash.
			free(func() bool { return err != nil || r.snap.stop.Load() })
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, r.snap.fs.SyncDir(r.snap.dir))...)
}
