//go:build !race

package sim_test

// raced says whether the race detector watches.
const raced = false
