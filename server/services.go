package server

import (
	"net/http"

	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/redis"
)

// rewardService implements kujiv1connect.RewardServiceHandler: each noun answers for itself.
type rewardService struct {
	*commands
	reads
	catalogs
	past
	*draws
	*events
}

// adminService implements kujiv1connect.AdminServiceHandler.
type adminService struct {
	*commands
	admin
	catalogs
	codes
	*events
}

// services makes what answers calls: the two services, and what answers browsers that ask for
// events. It also makes what answers Redis clients.
func (s *Server) services() (rewardService, adminService, http.Handler) {
	granted := &access.Granted{Keys: s.o.Keys, Stopping: s.stopping}
	c := &commands{s.realms, granted, s.metrics}
	r := reads{s.realms}
	cat := catalogs{s.realms, s.o.Logger}
	e := &events{s.shares, s.realms, s.feeds, s.journal, &s.routes}
	d := &draws{limits: &s.o.Limits, keys: s.o.Keys, stopping: s.stopping, gate: s.gate, realms: s.realms, shares: s.shares, metrics: s.metrics, journal: s.journal}
	l := &s.o.Limits
	s.redis = (&redis.Server{
		Backend: newRedisBackend(c, r, s.shares, s.journal, s.metrics),
		Gate:    s.gate, Keys: s.o.Keys, TLS: s.o.TLS, Stopping: s.stopping, Version: s.o.Version,
		Limits: redis.Limits{RequestBytes: l.RequestBytes, BatchBytes: l.BatchBytes,
			HeaderTimeout: l.HeaderTimeout, ReadTimeout: l.ReadTimeout, WriteTimeout: l.WriteTimeout, IdleTimeout: l.IdleTimeout},
	}).Init()
	return rewardService{c, r, cat, past{s.realms, s.o.History}, d, e},
		adminService{c, admin{s.realms, s.files, s.o.Logger, s.o.Cluster, s.o.Version, &s.draining}, cat, codes{s.realms}, e}, http.HandlerFunc(e.serve)
}
