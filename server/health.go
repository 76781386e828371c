package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
)

// unready returns why the server should get no requests, nil if it should.
func (s *Server) unready() []string {
	why := s.Unready()
	for _, r := range s.realms.sorted() {
		if s.realms.err(r) != nil {
			// The cause may name files: only the log has it.
			why = append(why, fmt.Sprintf("realm %s has stopped", r.Name()))
		}
	}
	return why
}

// Unready returns why the server should get no requests, realms apart; none if it should.
func (s *Server) Unready() (why []string) {
	if s.draining.Load() {
		why = append(why, "draining")
	}
	if s.gate.Busy() {
		why = append(why, "overloaded")
	}
	return why
}

// health implements the gRPC health protocol for the process ("") and each service: all are
// healthy, or none.
type health struct {
	s        *Server
	services []string
}

func (h *health) Check(_ context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if req.Service != "" && !slices.Contains(h.services, req.Service) {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no service %q", req.Service))
	}
	if len(h.s.unready()) > 0 {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}

// metricsPath needs the role read. Anybody may ask for the paths of isHealthPath.
const metricsPath = "/metrics"

func isHealthPath(path string) bool { return path == "/healthz" || path == "/readyz" }

// serveOther answers what is not an RPC.
func (s *Server) serveOther(w http.ResponseWriter, r *http.Request) {
	s.gate.Hurry(w, r)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed, want GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if p := (pages{s.o.Console}); p.has(r.URL.Path) {
		p.serve(w, r)
		return
	}
	switch r.URL.Path {
	case "/healthz":
		http.Error(w, "ok", http.StatusOK) // it writes plain text, whatever the status
	case "/readyz":
		if why := s.unready(); len(why) > 0 {
			http.Error(w, "not ready\n"+strings.Join(why, "\n"), http.StatusServiceUnavailable)
			return
		}
		http.Error(w, "ready", http.StatusOK)
	case metricsPath:
		s.metrics.handler.ServeHTTP(w, r)
	}
}
