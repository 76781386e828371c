package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const (
	filesDir  = "snapshots"
	tmpSuffix = ".tmp"
	// syncEach is how many bytes are fsynced at a time: one large fsync would delay the log's.
	syncEach = 1 << 20
)

// files are a realm's files, in a directory of their own.
type files struct {
	*gate
	fs  vfs.FS
	dir string

	mu      sync.Mutex
	ready   bool   // the directory is there, and what a crash left is removed
	writers uint64 // how many there were
}

// names returns the files' names, ascending.
func (f *files) names() ([]string, error) {
	names, err := f.fs.List(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, tmpSuffix) }), err
}

func (f *files) List(context.Context) ([]driver.FileInfo, error) {
	if err := f.mayRead(); err != nil {
		return nil, err
	}
	names, err := f.names()
	if err != nil {
		return nil, classify(err)
	}
	var all []driver.FileInfo
	for _, name := range names {
		info, err := f.fs.Stat(f.dir + "/" + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, classify(err)
		}
		all = append(all, driver.FileInfo{Name: name, Size: info.Size()})
	}
	return all, nil
}

func (f *files) OpenFile(_ context.Context, name string) (driver.File, error) {
	if err := cmp.Or(f.mayRead(), driver.CheckFile(name)); err != nil {
		return nil, err
	}
	file, err := f.fs.Open(f.dir + "/" + name)
	if err != nil {
		return nil, classify(err)
	}
	size, err := file.Size()
	if err != nil {
		return nil, classify(errors.Join(err, file.Close()))
	}
	return &reader{File: file, size: size}, nil
}

type reader struct {
	vfs.File
	size int64
}

func (r *reader) Size() int64 { return r.size }

func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.File.ReadAt(p, off)
	if vfs.Short(err) {
		err = classify(err)
	}
	return n, err
}

// DropCache implements driver.CacheDropper, where the system can.
func (r *reader) DropCache() error {
	d, ok := r.File.(vfs.CacheDropper)
	if !ok {
		return nil
	}
	err := d.DropCache()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) { // in a sandbox
		return nil
	}
	return err
}

func (f *files) Create(context.Context) (driver.FileWriter, error) {
	if err := f.mayWrite(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready {
		err := f.fs.MkdirAll(f.dir)
		if err == nil {
			_, err = removeAll(f.fs, f.dir, tmpSuffix) // what a crash left of files without a name
		}
		if err != nil {
			return nil, classify(err)
		}
		f.ready = true
	}
	f.writers++
	tmp := fmt.Sprintf("%s/%d%s", f.dir, f.writers, tmpSuffix)
	file, err := f.fs.Create(tmp)
	if err != nil {
		f.ready = false // perhaps somebody removed the directory
		return nil, classify(err)
	}
	return &writer{files: f, tmp: tmp, file: file}, nil
}

// removeAll removes the files in dir whose names end with suffix, and reports whether there were some.
func removeAll(fsys vfs.FS, dir, suffix string) (some bool, err error) {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			some, err = true, errors.Join(err, fsys.Remove(dir+"/"+name))
		}
	}
	return some, err
}

// writer writes a file under a temporary name.
type writer struct {
	files *files
	tmp   string
	file  vfs.File // nil: closed
	off   int64
	dirty int64 // bytes since the last fsync
}

func (w *writer) Write(p []byte) (int, error) {
	if w.file == nil {
		return 0, errDone
	}
	n, err := w.file.WriteAt(p, w.off)
	w.off += int64(n)
	w.dirty += int64(n)
	if err == nil && w.dirty >= syncEach {
		w.dirty = 0
		err = w.file.Sync()
	}
	return n, classify(err)
}

func (w *writer) Commit(_ context.Context, name string) error {
	if err := cmp.Or(w.files.mayWrite(), driver.CheckFile(name)); err != nil {
		return err
	}
	if w.file == nil {
		return errDone
	}
	err := w.file.Sync()
	err = errors.Join(err, w.file.Close())
	w.file = nil
	if err == nil {
		err = w.files.fs.Rename(w.tmp, w.files.dir+"/"+name)
	}
	if err != nil {
		w.files.fs.Remove(w.tmp) // a full disk needs the room; the next start removes what is left
		return classify(err)
	}
	return classify(w.files.fs.SyncDir(w.files.dir))
}

var errDone = errors.New("the file was committed or dropped")

func (w *writer) Abort() {
	if w.file != nil {
		w.file.Close() // errors do not matter: the next start removes what is left
		w.file = nil
		w.files.fs.Remove(w.tmp)
	}
}

// Remove implements driver.Files. It frees the space in pieces, so that no fsync waits long.
func (f *files) Remove(ctx context.Context, name string) error {
	if err := cmp.Or(f.mayWrite(), driver.CheckFile(name)); err != nil {
		return err
	}
	free, err := vfs.Unlink(f.fs, f.dir+"/"+name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = f.fs.SyncDir(f.dir)
	}
	if free != nil { // after an error it frees nothing: a crash could bring the file back, cut
		free(func() bool { return err != nil || ctx.Err() != nil })
	}
	return classify(err)
}
