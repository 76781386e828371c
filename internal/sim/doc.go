// Package sim tries to break Kuji's promises.
//
// [Run] is a deterministic simulation. It runs the whole engine on a disk in memory, on one
// goroutine, with a clock, a network, and clients that retry, time out and repeat request ids. It
// injects faults: power cuts and kills at any disk operation, torn and reordered writes, failing
// writes and fsyncs, a full disk, bit rot, a clock that jumps. A seed and a [Config] decide
// everything, so one command repeats a failure and [Shrink] makes it smaller.
//
// An independent [model] of plain maps judges what the engine logged, after every recovery, and is
// compared with everything that clients were ever told. docs/internals/testing.md says where each
// promise is checked.
//
// This package may use any surface of Kuji except internal/rules and internal/store: an oracle
// that shares code with what it judges shares its mistakes.
package sim
