//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// databaseUser returns as whom PostgreSQL runs, and gives that user a directory and what is given of its files:
// PostgreSQL does not run as root.
func databaseUser(dir string, files ...string) (*syscall.SysProcAttr, error) {
	attr := ownGroup()
	if os.Geteuid() != 0 {
		return attr, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		for _, path := range append(files, dir) {
			if err := os.Chown(path, int(uid), int(gid)); err != nil {
				return nil, err
			}
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return attr, os.Chmod(filepath.Dir(dir), 0o711) // only to pass through
	}
	return nil, refusedError{"PostgreSQL does not run as root, and there is no user postgres or nobody: run the demo as another user"}
}
