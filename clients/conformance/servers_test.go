package conformance

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/client"
	"github.com/kuji-dev/kuji/internal/proxy"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

const catalogText = `kuji: 1
items: {gem: {kind: currency}, hat: {}, prize: {}}
pools:
  hats: {entries: [{id: hat, weight: 1, reward: {items: {hat: 1}}}]}
  box: {entries: [{id: prize, weight: 1, stock: 500, reward: {items: {prize: 1}}}]}
  shop: {price: {gem: 5}, entries: [{id: prize, weight: 1, reward: {items: {prize: 1}}}]}
`

// binary builds kuji, once.
var binary = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(scratch, "kuji")
	out, err := exec.Command("go", "build", "-pgo=off", "-o", bin, "../../cmd/kuji").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return bin, err
})

// scratch is a directory of all tests.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kuji-conformance")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	scratch = dir
	m.Run()
}

// server is a kuji serve on a directory of its own.
type server struct {
	dir, address string
	args         []string
	cmd          *exec.Cmd
}

// serve starts a server, which ends with the test.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	addresses, err := proxy.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{dir: t.TempDir(), address: addresses[0], args: args}
	if err := os.WriteFile(filepath.Join(s.dir, "catalog.yaml"), []byte(catalogText), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

// start starts the server, also again, and waits until it serves.
func (s *server) start(t *testing.T) {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve", "--json", "--listen", s.address, "--data", filepath.Join(s.dir, "data"), "--catalog", filepath.Join(s.dir, "catalog.yaml")}, s.args...)
	s.cmd = exec.Command(bin, args...)
	var said bytes.Buffer
	s.cmd.Stderr = &said
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ready struct{ Event string }
	text, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(text, &ready) != nil || ready.Event != "ready" {
		s.kill()
		t.Fatalf("the server said %q, %v\n%s", text, err, said.String())
	}
}

// kill ends the server by SIGKILL.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // fails only when it has ended already
	_ = s.cmd.Wait()
}

func (s *server) url() string { return "http://" + s.address }

// asks returns a client of the server that no fault is in front of.
func (s *server) asks(t *testing.T, key string) *client.Client {
	t.Helper()
	c, err := client.New([]string{s.url()}, client.Options{Key: key, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// world is what scenarios share: a server without keys, and one with keys.
type world struct {
	open, keyed *server
	admin, draw string // keys of the second
	slow        string // a key that may draw twice a second
	sign        ed25519.PrivateKey
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{admin: "admin-key-of-128-bits-or-more", draw: "draw-key-of-128-bits-or-more", slow: "slow-key-of-128-bits-or-more"}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.sign = private
	b64 := base64.RawURLEncoding.EncodeToString
	jwks := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","alg":"EdDSA","x":%q}]}`, b64(public))
	keys := fmt.Sprintf("admin %x ops\ndraw %x shop\ndraw %x kiosk rate=2\nread,draw jwks=players.json players algs=EdDSA\n",
		sha256.Sum256([]byte(w.admin)), sha256.Sum256([]byte(w.draw)), sha256.Sum256([]byte(w.slow)))
	for name, text := range map[string]string{"players.json": jwks, "keys.txt": keys} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.open = serve(t)
	w.keyed = serve(t, append([]string{"--keys", filepath.Join(dir, "keys.txt")}, args...)...)
	return w
}

// token returns a player's token.
func (w *world) token(t *testing.T, player string) string {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	claims, err := json.Marshal(map[string]any{"sub": player, "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	text := b64([]byte(`{"alg":"EdDSA","kid":"k","typ":"JWT"}`)) + "." + b64(claims)
	return text + "." + b64(ed25519.Sign(w.sign, []byte(text)))
}

// fault is what happens to one request in place of passing it on. It may pass it on by itself.
type fault func(w http.ResponseWriter, r *http.Request, pass http.Handler)

// faults stand in front of a server, between HTTP and HTTP.
type faults struct {
	url string

	mu     sync.Mutex
	next   []fault  // for the next requests, one each
	bodies [][]byte // of the requests that came
	came   []time.Time
}

// inFront starts faults in front of a server.
func inFront(t *testing.T, s *server, next ...fault) *faults {
	t.Helper()
	target, err := url.Parse(s.url())
	if err != nil {
		t.Fatal(err)
	}
	f := &faults{next: next}
	pass := func(http2 bool) http.Handler {
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetHTTP1(!http2)
		transport.Protocols.SetUnencryptedHTTP2(http2)
		t.Cleanup(transport.CloseIdleConnections)
		return &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:     transport,
			FlushInterval: -1,
			ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		}
	}
	one, two := pass(false), pass(true)
	f.url = listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := one
		if r.ProtoMajor == 2 {
			to = two
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		f.mu.Lock()
		f.bodies, f.came = append(f.bodies, body), append(f.came, time.Now())
		var now fault
		if len(f.next) > 0 {
			now, f.next = f.next[0], f.next[1:]
		}
		f.mu.Unlock()
		if now != nil {
			now(w, r, to)
		} else {
			to.ServeHTTP(w, r)
		}
	}))
	return f
}

// sent returns the bodies of the requests that came, and when.
func (f *faults) sent() ([][]byte, []time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.bodies), slices.Clone(f.came)
}

// lost passes a request on, waits for its answer, and closes the connection without it.
func lost(_ http.ResponseWriter, r *http.Request, pass http.Handler) {
	pass.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// broken closes the connection without passing a request on.
func broken(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// says answers in the place of the server, as a load balancer does.
func says(status int, kind, body string, header ...string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// listen serves HTTP/1.1 and HTTP/2 until the test ends.
func listen(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Config.ErrorLog = nil
	srv.Start()
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL
}

// script is a server that answers as it is told.
type script struct {
	kujiv1connect.UnimplementedRewardServiceHandler
	draw   func(ctx context.Context, try int, req *kujiv1.DrawRequest) (*kujiv1.Result, error)
	result func(*kujiv1.GetResultRequest) *kujiv1.GetResultResponse
	events func(from *uint64, send func(*kujiv1.StreamEventsResponse) error) error

	mu   sync.Mutex
	ids  []string
	came []time.Time
}

func (s *script) Draw(ctx context.Context, req *kujiv1.DrawRequest) (*kujiv1.DrawResponse, error) {
	s.mu.Lock()
	s.ids, s.came = append(s.ids, req.GetRequestId()), append(s.came, time.Now())
	try := len(s.ids)
	s.mu.Unlock()
	res, err := s.draw(ctx, try, req)
	return &kujiv1.DrawResponse{Result: res}, err
}

func (s *script) GetResult(_ context.Context, req *kujiv1.GetResultRequest) (*kujiv1.GetResultResponse, error) {
	return s.result(req), nil
}

func (s *script) StreamEvents(_ context.Context, req *kujiv1.StreamEventsRequest, stream *connect.ServerStream[kujiv1.StreamEventsResponse]) error {
	return s.events(req.From, stream.Send)
}

// sent returns the request ids of the draws that came, and when.
func (s *script) sent() ([]string, []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids), slices.Clone(s.came)
}

// serve serves the script.
func (s *script) serve(t *testing.T) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(kujiv1connect.NewRewardServiceHandler(s))
	return listen(t, mux)
}

// refuses returns an error of a server.
func refuses(code connect.Code, reason kujiv1.Reason, header ...string) error {
	err := connect.NewError(code, errors.New("said by the server"))
	detail, bad := connect.NewErrorDetail(&kujiv1.ErrorDetail{Reason: reason})
	if bad != nil {
		panic(bad)
	}
	err.AddDetail(detail)
	for i := 0; i < len(header); i += 2 {
		err.Meta().Set(header[i], header[i+1])
	}
	return err
}
