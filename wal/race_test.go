//go:build race

package wal_test

// everyByte is the distance of the bytes that are flipped. The race detector
// makes that test ten times slower and finds nothing in it.
const everyByte = 11
