package sink

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// positionFile keeps where a target stands that cannot keep it itself. It is replaced as a whole, so
// that a crash leaves the old place or the new one.
type positionFile struct {
	fs   vfs.FS
	name string
	feed Feed
}

// positionFormat is the version of the file.
const positionFormat = 1

// maxPositionFile is the largest file that is read, in bytes.
const maxPositionFile = 4096

type positionJSON struct {
	Format int   `json:"format"`
	Feed   Feed  `json:"feed"`
	Next   Place `json:"next"`
}

// load returns the place; the zero place if there is no file.
func (p *positionFile) load() (Place, error) {
	f, err := p.fs.Open(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		return Place{}, p.writable()
	}
	if err != nil {
		return Place{}, p.failed(err)
	}
	size, err := f.Size()
	data := make([]byte, min(max(size, 0), maxPositionFile))
	if err == nil && len(data) > 0 {
		_, err = f.ReadAt(data, 0)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return Place{}, p.failed(err)
	}
	var got positionJSON
	if err := json.Unmarshal(data, &got); err != nil || got.Format != positionFormat || got.Next.Position == 0 || got.Next.Index < 0 {
		return Place{}, &kuji.Error{Code: kuji.CodeCorrupt, Message: fmt.Sprintf("%s is no position file of format %d: remove it, and the feed begins anew", p.name, positionFormat), Err: err}
	}
	return got.Next, p.feed.check(got.Feed, p.name)
}

// writable finds out early whether there can be a file.
func (p *positionFile) writable() error {
	_, err := p.fs.Stat(path.Dir(p.name))
	return p.failed(err)
}

// save makes a place durable.
func (p *positionFile) save(next Place) error {
	data, err := json.Marshal(positionJSON{positionFormat, p.feed, next})
	if err != nil {
		return err
	}
	temp := p.name + ".new"
	if err := p.fs.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p.failed(err)
	}
	f, err := p.fs.Create(temp)
	if err != nil {
		return p.failed(err)
	}
	_, err = f.WriteAt(append(data, '\n'), 0)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return p.failed(err)
	}
	if err := p.fs.Rename(temp, p.name); err != nil {
		return p.failed(err)
	}
	return p.failed(p.fs.SyncDir(path.Dir(p.name)))
}

func (p *positionFile) failed(err error) error {
	if err == nil {
		return nil
	}
	return &kuji.Error{Code: kuji.CodeFailed, Message: "the position file", Err: err}
}
