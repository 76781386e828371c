package cluster

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes the file system of a directory has left for a process without
// privileges; 0 if the system does not say.
func freeSpace(dir string) uint64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
