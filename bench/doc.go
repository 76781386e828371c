// Package bench measures the engine from outside, through its public API. Each benchmark runs next
// to a baseline that people know: the stores of bench/baselines/stores, or the log alone. Packages
// keep the benchmarks of their own parts. Comparisons with other people's modules are in
// bench/peers.
//
// All benchmarks are in test files. The tests run each of them once, with a small input, so that
// none of them rots. This package contains only benchmarks, and nothing may import it.
//
//	go test -run '^$' -bench . ./bench              everything; takes half an hour
//	go test -run '^$' -bench Hot ./bench            one of them
//	bench/gates.sh                                  the speed gates: this tree and an older commit
//
// An operation is one draw, grant or recovered event, unless the name says otherwise. The
// benchmarks report ns/op, draws/s, wal_bytes/draw, allocs/draw and gc/Mdraw, the garbage
// collections per million draws.
//
// bench/gates.sh builds realm, draw, grant, batch, catalogs and recovery_test.go at an older commit,
// too, so they use only what b98385f has.
package bench
