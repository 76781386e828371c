//go:build unix && !solaris && !aix && !race

package vfs

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// largeMapping is the length from which a mapping's memory comes from the system.
const largeMapping = 1 << 20

// newMapping returns a mapping of zeros. A log maps whole segments and touches a small part of them. The
// system gives such memory page by page when it is touched. The heap would clear all of it first. This
// is why the file uses unsafe.
func newMapping(length int64) *memMapping {
	if length >= largeMapping {
		start, err := unix.MmapPtr(-1, 0, nil, uintptr(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err == nil {
			mp := &memMapping{data: unsafe.Slice((*byte)(start), int(length))}
			runtime.AddCleanup(mp, func(start unsafe.Pointer) { _ = unix.MunmapPtr(start, uintptr(length)) }, start)
			return mp
		}
	}
	return &memMapping{data: make([]byte, length)}
}
