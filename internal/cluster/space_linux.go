package cluster

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes an unprivileged process can still write to a directory; 0 if unknown.
func freeSpace(dir string) uint64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
