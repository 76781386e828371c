package vfs

import "runtime"

// Aside returns fsys for work beside that of others, who must not wait for it: before
// each call that changes something, or opens a file, it lets those run who can. Go's
// scheduler leaves goroutines that are queued behind one in a system call where they are
// until its monitor looks, which may be ten milliseconds later when such calls are
// frequent and short. Of the optional abilities it has that of [Unlinker]; its files have
// none.
func Aside(fsys FS) FS { return aside{fsys} }

type aside struct{ FS }

// giveWay lets those run who can.
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

// Unlink gives way before the name is removed; what it returns, as it does by itself.
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
