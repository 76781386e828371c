package access

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// ErrExposed is wrapped by the errors of [CheckListen].
var ErrExposed = errors.New("refusing to listen")

// Exposure says how a server that wants to listen is protected.
type Exposure struct {
	TLS      bool // speaks TLS
	Insecure bool // plain text on a network is explicitly allowed
	Keys     bool // has API keys
}

// CheckListen refuses addresses that would expose a server by accident. addr is "host:port"; an
// empty host means every interface. Loopback is always allowed. Any other address needs API keys,
// and TLS or Insecure. No name but "localhost" counts as loopback: what it resolves to may change.
func CheckListen(addr string, e Exposure) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: want host:port: %w", addr, err)
	}
	if IsLoopback(CanonicalHost(host)) {
		return nil
	}
	var missing []string
	if !e.TLS && !e.Insecure {
		missing = append(missing, "TLS (a certificate and its key), or plain text allowed explicitly with --insecure")
	}
	if !e.Keys {
		missing = append(missing, "API keys (a key file)")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w on %s, which others can reach: it needs %s; or listen on loopback, for example 127.0.0.1",
		ErrExposed, addr, strings.Join(missing, ", and "))
}

// CanonicalHost removes differences in how a host is written: letter case, brackets, a trailing
// dot.
func CanonicalHost(h string) string {
	h = strings.TrimSuffix(strings.ToLower(h), ".")
	if len(h) > 1 && h[0] == '[' && h[len(h)-1] == ']' {
		h = h[1 : len(h)-1]
	}
	return h
}

// IsLoopback reports whether a canonical host is certainly this machine.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
