package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/kuji-dev/kuji/server/access"
)

// profiles serves the Go runtime's profiles of this process.
type profiles struct {
	listener net.Listener
	http     http.Server
	ended    chan error
}

// serveProfiles listens on a loopback address, because profiles need no key and
// tell what the process works on. Without an address it does nothing and
// returns nil, which works like any other.
func serveProfiles(address string) (*profiles, error) {
	if address == "" {
		return nil, nil
	}
	if err := access.CheckListen(address, access.Exposure{}); err != nil {
		return nil, usagef("--pprof: %w", err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--pprof: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	p := &profiles{listener: l, ended: make(chan error, 1)}
	p.http = http.Server{Handler: onLoopback(mux), ReadHeaderTimeout: 5 * time.Second}
	go func() { p.ended <- p.http.Serve(l) }()
	return p, nil
}

// onLoopback refuses requests for other hosts: a web page whose name was made
// to mean loopback.
func onLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := access.CheckListen(r.Host, access.Exposure{}); err != nil {
			http.Error(w, "profiles are for loopback", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *profiles) url() string {
	if p == nil {
		return ""
	}
	return "http://" + p.listener.Addr().String() + "/debug/pprof/"
}

// close ends the profiles that are still being read.
func (p *profiles) close() error {
	if p == nil {
		return nil
	}
	err := p.http.Close()
	if ended := <-p.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
