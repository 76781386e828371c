package proxy_test

import (
	"net"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/proxy"
)

// A server finds its address free when it comes back, even if clients have connected meanwhile.
func TestAddresses(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		addresses, err := proxy.Addresses(3)
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range addresses {
			if seen[address] || !strings.HasPrefix(address, "127.") {
				t.Fatalf("%s was returned twice, or is not of this machine", address)
			}
			seen[address] = true
			for range 2 {
				l, err := net.Listen("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				// What others connect from has no port of this address, also while nobody listens there.
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				if from := conn.LocalAddr().String(); from == address {
					t.Fatalf("a client connects from %s", from)
				}
				conn.Close()
				l.Close()
			}
		}
	}
}
