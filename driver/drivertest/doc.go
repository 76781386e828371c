// Package drivertest checks that a driver keeps the contract of package driver.
//
// A driver's test calls [Run] with a function that makes a [World]: fresh storage, and whatever the
// test can do to it, such as losing an answer on the way. A promise that a world cannot put to the
// test is skipped, and the test's output says so.
//
// [Shared] is a driver in memory that several nodes share over a network which a test controls.
//
// Only tests and the simulator import it. It knows nothing of rewards, or of what entries mean.
package drivertest
