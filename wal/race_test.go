//go:build race

package wal_test

// everyByte is the distance of the bytes that are flipped. The race detector
// makes that test ten times slower and finds nothing in it.
const everyByte = 11

// raced says that the race detector watches: it takes reads of a mapping next to
// the writer of a file, which are another process's, for races.
const raced = true
