package server_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"

	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

func TestHealth(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{Keys: keyFile(t)}) // health needs no key
	h := h2c(t)
	health := grpchealth.NewClient(h, f.url, connect.WithGRPC())
	check := func(want grpchealth.Status) {
		t.Helper()
		for _, service := range []string{"", kujiv1connect.RewardServiceName, kujiv1connect.AdminServiceName} {
			res, err := health.Check(ctx, &grpchealth.CheckRequest{Service: service})
			if err != nil || res.Status != want {
				t.Errorf("service %q: %v, %v; want %v", service, res, err, want)
			}
		}
	}
	check(grpchealth.StatusServing)
	if _, err := health.Check(ctx, &grpchealth.CheckRequest{Service: "nope"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("unknown service: %v, want not_found", err)
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		if code, text := get(t, h, f.url+path); code != 200 || text != want {
			t.Errorf("%s: %d %q, want %q", path, code, text, want)
		}
	}
	if code, _ := post(t, h, f.url, "/readyz", ""); code != http.StatusMethodNotAllowed {
		t.Errorf("POST /readyz: HTTP %d, want 405", code)
	}
	// Both of what takes a server out of service leave it alive.
	unready := func(want string) {
		t.Helper()
		check(grpchealth.StatusNotServing)
		if code, text := get(t, h, f.url+"/readyz"); code != 503 || !strings.Contains(text, want) || strings.Contains(text, "secret") {
			t.Errorf("/readyz: %d %q, want 503 with %q", code, text, want)
		}
		if code, _ := get(t, h, f.url+"/healthz"); code != 200 {
			t.Errorf("/healthz: %d, want 200", code)
		}
	}
	f.server.FailRealms(errors.New("secret path of a file"))
	unready("realm default has stopped")
	f.server.FailRealms(nil)
	check(grpchealth.StatusServing)
	f.server.Drain()
	unready("draining")
}

func TestReflection(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{Keys: keyFile(t)})
	h := h2c(t)
	list := func(key string) ([]string, error) {
		stream := grpcreflect.NewClient(h, f.url, connect.WithGRPC()).
			NewStream(ctx, grpcreflect.WithRequestHeaders(http.Header{"Authorization": {"Bearer " + key}}))
		names, err := stream.ListServices()
		if err == nil {
			for _, name := range names {
				if _, err := stream.FileContainingSymbol(name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		_, _ = stream.Close()
		var out []string
		for _, name := range names {
			out = append(out, string(name))
		}
		slices.Sort(out)
		return out, err
	}
	got, err := list(readKey)
	want := []string{"grpc.health.v1.Health", "kuji.v1.AdminService", "kuji.v1.ChatService", "kuji.v1.RewardService"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("services %v, %v; want %v", got, err, want)
	}
	if _, err := list("wrong"); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("reflection without a key: %v, want unauthenticated", err)
	}
}
