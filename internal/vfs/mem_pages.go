//go:build !unix || solaris || aix || race

package vfs

// newMapping returns a mapping of zeros, in memory that the race detector watches.
func newMapping(length int64) *memMapping { return &memMapping{data: make([]byte, length)} }
