// Package rivals compares Kuji with what users would pick instead, doing the same job over loopback in the same run: pick an entry by
// weight from limited stock, once for each request id, add its item to the player's inventory, and write the history down. Redis does
// it with a Lua script, PostgreSQL with functions; both are started by the benchmarks with a fresh data directory, and skipped with a
// message where they are not installed:
//
//	apt-get install redis-server postgresql
//	cd bench/rivals && go test -run '^$' -bench . -benchtime 2s
//
// Each is driven by its usual Go client. Redis and Kuji are driven by a lean client as well
// (lean_test.go), which leaves nearly all of the shared processor to the server.
//
// An operation is one draw that was acknowledged, under a new request id, for one of 100 000 players at random, from a pool of 100
// entries. The package is a module of its own, so that the library does not need the clients of databases. Nothing may import it.
package rivals
