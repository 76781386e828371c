//go:build !unix || solaris || aix

package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
)

// osFile keeps the copies that stand in for mappings up to date.
type osFile struct {
	*os.File
	mu   sync.Mutex
	maps map[*osMapping]struct{}
}

func newOSFile(f *os.File) *osFile { return &osFile{File: f} }

// WriteAt writes, and shows what it wrote in the file's mappings.
func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	f.mu.Lock()
	defer f.mu.Unlock()
	for m := range f.maps {
		if off < int64(len(m.data)) {
			copy(m.data[off:], p[:n])
		}
	}
	return n, err
}

// Map reads the file into memory.
func (f *osFile) Map(length int64) (Mapping, error) {
	if length <= 0 || int64(int(length)) != length {
		return nil, fmt.Errorf("vfs: map %s: length %d, want 1 to the address space", f.Name(), length)
	}
	m := &osMapping{file: f, data: make([]byte, length)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.ReadAt(m.data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if f.maps == nil {
		f.maps = make(map[*osMapping]struct{})
	}
	f.maps[m] = struct{}{}
	return m, nil
}

type osMapping struct {
	file *osFile
	data []byte
}

func (m *osMapping) Bytes() []byte { return m.data }

func (m *osMapping) Unmap() error {
	m.file.mu.Lock()
	defer m.file.mu.Unlock()
	delete(m.file.maps, m)
	m.data = nil
	return nil
}

func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be fsynced there; NTFS journals them
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
