package vfs

import "runtime"

// Aside returns fsys for work that others must not wait for. Before each call
// that changes something, or opens a file, it lets other goroutines run.
// Otherwise goroutines that are queued behind one in a system call stay there
// until the monitor of Go's scheduler looks. That may be ten milliseconds later
// if such calls are frequent and short. Of the optional abilities Aside keeps
// that of [Unlinker]; its files have none.
func Aside(fsys FS) FS { return aside{fsys} }

type aside struct{ FS }

// giveWay lets other goroutines run.
func giveWay() { runtime.Gosched() }

func (a aside) Create(name string) (File, error) {
	giveWay()
	return asideFileOf(a.FS.Create(name))
}

func (a aside) Open(name string) (File, error) {
	giveWay()
	return asideFileOf(a.FS.Open(name))
}

func (a aside) OpenWrite(name string) (File, error) {
	giveWay()
	return asideFileOf(a.FS.OpenWrite(name))
}

func (a aside) Remove(name string) error {
	giveWay()
	return a.FS.Remove(name)
}

// Unlink gives way before it removes the name. What it returns gives way by
// itself.
func (a aside) Unlink(name string) (free func(stop func() bool), err error) {
	giveWay()
	return Unlink(a.FS, name)
}

func (a aside) Rename(oldname, newname string) error {
	giveWay()
	return a.FS.Rename(oldname, newname)
}

func (a aside) MkdirAll(dir string) error {
	giveWay()
	return a.FS.MkdirAll(dir)
}

func (a aside) SyncDir(dir string) error {
	giveWay()
	return a.FS.SyncDir(dir)
}

type asideFile struct{ File }

func asideFileOf(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return asideFile{f}, nil
}

func (f asideFile) WriteAt(b []byte, pos int64) (int, error) {
	giveWay()
	return f.File.WriteAt(b, pos)
}

func (f asideFile) Sync() error {
	giveWay()
	return f.File.Sync()
}

func (f asideFile) Truncate(size int64) error {
	giveWay()
	return f.File.Truncate(size)
}

func (f asideFile) Close() error {
	giveWay()
	return f.File.Close()
}
