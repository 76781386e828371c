//go:build !race

package wal_test

const everyByte = 1
