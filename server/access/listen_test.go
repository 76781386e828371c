package server_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/server"
)

func TestCheckListen(t *testing.T) {
	all := server.Exposure{TLS: true, Keys: true}
	for _, tt := range []struct {
		addr string
		e    server.Exposure
		want string // in the error; empty for none
	}{
		{"127.0.0.1:7700", server.Exposure{}, ""},
		{"127.8.9.1:7700", server.Exposure{}, ""},
		{"localhost:7700", server.Exposure{}, ""},
		{"LocalHost.:7700", server.Exposure{}, ""},
		{"[::1]:7700", server.Exposure{}, ""},
		{"[::ffff:127.0.0.1]:7700", server.Exposure{}, ""},
		{"0.0.0.0:7700", all, ""},
		{":7700", all, ""},
		{"kuji.example.com:443", all, ""},
		{"0.0.0.0:7700", server.Exposure{Insecure: true, Keys: true}, ""},
		{":7700", server.Exposure{}, "TLS"},
		{":7700", server.Exposure{}, "API keys"},
		{"[::]:7700", server.Exposure{}, "TLS"},
		{"0.0.0.0:7700", server.Exposure{Keys: true}, "TLS"},
		{"0.0.0.0:7700", server.Exposure{TLS: true}, "API keys"},
		{"0.0.0.0:7700", server.Exposure{Insecure: true}, "API keys"},
		{"192.168.0.7:7700", server.Exposure{}, "TLS"},
		{"10.0.0.1:7700", server.Exposure{TLS: true}, "API keys"},
		{"localhost.example.com:7700", server.Exposure{}, "TLS"},
		{"127.0.0.1.example.com:7700", server.Exposure{}, "TLS"},
		{"127.0.0.1", server.Exposure{}, "want host:port"},
	} {
		err := server.CheckListen(tt.addr, tt.e)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s %+v: %v, want none", tt.addr, tt.e, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s %+v: %v, want an error with %q", tt.addr, tt.e, err, tt.want)
		case err != nil && tt.want != "want host:port" && !errors.Is(err, server.ErrExposed):
			t.Errorf("%s: %v is not ErrExposed", tt.addr, err)
		}
	}
}

// TestOtherSites checks that pages of other web sites cannot use a server that
// asks for no key, neither directly nor by a name that they point at loopback.
func TestOtherSites(t *testing.T) {
	open := newServer(t, server.Options{Hosts: []string{"Kuji.internal"}})
	keys := newServer(t, server.Options{Keys: keyFile(t)})
	const body = `{"player":"ann","pool":"free"}`
	for _, tt := range []struct {
		name   string
		f      *fixture
		host   string
		header []string
		want   int
	}{
		{"loopback", open, "127.0.0.1:7700", nil, 200},
		{"loopback name", open, "localhost:7700", nil, 200},
		{"loopback IPv6", open, "[::1]:7700", nil, 200},
		{"loopback IPv6 without port", open, "[::1]", nil, 200},
		{"allowed host", open, "kuji.INTERNAL:7700", nil, 200},
		{"rebound name", open, "evil.example.com:7700", nil, 403},
		{"no host", open, "", nil, 403},
		{"same origin", open, "127.0.0.1:7700", []string{"Origin", "http://127.0.0.1:7700", "Sec-Fetch-Site", "same-origin"}, 200},
		{"another site", open, "127.0.0.1:7700", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another origin", open, "127.0.0.1:7700", []string{"Origin", "https://evil.example.com"}, 403},
		{"any host with a key", keys, "kuji.example.com", []string{"Authorization", "Bearer " + writeKey}, 200},
		{"another site without a key", keys, "kuji.example.com", []string{"Sec-Fetch-Site", "cross-site"}, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/kuji.v1.RewardService/Draw", strings.NewReader(body))
			r.Host = tt.host
			r.Header.Set("Content-Type", "application/json")
			for i := 0; i < len(tt.header); i += 2 {
				r.Header.Set(tt.header[i], tt.header[i+1])
			}
			w := httptest.NewRecorder()
			tt.f.server.ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("%d %s, want %d", w.Code, w.Body, tt.want)
			}
		})
	}
}
