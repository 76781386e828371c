package cluster

import (
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/election"
)

// TestParseStore: a URL says what keeps a log. An error says what was expected, and shows no secret.
func TestParseStore(t *testing.T) {
	for text, want := range map[string]struct {
		dir, kind, err string
		places         []string
	}{
		"disk:data":                  {dir: "data"},
		"disk:/var/lib/kuji":         {dir: "/var/lib/kuji"},
		"nats://10.0.0.1:4222":       {kind: "NATS servers", places: []string{"10.0.0.1:4222"}},
		"tls://a:s3cret@h1:1,h2:2":   {kind: "NATS servers", places: []string{"h1:1", "h2:2"}},
		"nats://h:1?creds=f&ca=g":    {kind: "NATS servers", places: []string{"h:1"}},
		"nats://h:1?replicas=1":      {kind: "NATS servers", places: []string{"h:1"}},
		"postgres://u:s3cret@db/k":   {kind: "PostgreSQL", places: []string{"db:5432"}},
		"postgresql://h1:1,h2:2/k":   {kind: "PostgreSQL", places: []string{"h1:1", "h2:2"}},
		"postgres://db/k?schema=a_b": {kind: "PostgreSQL", places: []string{"db:5432"}},
		"":                           {err: "expected disk:DIR"},
		"disk:":                      {err: "expected disk:DIR"},
		"data":                       {err: "expected disk:DIR"},
		"mysql://u:s3cret@db/k":      {err: "expected disk:DIR"},
		"nats://":                    {err: "expected servers such as"},
		"nats://a:s3cret@h/x":        {err: "expected servers such as"},
		"nats://a:s3cret@h?x=s3cret": {err: "expected creds=FILE"},
		"nats://h?replicas=2":        {err: "replicas=1, 3 or 5"},
		"nats://h?creds=a&creds=b":   {err: "parameter creds: expected one value"},
		"postgres://u:s3cret@db:x/k": {err: "the URL of the database"},
		"postgres://db/k?schema=A-b": {err: "schema"},
	} {
		s, dir, err := ParseStore(text)
		if want.err != "" {
			if err == nil || !strings.Contains(err.Error(), want.err) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q: error %v, want %q without a secret", text, err, want.err)
			}
			continue
		}
		if err != nil || dir != want.dir || s.kind() != want.kind || !slices.Equal(s.places(), want.places) || s.within() != (want.kind == "") {
			t.Errorf("%q: %q, %q, %q, %v", text, dir, s.kind(), s.places(), err)
		}
	}
}

// TestWaits: nodes wait as long as is good for the store, or as they are told.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		conf Config
		want Waits
	}{
		{Config{}, Waits{3 * time.Second, 15 * time.Second}},
		{Config{Store: Store{Postgres: "postgres://db/k"}}, Waits{3 * time.Second, time.Minute}},
		{Config{Store: Store{Postgres: "postgres://db/k"}, Waits: Waits{Lease: time.Minute, Leader: time.Second}}, Waits{time.Minute, time.Second}},
	} {
		if got := c.conf.waits(); got != c.want {
			t.Errorf("%+v waits %v, want %v", c.conf.Store, got, c.want)
		}
	}
}

// TestSettleAddress: the other nodes find a node as --peers says, as it is told, or where it reaches the store.
func TestSettleAddress(t *testing.T) {
	store := Store{Postgres: "postgres://127.0.0.1:5432/k"}
	any, one := &net.TCPAddr{IP: net.IPv6unspecified, Port: 7}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 7}
	for _, c := range []struct {
		conf    Config
		listens net.Addr
		want    string
	}{
		{Config{Node: "n1", Peers: map[string]Peer{"n1": {"10.0.0.1", 6222}}}, any, "10.0.0.1:6223"},
		{Config{Store: store}, any, "127.0.0.1:7"},
		{Config{Store: store}, one, "10.0.0.9:7"},
		{Config{Store: store, Address: "outside"}, one, "outside:7"},
		{Config{Store: store, Address: "outside:8"}, any, "outside:8"},
		{Config{Store: store, Address: "[::1]"}, any, "[::1]:7"},
		{Config{Store: Store{Postgres: "postgres:///k?host=/tmp"}}, any, "127.0.0.1:7"},
	} {
		if got := c.conf.settleAddress(c.listens); got != c.want {
			t.Errorf("%+v at %v: %s, want %s", c.conf, c.listens, got, c.want)
		}
	}
}

// TestPlaces: a node finds others where --peers says, and those of which that says nothing where they say.
func TestPlaces(t *testing.T) {
	n := joined(t, drivertest.NewShared(drivertest.SharedOptions{}).Node(1), map[string]Peer{"n2": {"10.0.0.2", 6222}})
	n.says(election.Board{Nodes: map[string]election.Post{"n2": {Address: "192.168.0.2:1"}, "n3": {Address: "10.0.0.3:6223"}, "n4": {}}})
	want := map[string]string{"n2": "10.0.0.2:6223", "n3": "10.0.0.3:6223"}
	if got := n.nodes(); !maps.Equal(got, want) {
		t.Errorf("nodes are at %v, want %v", got, want)
	}
	n.says(election.Board{}) // a look that failed
	if got := n.nodes(); !maps.Equal(got, want) {
		t.Errorf("after a look that failed, nodes are at %v, want %v", got, want)
	}
}

// promising is a driver whose store promises something.
type promising struct{ driver.Driver }

func (promising) Promise() driver.Promise {
	return driver.Promise{Survives: driver.SurvivesMachine, Why: "a test says so"}
}

// TestPromiseIsAMetric: what a store promises is a metric, and one without a promise has none.
func TestPromiseIsAMetric(t *testing.T) {
	for want, d := range map[string]driver.Driver{
		"kuji_store_survives 3": promising{drivertest.NewShared(drivertest.SharedOptions{}).Node(1)},
		"":                      drivertest.NewShared(drivertest.SharedOptions{}).Node(1),
	} {
		n := joined(t, d, nil)
		w := httptest.NewRecorder()
		n.serveClient(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
		wantAnswer(t, w, http.StatusOK, want)
		if want == "" && strings.Contains(w.Body.String(), "kuji_store_survives") {
			t.Error("a store without a promise has a metric of it")
		}
	}
}
