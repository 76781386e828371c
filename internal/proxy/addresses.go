package proxy

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
)

// taken are the ports that Addresses has returned in this process.
var taken struct {
	mu    sync.Mutex
	ports map[string]bool
}

// Addresses returns n addresses of this machine at which servers can listen, also again after a stop. No address is
// returned twice in a process. Where all of 127.0.0.0/8 is this machine, a process has an address of its own there:
// the ports of 127.0.0.1 are also those of all who connect to it, so one that is free now need not be free in a moment.
func Addresses(n int) (addresses []string, err error) {
	host := "127.0.0.1"
	if pid := os.Getpid(); runtime.GOOS == "linux" {
		host = fmt.Sprintf("127.%d.%d.%d", 1+pid>>16&0x7f, pid>>8&0xff, pid&0xff)
	}
	taken.mu.Lock()
	defer taken.mu.Unlock()
	if taken.ports == nil {
		taken.ports = map[string]bool{}
	}
	for len(addresses) < n {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, err
		}
		defer l.Close() // when all are known
		if address := l.Addr().String(); !taken.ports[address] {
			taken.ports[address] = true
			addresses = append(addresses, address)
		}
	}
	return addresses, nil
}
