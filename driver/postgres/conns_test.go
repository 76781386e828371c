//go:build unix

package postgres_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/kuji-dev/kuji/driver/postgres"
)

// dying starts a server that lets one client in, and is gone at its first question.
func dying(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		l.Close()
		b := pgproto3.NewBackend(c, c)
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{1, 2, 3, 4}})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if b.Flush() == nil {
			_, _ = b.Receive()
		}
	}()
	return l.Addr().String()
}

// TestDyingHost: the first host of a URL is gone while it is asked whether it takes writes, as in a failover.
// The library then dials it once more, to cancel the question, and the second host at the same time.
func TestDyingHost(t *testing.T) {
	s := server(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for range 50 {
		d, err := postgres.Connect(ctx, postgres.Options{URL: s.URL(dying(t), s.Address()), Cluster: "dying"})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil { // which ends the connections
			t.Fatal(err)
		}
	}
}
