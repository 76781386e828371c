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

// positionFile keeps a target's place for it. A crash leaves the old place or the new one.
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
	data, err := vfs.ReadFile(p.fs, p.name, maxPositionFile)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing {
		_, err = p.fs.Stat(path.Dir(p.name)) // find out early whether there can be a file
	}
	if err != nil || missing {
		return Place{}, kuji.ErrorOf("the position file", err)
	}
	var got positionJSON
	if err := json.Unmarshal(data, &got); err != nil || got.Format != positionFormat || got.Next.Position == 0 || got.Next.Index < 0 {
		return Place{}, &kuji.Error{Code: kuji.CodeCorrupt, Message: fmt.Sprintf("%s is no position file of format %d: remove it, and the feed begins at its start", p.name, positionFormat), Err: err}
	}
	return got.Next, p.feed.check(got.Feed, p.name)
}

// save makes a place durable.
func (p *positionFile) save(next Place) error {
	data, err := json.Marshal(positionJSON{positionFormat, p.feed, next})
	if err != nil {
		return err
	}
	return kuji.ErrorOf("the position file", vfs.ReplaceFile(p.fs, p.name, ".new", append(data, '\n')))
}
