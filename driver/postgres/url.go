package postgres

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// defaultSchema is the schema of a URL that names none.
const defaultSchema = "kuji"

// place is a URL that was read.
type place struct {
	*pgx.ConnConfig
	schema string
}

// Check returns an error if a URL is not one of a database. The error has no secrets in it.
func Check(url string) error {
	_, err := parse(url)
	return err
}

// Redact returns where a URL's database is, without secrets.
func Redact(url string) string {
	p, err := parse(url)
	if err != nil {
		return "postgres://?"
	}
	return p.String()
}

// Hosts returns the addresses of the servers that a URL names, as HOST:PORT. A socket is a path, with a port.
func Hosts(url string) []string {
	p, err := parse(url)
	if err != nil {
		return nil
	}
	return p.hosts()
}

// String returns the hosts, the database and the schema.
func (p *place) String() string {
	return fmt.Sprintf("postgres://%s/%s?schema=%s", strings.Join(p.hosts(), ","), p.Database, p.schema)
}

func (p *place) hosts() (hosts []string) {
	add := func(host string, port uint16) {
		at := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if !slices.Contains(hosts, at) { // with and without TLS
			hosts = append(hosts, at)
		}
	}
	add(p.Host, p.Port)
	for _, f := range p.Fallbacks {
		add(f.Host, f.Port)
	}
	return hosts
}

// parse reads a URL.
func parse(text string) (*place, error) {
	if text == "" {
		return nil, errors.New("the URL of the database is empty: want postgres://USER@HOST:PORT/DATABASE")
	}
	if scheme, _, ok := strings.Cut(text, "://"); ok && !strings.Contains(scheme, "=") && scheme != "postgres" && scheme != "postgresql" {
		return nil, fmt.Errorf("the URL of the database begins with %.20q: want postgres://", scheme+"://")
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("the URL of the database: %s", reason(err))
	}
	p := &place{ConnConfig: config, schema: defaultSchema}
	if name, ok := config.RuntimeParams["schema"]; ok {
		delete(config.RuntimeParams, "schema") // no parameter of a session
		p.schema = name
	}
	if !isSchema(p.schema) {
		return nil, fmt.Errorf("schema %.80q: want 1 to 63 of a-z, 0-9 and '_', the first no digit", p.schema)
	}
	if p.ValidateConnect == nil {
		p.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if p.RuntimeParams["application_name"] == "" {
		p.RuntimeParams["application_name"] = "kuji"
	}
	return p, nil
}

// isSchema reports whether a name needs no quotes in a dump or at a prompt.
func isSchema(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz_"
	return name != "" && len(name) <= 63 && strings.Contains(letters, name[:1]) && strings.Trim(name, letters+"0123456789") == "" &&
		!strings.HasPrefix(name, "pg_")
}

// reason says what is wrong with a URL, without any part of it that may be secret: the library's own
// error repeats most of it.
func reason(err error) string {
	const form = "want postgres://USER@HOST:PORT/DATABASE?sslmode=MODE, with special characters of a password as %XX"
	if _, ok := errors.AsType[*url.Error](err); ok {
		return form
	}
	text := err.Error()
	i := strings.LastIndex(text, "`: ")
	if i < 0 {
		return form
	}
	text = text[i+len("`: "):]
	if strings.HasPrefix(text, "failed to configure TLS") { // what follows names modes and files
		return text
	}
	for _, safe := range []string{"invalid port", "invalid connect_timeout", "unknown target_session_attrs", "failed to read service"} {
		if strings.HasPrefix(text, safe) {
			return safe
		}
	}
	return form
}
