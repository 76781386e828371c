//go:build !amd64

package wal

import "hash/crc32"

// crcOf is the CRC32C of data.
func crcOf(data []byte) uint32 { return crc32.Update(0, castagnoli, data) }
