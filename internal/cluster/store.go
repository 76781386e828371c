package cluster

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/postgres"
)

// Log is what keeps a cluster's realms and its board.
type Log interface {
	driver.Shared
	backup.Target
}

// Store says what keeps a cluster's log. The zero value is the NATS servers within its nodes.
type Store struct {
	// NATS are servers of the user's own, if it has URLs: where they are, and this client's credentials.
	NATS jetstream.Options
	// Postgres is the URL of a database: see [postgres.Options].
	Postgres string
}

// Waits are how long nodes wait for each other, and for what keeps the log. Zero: as is good for the store.
type Waits struct {
	Lease  time.Duration // for a silent node, before others take its realms: at least 3 s
	Leader time.Duration // how long a request waits while nobody leads its realm
}

// waits returns how long nodes wait.
func (c *Config) waits() Waits {
	w := c.Waits
	w.Lease = cmp.Or(w.Lease, 3*time.Second)
	if c.Store.Postgres != "" {
		w.Leader = cmp.Or(w.Leader, time.Minute) // a managed database takes so long to fail over
	}
	w.Leader = cmp.Or(w.Leader, 15*time.Second) // servers of NATS take up to 9 s to elect a leader
	return w
}

// StoreForms is what a store may be.
const StoreForms = "disk:DIR, nats://HOST:PORT,…, tls://HOST:PORT,… or postgres://USER@HOST/DATABASE"

// natsSchemes are the schemes of NATS servers' URLs.
var natsSchemes = []string{"nats", "tls", "ws", "wss"}

// ParseStore reads where a log is kept. dir is that of disk:DIR. Its errors show no secret.
func ParseStore(text string) (s Store, dir string, err error) {
	if dir, ok := strings.CutPrefix(text, "disk:"); ok && dir != "" {
		return s, dir, nil
	}
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case ok && slices.Contains(natsSchemes, scheme):
		s.NATS, err = parseNATS(scheme, rest)
		return s, "", err
	case ok && (scheme == "postgres" || scheme == "postgresql"):
		s.Postgres = text
		return s, "", postgres.Check(text)
	}
	return s, "", fmt.Errorf("expected %s", StoreForms)
}

// parseNATS reads HOST:PORT,…?creds=FILE&ca=FILE.
func parseNATS(scheme, text string) (o jetstream.Options, err error) {
	hosts, query, _ := strings.Cut(text, "?")
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return o, fmt.Errorf("what follows the ? is no list of parameters: expected creds=FILE or ca=FILE")
	}
	for name, values := range parameters {
		switch {
		case len(values) != 1 || values[0] == "":
			return o, fmt.Errorf("parameter %s: expected one value", name)
		case name == "creds":
			o.Credentials = values[0]
		case name == "ca":
			o.RootCA = values[0]
		case name == "replicas" && slices.Contains([]string{"1", "3", "5"}, values[0]):
			o.Replicas = int(values[0][0] - '0')
		default:
			return o, fmt.Errorf("parameter %s: expected creds=FILE, ca=FILE or replicas=1, 3 or 5", name)
		}
	}
	user, list := "", hosts
	if i := strings.LastIndexByte(hosts, '@'); i >= 0 {
		user, list = hosts[:i+1], hosts[i+1:]
	}
	for host := range strings.SplitSeq(list, ",") {
		u, err := url.Parse(scheme + "://" + user + host)
		if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" {
			return o, fmt.Errorf("expected servers such as nats://10.0.1.1:4222,10.0.1.2:4222")
		}
		o.URLs = append(o.URLs, u.String())
	}
	return o, nil
}

// within reports whether the servers in the nodes keep the log.
func (s *Store) within() bool { return len(s.NATS.URLs) == 0 && s.Postgres == "" }

// kind says what keeps the log; "": the nodes do.
func (s *Store) kind() string {
	switch {
	case s.Postgres != "":
		return "PostgreSQL"
	case !s.within():
		return "NATS servers"
	}
	return ""
}

// places returns addresses of what keeps the log, without secrets.
func (s *Store) places() (all []string) {
	if s.Postgres != "" {
		return postgres.Hosts(s.Postgres)
	}
	for _, one := range s.NATS.URLs {
		if u, err := url.Parse(one); err == nil {
			all = append(all, u.Host)
		}
	}
	return all
}

// facing returns the address of this machine from which it reaches the first of some others.
func facing(places []string) string {
	for _, at := range places {
		conn, err := net.Dial("udp", at) // sends nothing
		if err != nil {
			continue
		}
		host, _, err := net.SplitHostPort(conn.LocalAddr().String())
		_ = conn.Close()
		if err == nil {
			return host
		}
	}
	return "127.0.0.1"
}
