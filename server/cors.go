package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
)

// A web page of another site can call the server only if that site is one of Options.Origins. The
// browser asks first, without a key (a preflight). That has no effect, and is answered before keys
// are looked at. The call needs a key or a token like any other. There are no cookies, so no page
// can act with another page's.

// preflightSeconds is how long a browser may remember the answer to a preflight: the longest that
// any does.
const preflightSeconds = "7200"

// allowedHeaders are those that Connect, gRPC-Web and JSON clients send.
var allowedHeaders = strings.Join([]string{"Authorization", "X-Api-Key", "Content-Type", "Content-Encoding",
	"Connect-Protocol-Version", "Connect-Timeout-Ms", "Connect-Content-Encoding", "Grpc-Timeout", "X-Grpc-Web", "X-User-Agent", "Last-Event-Id"}, ", ")

// exposedHeaders are those of answers that clients read.
const exposedHeaders = "Content-Encoding, Connect-Content-Encoding, Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Retry-After"

// sites says which web pages may call the server, and by which names it is called.
type sites struct {
	keys    bool // the server asks for keys
	guard   *http.CrossOriginProtection
	hosts   map[string]bool // of a server without keys, in addition to loopback
	origins map[string]bool
}

func newSites(o *Options) (*sites, error) {
	s := &sites{keys: o.Keys != nil, guard: http.NewCrossOriginProtection(), hosts: map[string]bool{}, origins: map[string]bool{}}
	for _, h := range o.Hosts {
		s.hosts[access.CanonicalHost(h)] = true
	}
	if len(o.Origins) > 0 && !s.keys {
		return nil, errors.New("server: Origins without Keys: any page of these sites could do everything; set Keys")
	}
	for _, one := range o.Origins {
		if wrong := wrongOrigin(one); wrong != "" {
			return nil, fmt.Errorf("server: origin %.100q, want one as browsers send it, such as https://shop.example: %s", one, wrong)
		}
		s.origins[one] = true
	}
	return s, nil
}

// check protects a server that asks for no key from web pages. A page can point its own name at
// 127.0.0.1, and passes for the same origin then; Host still has the name. A call may be a GET, as of a
// picture: the page cannot see the answer, but the server would work for it.
func (s *sites) check(r *http.Request, call bool) *connect.Error {
	if s.keys {
		return nil
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	err := s.guard.Check(r)
	if host = access.CanonicalHost(host); !access.IsLoopback(host) && !s.hosts[host] {
		err = fmt.Errorf("host %q: a server without API keys answers to loopback names only", r.Host)
	}
	if from := r.Header.Get("Sec-Fetch-Site"); err == nil && call && (from == "cross-site" || from == "same-site") {
		err = errors.New("a page of another site asks: a server without API keys answers its own pages only")
	}
	if err == nil {
		return nil
	}
	return contract.Refused(connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN, err)
}

// defaultPorts are the ports that browsers leave out.
var defaultPorts = map[string]string{"https": "443", "http": "80"}

// wrongOrigin says why no browser sends an origin, which would match nothing; "": browsers do.
func wrongOrigin(o string) string {
	u, err := url.Parse(o)
	if err != nil || defaultPorts[u.Scheme] == "" || u.Hostname() == "" || !strings.EqualFold(o, u.Scheme+"://"+u.Host) || strings.Contains(o, "*") {
		return "https:// or http:// and a host, no path, no wildcard"
	}
	n, err := strconv.ParseUint(cmp.Or(u.Port(), defaultPorts[u.Scheme]), 10, 16)
	if err != nil || n == 0 {
		return "a port from 1 to 65535"
	}
	host := strings.ToLower(u.Hostname())
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return "browsers write such a host in ASCII, as in xn--bcher-kva.example"
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.String()
	}
	want := u.Scheme + "://" + net.JoinHostPort(host, strconv.FormatUint(n, 10))
	if want = strings.TrimSuffix(want, ":"+defaultPorts[u.Scheme]); want != o {
		return "browsers send " + want
	}
	return ""
}

// isPreflight reports whether a request is a browser's question whether a page may make a call.
func (s *sites) isPreflight(r *http.Request) bool {
	return len(s.origins) > 0 && r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers that question with yes, or returns why the answer is no.
func (s *sites) preflight(w http.ResponseWriter, r *http.Request, e *endpoint) *connect.Error {
	if !s.origins[r.Header.Get("Origin")] || e == nil {
		return contract.Refused(connect.CodePermissionDenied, kujiv1.Reason_REASON_FORBIDDEN,
			fmt.Errorf("pages of %.100q may not call this server", r.Header.Get("Origin")))
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", allowedHeaders)
	h.Set("Access-Control-Max-Age", preflightSeconds)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// crossOrigin lets a page of an allowed origin read the answer.
func (s *sites) crossOrigin(w http.ResponseWriter, r *http.Request, e *endpoint) {
	if len(s.origins) == 0 || e == nil {
		return
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if origin := r.Header.Get("Origin"); s.origins[origin] {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", exposedHeaders)
	}
}
