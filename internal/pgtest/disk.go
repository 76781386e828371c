//go:build unix

package pgtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNoDisk is the error of New if a server cannot have a disk of its own: only root on Linux can make one.
var ErrNoDisk = errors.New("a server cannot have a disk of its own here: that takes root on Linux")

// Fill leaves so many bytes of the server's own disk free, if more are, until Free.
func (p *place) Fill(leave int64) error {
	if p.o.Disk == 0 {
		return errors.New("the server has no disk of its own")
	}
	f, err := os.OpenFile(p.ballast(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	const page = 4096
	for {
		free, err := p.Room()
		if err != nil || free-leave < page {
			return err
		}
		if _, err := f.Write(make([]byte, min((free-leave)/page*page, 1<<20))); err != nil && !errors.Is(err, syscall.ENOSPC) {
			return err
		}
	}
}

// Free undoes Fill.
func (p *place) Free() error { return os.Remove(p.ballast()) }

// Room returns how many bytes of the disk on which the server's data is are free.
func (p *place) Room() (int64, error) {
	var at syscall.Statfs_t
	if err := syscall.Statfs(p.disk(), &at); err != nil {
		return 0, err
	}
	return int64(at.Bavail) * int64(at.Bsize), nil
}

func (p *place) ballast() string { return filepath.Join(p.disk(), "ballast") }
