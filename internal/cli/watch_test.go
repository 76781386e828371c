package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// pools is a server of one pool, which the test changes.
type pools struct {
	kujiv1connect.UnimplementedRewardServiceHandler
	mu   sync.Mutex
	pool *kujiv1.Pool
	full int // how often more than a glance was asked for

	glances chan struct{} // gets one for each glance
}

func (p *pools) GetPool(_ context.Context, req *kujiv1.GetPoolRequest) (*kujiv1.GetPoolResponse, error) {
	if req.GetEntryLimit() == 1 && p.glances != nil {
		select {
		case p.glances <- struct{}{}:
		default:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pool := proto.CloneOf(p.pool)
	if req.GetEntryLimit() > 1 {
		p.full++
	}
	pool.Entries = pool.Entries[:min(len(pool.Entries), int(req.GetEntryLimit()))]
	return &kujiv1.GetPoolResponse{Pool: pool}, nil
}

func (p *pools) set(position uint64, pool *kujiv1.Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool.Id, pool.Position, pool.EntryCount = "box", position, uint32(len(pool.GetEntries()))
	p.pool = pool
}

// watching starts "kuji watch pool box" and returns its lines. stop presses Ctrl-C
// and returns the exit code.
func watching(t *testing.T, p *pools, args ...string) (lines *bufio.Scanner, stop func() exitCode) {
	t.Helper()
	_, handler := kujiv1connect.NewRewardServiceHandler(p)
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithCancel(t.Context())
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	code := make(chan exitCode, 1)
	go func() {
		a := &app{stdout: in, stderr: io.Discard, getenv: func(string) string { return "" }}
		code <- a.run(ctx, append([]string{"watch", "pool", "box", "--every", "100ms", "--server", srv.URL}, args...))
		_ = in.Close()
	}()
	lines = bufio.NewScanner(out)
	return lines, func() exitCode {
		cancel()
		for lines.Scan() { // whatever it still writes
		}
		return <-code
	}
}

// next scans up to the next line that matches.
func next(t *testing.T, lines *bufio.Scanner, pattern string) {
	t.Helper()
	for lines.Scan() {
		if regexp.MustCompile(pattern).MatchString(lines.Text()) {
			return
		}
	}
	t.Fatalf("no line matches %s", pattern)
}

func entry(id string, drawn, left uint64) *kujiv1.Entry {
	return &kujiv1.Entry{Id: id, Weight: left, Drawn: drawn, Left: &left}
}

func TestWatchPool(t *testing.T) {
	p := &pools{glances: make(chan struct{}, 1)}
	p.set(1, &kujiv1.Pool{CatalogVersion: 1, TotalWeight: 5, Entries: []*kujiv1.Entry{entry("cup", 0, 2), entry("hat", 0, 3)}})
	lines, stop := watching(t, p)
	next(t, lines, `^hat `)
	p.set(2, &kujiv1.Pool{CatalogVersion: 1, TotalWeight: 3, Entries: []*kujiv1.Entry{entry("cup", 2, 0), entry("hat", 0, 3)}})
	next(t, lines, `  cup  drawn 2 \(\+2\), left 0$`)
	p.set(3, &kujiv1.Pool{CatalogVersion: 2, Entries: []*kujiv1.Entry{entry("hat", 3, 0)}})
	next(t, lines, `  catalog version 2 is in force$`)
	next(t, lines, `  hat  drawn 3 \(\+3\), left 0$`)
	next(t, lines, `  cup  removed$`)
	next(t, lines, `  sold out$`)
	for len(p.glances) > 0 {
		<-p.glances
	}
	for range 3 { // nothing has changed
		<-p.glances
	}
	if code := stop(); code != exitOK {
		t.Errorf("Ctrl-C ends it with %d, want %d", code, exitOK)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full != 3 {
		t.Errorf("asked for all entries %d times, want 3: only when something had changed", p.full)
	}
}

func TestWatchPoolJSON(t *testing.T) {
	p := &pools{}
	p.set(1, &kujiv1.Pool{CatalogVersion: 1, TotalWeight: 5, Entries: []*kujiv1.Entry{entry("cup", 0, 2), entry("hat", 0, 3)}})
	lines, stop := watching(t, p, "--json")
	next(t, lines, `^{"pool":{"id":"box",`)
	p.set(2, &kujiv1.Pool{CatalogVersion: 1, TotalWeight: 4, Entries: []*kujiv1.Entry{entry("cup", 1, 1), entry("hat", 0, 3)}})
	next(t, lines, `^{"time_unix_ms":`)
	var got poolChangeJSON
	if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Entries) != 1 || got.Entries[0].Entry != "cup" || got.Entries[0].Since != 1 || *got.Entries[0].Left != 1 || got.Position != 2 {
		t.Errorf("got %+v", got)
	}
	if code := stop(); code != exitOK {
		t.Errorf("Ctrl-C ends it with %d, want %d", code, exitOK)
	}
}
