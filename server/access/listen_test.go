package access_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/server/access"
)

func TestCheckListen(t *testing.T) {
	all := access.Exposure{TLS: true, Keys: true}
	for _, tt := range []struct {
		addr string
		e    access.Exposure
		want string // in the error; empty for none
	}{
		{"127.0.0.1:7700", access.Exposure{}, ""},
		{"127.8.9.1:7700", access.Exposure{}, ""},
		{"localhost:7700", access.Exposure{}, ""},
		{"LocalHost.:7700", access.Exposure{}, ""},
		{"[::1]:7700", access.Exposure{}, ""},
		{"[::ffff:127.0.0.1]:7700", access.Exposure{}, ""},
		{"0.0.0.0:7700", all, ""},
		{":7700", all, ""},
		{"kuji.example.com:443", all, ""},
		{"0.0.0.0:7700", access.Exposure{Insecure: true, Keys: true}, ""},
		{":7700", access.Exposure{}, "TLS"},
		{":7700", access.Exposure{}, "API keys"},
		{"[::]:7700", access.Exposure{}, "TLS"},
		{"0.0.0.0:7700", access.Exposure{Keys: true}, "TLS"},
		{"0.0.0.0:7700", access.Exposure{TLS: true}, "API keys"},
		{"0.0.0.0:7700", access.Exposure{Insecure: true}, "API keys"},
		{"192.168.0.7:7700", access.Exposure{}, "TLS"},
		{"10.0.0.1:7700", access.Exposure{TLS: true}, "API keys"},
		{"localhost.example.com:7700", access.Exposure{}, "TLS"},
		{"127.0.0.1.example.com:7700", access.Exposure{}, "TLS"},
		{"127.0.0.1", access.Exposure{}, "want host:port"},
	} {
		err := access.CheckListen(tt.addr, tt.e)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s %+v: %v, want none", tt.addr, tt.e, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s %+v: %v, want an error with %q", tt.addr, tt.e, err, tt.want)
		case err != nil && tt.want != "want host:port" && !errors.Is(err, access.ErrExposed):
			t.Errorf("%s: %v is not ErrExposed", tt.addr, err)
		}
	}
}
