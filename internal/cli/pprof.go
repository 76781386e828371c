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

// serveProfiles serves the process's profiles until end is called, and returns their URL; without an address it
// does nothing. The address is loopback, because profiles need no key and show what the process works on.
func serveProfiles(address string) (url string, end func() error, err error) {
	if address == "" {
		return "", nothing, nil
	}
	if err := access.CheckListen(address, access.Exposure{}); err != nil {
		return "", nil, usagef("--pprof: %w", err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("--pprof: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	server := http.Server{Handler: onLoopback(mux), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return "http://" + l.Addr().String() + "/debug/pprof/", func() error {
		err := server.Close() // ends the profiles that are still being read, too
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// onLoopback refuses requests for other hosts: those of a web page whose name was made to mean loopback.
func onLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := access.CheckListen(r.Host, access.Exposure{}); err != nil {
			http.Error(w, "profiles are for loopback", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
