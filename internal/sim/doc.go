// Package sim tries to break Kuji's promises.
//
// [Run] is a deterministic simulation: the whole engine on a disk in memory, on
// one goroutine, with a clock, a network, clients that retry, time out and repeat
// request ids, and faults: power cuts and kills at any operation of the disk,
// torn and reordered writes, failing writes and fsyncs, a full disk, bit rot, a
// clock that jumps. A seed and a [Config] decide everything, so that a failure
// is found again by one command and made smaller by [Shrink].
//
// An independent [model] of plain maps judges what the engine logged, after
// every recovery, and everything that a client was ever told is compared with
// it. docs/reliability.md says which promise is checked where.
//
// The room may use any surface of Kuji and nothing of internal/rules or internal/store: an oracle
// that shares code with what it judges shares its mistakes.
package sim
