package disk

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// keyFile holds the key that seals the seeds in the log: 64 hexadecimal digits. It is a secret:
// anyone who has it and the log can predict draws.
const keyFile = "key"

// Key returns the directory's key. A missing key is created, durably. A file that holds no key is
// renamed, and a new key is created. In both cases damaged says so: seeds that the old key sealed
// are lost unless somebody repairs it. With readOnly nothing is created or renamed.
func (d *Driver) Key(readOnly bool) (key [32]byte, damaged, err error) {
	name := d.dir + "/" + keyFile
	b, err := vfs.ReadFile(d.o.fs, name, 1<<10)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return key, nil, classify(err)
	}
	raw, wrong := hex.DecodeString(strings.TrimSuffix(string(b), "\n"))
	switch {
	case wrong == nil && len(raw) == len(key):
		if !readOnly { // perhaps a crash came before the file's name was durable
			err = classify(d.o.fs.SyncDir(d.dir))
		}
		return [32]byte(raw), nil, err
	case missing:
		damaged = fmt.Errorf("%s: there was no key", name)
	default:
		damaged = &driver.CorruptError{Place: name, Err: errors.New("want 64 hexadecimal digits")}
	}
	if readOnly {
		return key, damaged, nil
	}
	if !missing {
		if err := d.aside(name); err != nil {
			return key, nil, classify(err)
		}
	}
	step.Entropy(d.o.steps, key[:])
	return key, damaged, classify(vfs.ReplaceFile(d.o.fs, name, tmpSuffix, keyText(key)))
}

// PutKey gives the directory the key of another one. It fails if there is a different key.
func (d *Driver) PutKey(key [32]byte) error {
	name, text := d.dir+"/"+keyFile, keyText(key)
	b, err := vfs.ReadFile(d.o.fs, name, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		err = vfs.ReplaceFile(d.o.fs, name, tmpSuffix, text)
	} else if err == nil && string(b) != string(text) {
		err = fmt.Errorf("%s: there is another key", name)
	}
	return classify(err)
}

func keyText(key [32]byte) []byte { return fmt.Appendf(nil, "%x\n", key) }

// aside renames a damaged key to key.1, or to the next number that is free.
func (d *Driver) aside(name string) error {
	for n := 1; ; n++ {
		old := fmt.Sprintf("%s.%d", name, n)
		_, err := d.o.fs.Stat(old)
		if errors.Is(err, fs.ErrNotExist) {
			return d.o.fs.Rename(name, old)
		}
		if err != nil {
			return err
		}
	}
}
