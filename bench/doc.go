// Package bench measures the engine from outside, by its public API alone, each time beside a baseline that people know, in the same
// run: the stores of bench/baselines/stores, or the log by itself. Rooms keep benchmarks of their own parts; those that compare with
// the modules of others stand in bench/peers.
//
// All benchmarks are in test files, and the tests run each of them once, small, so that they cannot rot. Nothing but benchmarks may
// enter the room, and nothing may import it.
//
//	go test -run '^$' -bench . ./bench              everything; takes half an hour
//	go test -run '^$' -bench Hot ./bench            one of them
//	bench/gates.sh                                  the speed gates: this tree beside an older commit
//
// An operation is one draw (or grant, or event recovered) wherever the name does not say otherwise. Besides ns/op: draws/s,
// wal_bytes/draw and gc/Mdraw, garbage collections for a million draws.
package bench
