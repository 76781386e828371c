// Package backends measures what keeps a realm's log, side by side and in one run: a server with a data
// directory, three nodes with the NATS servers within them, and servers on PostgreSQL, alone and with a
// synchronous standby. All are real processes on this machine, which wait for its disk:
//
//	make backends
//	go test ./bench/backends -run TestBackends -v -timeout 0 -measure -repeats 5 -only disk,postgres
//
// Every repeat measures each backend once, one after the other, each with fresh servers and directories, so
// that what else the machine does meets all of them. The table has medians, and the least and the most.
// Without -measure, the test takes a few seconds and shows only that the measuring works.
//
// It is part of the main module, as it needs nothing that the server does not need. Nothing may import it.
package backends
