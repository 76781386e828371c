package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
)

// The log of a running cluster is read through a node: whoever knows the cluster's key asks for
// logPath at the port for the other nodes, and is then connected with that node's NATS server. The
// driver does the rest, and checks what it reads as on a node.

const (
	// logPath is where a node connects others with its server.
	logPath = "/cluster/log"
	// maxLogReaders is the most connections of that kind that a node has at a time.
	maxLogReaders = 4
	// dialTimeout bounds how long one node may take to connect somebody.
	dialTimeout = 5 * time.Second
	// protocolNATS is what is spoken from then on.
	protocolNATS = "nats"
)

// serveLog connects the caller with this node's NATS server, until one of them is gone or the node
// stops.
func (n *node) serveLog(w http.ResponseWriter, r *http.Request) {
	select {
	case n.readers <- struct{}{}:
		defer func() { <-n.readers }()
	default:
		http.Error(w, fmt.Sprintf("%d others read the log: try again later", cap(n.readers)), http.StatusServiceUnavailable)
		return
	}
	if r.Header.Get("Upgrade") != protocolNATS {
		http.Error(w, "want Upgrade: "+protocolNATS, http.StatusUpgradeRequired)
		return
	}
	if n.nats == nil {
		http.Error(w, "the log is kept elsewhere: want --nats, as this node has it", http.StatusNotFound)
		return
	}
	here, err := n.nats.Dial()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer here.Close() // nothing is lost by its failing: the caller asks again
	there, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "want HTTP/1.1: "+err.Error(), http.StatusHTTPVersionNotSupported)
		return
	}
	defer there.Close()
	if there.SetDeadline(time.Time{}) != nil {
		return
	}
	end := func() { _, _ = here.Close(), there.Close() }
	defer context.AfterFunc(n.stopped, end)()
	if _, err := io.WriteString(there, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocolNATS+"\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer end()
		_, _ = io.Copy(here, buffered) // it ends when either side does
	}()
	_, _ = io.Copy(there, here)
	end()
	<-done
}

// dialLog connects with the NATS server of a node.
func dialLog(p peer, conf *tls.Config) (_ net.Conn, err error) {
	conf = conf.Clone()
	conf.NextProtos = []string{"http/1.1"} // only that can be upgraded
	deadline := time.Now().Add(dialTimeout)
	conn, err := tls.DialWithDialer(&net.Dialer{Deadline: deadline}, "tcp", p.requests(), conf)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodGet, "https://"+p.requests()+logPath, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", protocolNATS)
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // what came of it will do
		return nil, fmt.Errorf("it answers %s: %s", resp.Status, why)
	}
	return &upgraded{conn, from}, conn.SetDeadline(time.Time{})
}

// upgraded is a connection of which some bytes were read ahead.
type upgraded struct {
	net.Conn
	from *bufio.Reader
}

func (c *upgraded) Read(p []byte) (int, error) { return c.from.Read(p) }

// openLog opens the log of a running cluster, at the first node that answers or where --nats says.
func (f *clusterFlags) openLog(ctx context.Context, keys clusterKeys) (*jetstream.Driver, error) {
	o := jetstream.Options{Cluster: f.name}
	if f.nats.external() {
		f.nats.lead(&o)
		return connectLog(ctx, o)
	}
	conf, err := keys.tls(f.name, "")
	if err != nil {
		return nil, err
	}
	dial := func() (net.Conn, error) {
		var errs []error
		for _, name := range f.names() {
			conn, err := dialLog(f.hosts[name], conf)
			if err == nil {
				return conn, nil
			}
			errs = append(errs, fmt.Errorf("node %s: %w", name, err))
		}
		return nil, errors.Join(errs...)
	}
	conn, err := dial() // what the driver would only log
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("no node of cluster %s answers: %w", f.name, err))
	}
	if err := conn.Close(); err != nil {
		return nil, err
	}
	o.URLs = []string{"nats://" + f.name}
	o.Connect = append(o.Connect, embedded.Through(dial, keys.passwords(f.name)[0]))
	return connectLog(ctx, o)
}

func connectLog(ctx context.Context, o jetstream.Options) (*jetstream.Driver, error) {
	d, err := jetstream.Connect(ctx, o)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	return d, nil
}
