package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/server"
)

// serveCluster is serve for a node of a cluster.
func (p *process) serveCluster(ctx context.Context, eo kuji.Options, so server.Options) (err error) {
	f, c := p.f, &p.f.cluster
	if c.Keys, err = p.readClusterKeys(c.keyFile); err != nil {
		return err
	}
	o := cluster.Options{Config: c.Config, Data: f.data, Engine: eo, Server: so, Log: so.Logger, DrainTimeout: f.drainTimeout}
	if f.history != historyOff {
		o.History = func(log *slog.Logger) cluster.History { return f.historian(f.data, log) }
	}
	o.Clients = func() (net.Listener, error) { return listen("listen", f.listen) }
	o.Nodes = func() (net.Listener, error) {
		own := f.cluster.peerListen
		if !c.External() {
			own = c.Own().Requests()
		}
		l, err := net.Listen(network(own), own)
		if err != nil {
			err = refusedError{"address " + own + ", for requests that other nodes pass on: " + err.Error() + "; see --peers and --peer-listen"}
		}
		return l, err
	}
	if f.redisListen != "" {
		o.Redis = func() (net.Listener, error) { return listen("redis-listen", f.redisListen) }
	}
	n, err := cluster.Start(o)
	if err != nil {
		return err
	}
	err = p.ready("node "+n.Name()+" of cluster "+c.Name, n.Address, n.Redis, &so, kuji.SyncAlways.String())
	if err == nil {
		err = p.untilStopped(ctx, n.Ended())
	}
	uncatch()
	return errors.Join(err, n.Stop(err == nil))
}
