//go:build !linux

package cluster

func freeSpace(string) uint64 { return 0 }
