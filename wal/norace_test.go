//go:build !race

package wal_test

const everyByte = 1

const raced = false
