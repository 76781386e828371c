//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// served is a server within the test.
type served struct {
	ready readyJSON
	out   *bufio.Reader // standard output behind the line that says ready
	log   *lines
	stop  func() exitCode
}

// serveHere starts "kuji serve" in this process.
func serveHere(t *testing.T, env map[string]string, args ...string) *served {
	t.Helper()
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	s := &served{log: newLines(), out: bufio.NewReader(stdout)}
	a := &app{stdin: in, stdout: out, stderr: s.log, getenv: func(name string) string { return env[name] }}
	code := make(chan exitCode, 1)
	go func() {
		code <- a.run(context.Background(), append([]string{"serve", "--json", "--until-eof", "--listen", "127.0.0.1:0"}, args...))
		_ = out.Close()
	}()
	line, err := s.out.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &s.ready) != nil {
		t.Fatalf("%v: %s%v", err, line, s.log)
	}
	s.stop = sync.OnceValue(func() exitCode {
		_ = stdin.Close()
		return <-code
	})
	t.Cleanup(func() { s.stop() })
	return s
}

// post sends a request and returns its HTTP status.
func (s *served) post(t *testing.T, path, body string, headers ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.ready.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// collect is a collector of traces that keeps what it gets.
func collect(t *testing.T) (url string, got func() []*spans.ResourceSpans) {
	var mu sync.Mutex
	var all []*spans.ResourceSpans
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &m)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, m.GetResourceSpans()...)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []*spans.ResourceSpans {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// TestTraces: a call whose client says of which trace it is a part becomes a span of that trace, below
// the client's span. Health checks become none. Without an endpoint there are no traces.
func TestTraces(t *testing.T) {
	url, got := collect(t)
	s := serveHere(t, nil, "--data", t.TempDir(), "--otlp-endpoint", url)
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const header, path = "00-" + trace + "-" + parent + "-01", "/kuji.v1.AdminService/ListRealms"
	if code := s.post(t, path, "{}", "Traceparent", header); code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	s.post(t, "/kuji.v1.RewardService/GetPlayer", `{"player":"nobody"}`)
	s.post(t, "/grpc.health.v1.Health/Check", "{}", "Traceparent", header)
	if code := s.stop(); code != exitOK {
		t.Fatalf("exit code %d: %v", code, s.log)
	}
	named := map[string]*spans.Span{}
	for _, r := range got() {
		if text := r.GetResource().String(); !strings.Contains(text, `"kuji"`) || !strings.Contains(text, "service.version") {
			t.Errorf("resource %s", text)
		}
		for _, scope := range r.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				named[span.GetName()] = span
			}
		}
	}
	list, player := named["kuji.v1.AdminService/ListRealms"], named["kuji.v1.RewardService/GetPlayer"]
	if len(named) != 2 || list == nil || player == nil {
		t.Fatalf("spans %v", named)
	}
	if hex.EncodeToString(list.GetTraceId()) != trace || hex.EncodeToString(list.GetParentSpanId()) != parent || list.GetKind() != spans.Span_SPAN_KIND_SERVER {
		t.Errorf("the span is not below its client's: %v", list)
	}
	if len(player.GetParentSpanId()) != 0 || len(player.GetTraceId()) != 16 || bytes.Equal(player.GetTraceId(), list.GetTraceId()) {
		t.Errorf("a call without a trace begins none of its own: %v", player)
	}

	before := len(got())
	for name, env := range map[string]map[string]string{
		"no endpoint": nil,
		"off":         {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SDK_DISABLED": "true"},
		"no exporter": {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_TRACES_EXPORTER": "none"},
	} {
		s := serveHere(t, env, "--data", t.TempDir())
		s.post(t, path, "{}", "Traceparent", header)
		if code := s.stop(); code != exitOK || len(got()) != before {
			t.Errorf("%s: exit code %d, %d spans", name, code, len(got())-before)
		}
	}
}

// TestTracesByVariable: OpenTelemetry's own variables turn traces on.
func TestTracesByVariable(t *testing.T) {
	url, got := collect(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	t.Setenv("OTEL_SERVICE_NAME", "draws")
	s := serveHere(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url}, "--data", t.TempDir())
	s.post(t, "/kuji.v1.AdminService/ListRealms", "{}")
	if code := s.stop(); code != exitOK {
		t.Fatalf("exit code %d: %v", code, s.log)
	}
	if all := got(); len(all) != 1 || !strings.Contains(all[0].GetResource().String(), `"draws"`) {
		t.Errorf("spans %v", all)
	}
}
