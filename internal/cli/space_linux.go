package cli

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes the file system of a directory has left for a process without privileges.
func freeSpace(dir string) (bytes uint64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
