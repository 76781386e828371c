package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
)

const (
	// logPath is where a node connects a reader with its NATS server.
	logPath = "/cluster/log"
	// protocolNATS is what the two speak from then on.
	protocolNATS = "nats"
	// maxLogReaders is the most readers that a node has at a time.
	maxLogReaders = 4
	// dialTimeout bounds how long a node may take to connect a reader.
	dialTimeout = 5 * time.Second
	// offlinePatience is how long Offline tries while the servers elect leaders.
	offlinePatience = 30 * time.Second
)

// StartNATS starts the server that keeps the node's part of the log.
func (c *Config) StartNATS(data string, log *slog.Logger) (*embedded.Server, error) {
	if err := c.settle(data); err != nil {
		return nil, err
	}
	o := embedded.Options{Dir: Dir(data), Cluster: c.Name, Node: c.Node, Logger: log}
	passwords := c.Keys.passwords(c.Name)
	o.Secret, o.Accepted = passwords[0], passwords[1:]
	if len(c.Peers) > 1 {
		conf, err := c.tls(c.Peers[c.Node].Requests())
		if err != nil {
			return nil, err
		}
		o.Listen, o.Advertise, o.TLS, o.Peers = c.Own().Log(), c.Peers[c.Node].Log(), conf, map[string]string{}
		for name, p := range c.Peers {
			o.Peers[name] = p.Log()
		}
	}
	return embedded.Start(o)
}

// options returns the options of a driver for the cluster's log, which server keeps; nil: those of c.Store do.
func (c *Config) options(server *embedded.Server) jetstream.Options {
	o := c.Store.NATS
	o.Cluster, o.Replicas = c.Name, c.replicas()
	if server != nil {
		o.Connect = append(o.Connect, server.Connect())
	}
	return o
}

// Offline calls do with the log of a cluster of which no node runs. Meanwhile it runs the NATS servers of
// some nodes, whose data directories at names: those of a majority, here or on other machines, are needed.
func (c *Config) Offline(ctx context.Context, at map[string]string, do func(Log) error) (err error) {
	var server *embedded.Server
	for name, data := range at {
		node := *c
		node.Node = name
		if server, err = node.StartNATS(data, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		defer func(s *embedded.Server) { err = errors.Join(err, s.Close()) }(server)
	}
	if server != nil {
		if err := server.Ready(ctx); err != nil {
			return err
		}
	}
	d, err := c.connectOffline(ctx, server)
	if err != nil {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	err = do(d)
	if end := d.Close(); !errors.Is(end, driver.ErrClosed) { // do may have closed it
		err = errors.Join(err, end)
	}
	return err
}

func (c *Config) connectOffline(ctx context.Context, server *embedded.Server) (Log, error) {
	if server == nil {
		return c.connect(ctx, "", slog.New(slog.DiscardHandler))
	}
	o := c.options(server)
	o.Patience = offlinePatience
	return jetstream.Connect(ctx, o)
}

// OpenLog opens the log of a running cluster: through the first node that answers, or where c.Store says.
func (c *Config) OpenLog(ctx context.Context) (Log, error) {
	if !c.Store.within() {
		d, err := c.connect(ctx, "", slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
		return d, nil
	}
	o := c.options(nil)
	conf, err := c.tls("")
	if err != nil {
		return nil, err
	}
	dial := func() (net.Conn, error) {
		var errs []error
		for _, name := range c.Names() {
			conn, err := dialLog(c.Peers[name], conf)
			if err == nil {
				return conn, nil
			}
			errs = append(errs, fmt.Errorf("node %s: %w", name, err))
		}
		return nil, errors.Join(errs...)
	}
	conn, err := dial() // the driver would only log why it cannot
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("no node of cluster %s answers: %w", c.Name, err))
	}
	if err := conn.Close(); err != nil {
		return nil, err
	}
	o.URLs = []string{"nats://" + c.Name}
	o.Connect = append(o.Connect, embedded.Through(dial, c.Keys.passwords(c.Name)[0]))
	d, err := jetstream.Connect(ctx, o)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	return d, nil
}

// serveLog connects the caller with this node's NATS server, until one of them is gone or the node stops.
func (n *Node) serveLog(w http.ResponseWriter, r *http.Request) {
	select {
	case n.readers <- struct{}{}:
		defer func() { <-n.readers }()
	default:
		http.Error(w, fmt.Sprintf("%d others read the log: try again later", cap(n.readers)), http.StatusServiceUnavailable)
		return
	}
	kept, ok := n.backend.(host)
	if !ok {
		http.Error(w, "the log is kept elsewhere: want --store, as this node has it", http.StatusNotFound)
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(n.stopped, end)()
	proxy := httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {},
		Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			here, err := kept.open()
			header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocolNATS}}
			return &http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: here}, err
		}),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		},
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// dialLog connects with the NATS server of a node.
func dialLog(p Peer, conf *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // only that can be upgraded
	c := &upgraded{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { c.Conn = got.Conn }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.Requests()+logPath, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", protocolNATS)
	resp, err := (&http.Transport{TLSClientConfig: conf, Protocols: protocols, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()                                // read only
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // what came of it will do
		return nil, fmt.Errorf("it answers %s: %s", resp.Status, why)
	}
	c.from = resp.Body
	return c, nil
}

// upgraded is a connection of which some bytes were read ahead.
type upgraded struct {
	net.Conn
	from io.Reader
}

func (c *upgraded) Read(p []byte) (int, error) { return c.from.Read(p) }
