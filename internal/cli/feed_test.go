//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/client"
	"github.com/kuji-dev/kuji/internal/kafkatest"
	"github.com/kuji-dev/kuji/internal/pgtest"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

const feedSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

const feedCatalog = `kuji: 1
items: {coin: {kind: currency}}
pools:
  wheel:
    entries:
      - {id: gold, weight: 1, reward: {items: {coin: 1}}}
`

// fed is a server whose feed is delivered by processes that are killed.
type fed struct {
	server *served
	client *api
	dir    string
	kuji   string // the command
}

func newFed(t *testing.T) *fed {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &fed{dir: t.TempDir()}
	f.kuji = filepath.Join(f.dir, "kuji")
	if err := os.Symlink(exe, f.kuji); err != nil { // under this name it is the command: see TestMain
		t.Fatal(err)
	}
	for name, text := range map[string]string{"wheel.yaml": feedCatalog, "secret": feedSecret} {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.server = serveHere(t, nil, "--data", filepath.Join(f.dir, "data"), "--catalog", filepath.Join(f.dir, "wheel.yaml"), "--history", "off")
	made, err := client.New([]string{f.server.ready.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.client = &api{made, made.Admin, "default"}
	return f
}

// draw draws for several players until stop is closed, and in the end grants with the id "end". The
// error comes when that is done.
func (f *fed) draw(ctx context.Context, stop <-chan struct{}) <-chan error {
	done := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				_, err := f.client.Grant(ctx, &kujiv1.GrantRequest{Player: "ann", Items: []*kujiv1.Stack{{Item: "coin", Quantity: 1}}, RequestId: "end"})
				done <- err
				return
			default:
			}
			req := &kujiv1.DrawRequest{Player: fmt.Sprint("p", i%7), Pool: "wheel", Count: 1, RequestId: fmt.Sprint("draw-", i)}
			if _, err := f.client.Draw(ctx, req); err != nil {
				done <- err
				return
			}
		}
	}()
	return done
}

// all returns all events up to the one with the id "end".
func (f *fed) all(t *testing.T) (recs []kuji.Record) {
	t.Helper()
	for step, err := range f.client.source("", "")(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, step.Events...)
		if n := len(recs); n > 0 && recs[n-1].ID == "end" {
			break
		}
	}
	return recs
}

// command returns a process that delivers the feed.
func (f *fed) command(args ...string) (*exec.Cmd, *lines) {
	cmd := exec.Command(f.kuji, append([]string{"feed", "--server", f.server.ready.URL}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+f.dir)
	log := newLines()
	cmd.Stderr = log
	return cmd, log
}

// died reports whether a process has said why it ends.
func died(log *lines) bool { return strings.Contains("\n"+log.String(), "\nkuji: ") }

// terminate ends a process with SIGTERM, after which its exit code must be 0.
func terminate(t *testing.T, cmd *exec.Cmd, log *lines) {
	t.Helper()
	if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
		t.Errorf("%v\n%v", err, log)
	}
}

// receiver gets webhooks.
type receiver struct {
	mu    sync.Mutex
	got   []kuji.Record
	came  func(answered bool) // before and after each answer; nil: nobody cares
	ended chan struct{}       // closed when the event "end" has come
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var post struct {
		Data struct{ Events []kuji.Record }
	}
	if err := json.NewDecoder(req.Body).Decode(&post); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, post.Data.Events...)
	if r.came != nil {
		r.came(false)
	}
	w.WriteHeader(http.StatusNoContent)
	if r.came != nil {
		_ = http.NewResponseController(w).Flush() // it may be dead
		r.came(true)
	}
	if n := len(post.Data.Events); n > 0 && post.Data.Events[n-1].ID == "end" && r.ended != nil {
		close(r.ended)
		r.ended = nil
	}
}

// dieAfter starts a process and kills it around its n-th post: before or after it is answered.
func (r *receiver) dieAfter(cmd *exec.Cmd, n int, answered bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.came = func(now bool) {
		if now == answered {
			if n--; n == 0 {
				_ = cmd.Process.Kill()
			}
		}
	}
	return cmd.Start() // its posts wait for mu
}

// TestFeedKilled kills "kuji feed" around its posts, again and again, while the realm goes on. Every
// event has come in the end, in order; each again only after a kill.
func TestFeedKilled(t *testing.T) {
	f, r := newFed(t), &receiver{ended: make(chan struct{})}
	ended := r.ended
	hook := httptest.NewServer(r)
	defer hook.Close()
	stop := make(chan struct{})
	drawn := f.draw(t.Context(), stop)
	args := []string{"--to", hook.URL, "--allow-private", "--secret-file", filepath.Join(f.dir, "secret"), "--position", filepath.Join(f.dir, "position")}
	const kills = 12
	for range kills {
		cmd, log := f.command(args...)
		if err := r.dieAfter(cmd, 1+rand.IntN(3), rand.IntN(2) == 0); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("it ended by itself: %v\n%v", cmd.ProcessState, log)
		}
	}
	r.mu.Lock()
	r.came = nil
	r.mu.Unlock()
	cmd, log := f.command(args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(stop)
	if err := <-drawn; err != nil {
		t.Fatal(err)
	}
	<-ended
	terminate(t, cmd, log)
	r.mu.Lock()
	defer r.mu.Unlock()
	wantInOrder(t, r.got, f.all(t), kills)
}

// wantInOrder checks that all events came in order, and that the order went back at most so many times.
func wantInOrder(t *testing.T, got, want []kuji.Record, kills int) {
	t.Helper()
	text := func(rec *kuji.Record) string {
		b, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	at := map[string]int{}
	for i := range want {
		at[text(&want[i])] = i
	}
	next, back, before := 0, 0, -1
	for i := range got {
		n, ok := at[text(&got[i])]
		if !ok || n > next {
			t.Fatalf("event %d is %s; expected is number %d of the feed, or an earlier one", i, text(&got[i]), next)
		}
		if n <= before {
			back++
		} else if n != before+1 {
			t.Fatalf("event %d is number %d of the feed, after number %d", i, n, before)
		}
		before, next = n, max(next, n+1)
	}
	if next != len(want) || back > kills {
		t.Errorf("%d of %d events came; %d repeats after %d kills", next, len(want), back, kills)
	}
	t.Logf("%d events, %d posted twice, %d repeats", len(want), len(got)-len(want), back)
}

// TestFeedPostgresKilled does so with a real PostgreSQL, and compares what is there with the feed: every
// event once.
func TestFeedPostgresKilled(t *testing.T) {
	url := pgtest.Database(t)
	f := newFed(t)
	stop := make(chan struct{})
	drawn := f.draw(t.Context(), stop)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	position := func() (pos int64) {
		_ = db.QueryRow(t.Context(), "SELECT position FROM kuji_default.progress").Scan(&pos) // not there yet: 0
		return pos
	}
	args := []string{"--to", url}
	for range 8 {
		cmd, log := f.command(args...)
		begun, more := position(), rand.Int64N(25)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for position() < begun+more {
			if died(log) {
				t.Fatalf("it ended by itself\n%v", log)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	cmd, log := f.command(args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begun := position(); position() == begun; { // until it writes
		if died(log) {
			t.Fatalf("it ended by itself\n%v", log)
		}
	}
	// A lost connection is none of its ends.
	if _, err := db.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	close(stop)
	if err := <-drawn; err != nil {
		t.Fatal(err)
	}
	want := f.all(t)
	for position() < int64(want[len(want)-1].Position) {
		if died(log) {
			t.Fatalf("it ended by itself\n%v", log)
		}
	}
	terminate(t, cmd, log)
	rows, err := db.Query(t.Context(), "SELECT COALESCE(request, '') FROM kuji_default.events ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, rec := range want {
		ids = append(ids, rec.ID)
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Error(diff)
	}
}

// TestFeedKafkaKilled does so with brokers of Kafka: every event has come, those of each player in order,
// and each again only after a kill.
func TestFeedKafkaKilled(t *testing.T) {
	kafkatest.Each(t, func(t *testing.T, hosts []string) {
		f, topic := newFed(t), kafkatest.Topic(t, hosts, 3)
		stop := make(chan struct{})
		drawn := f.draw(t.Context(), stop)
		args := []string{"--to", "kafka://" + strings.Join(hosts, ",") + "/" + topic}
		const kills = 6
		for range kills {
			cmd, log := f.command(args...)
			more := len(kafkatest.Records(t, hosts, topic)) + rand.IntN(60)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for len(kafkatest.Records(t, hosts, topic)) < more {
				if died(log) {
					t.Fatalf("it ended by itself\n%v", log)
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		cmd, log := f.command(args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		close(stop)
		if err := <-drawn; err != nil {
			t.Fatal(err)
		}
		want, got := map[string][]kuji.Record{}, map[string][]kuji.Record{}
		for _, rec := range f.all(t) {
			key := rec.Player
			if key == "" {
				key = f.client.realm
			}
			want[key] = append(want[key], rec)
		}
		complete := func() bool { // the last record of each key has come
			for key, all := range want {
				last := all[len(all)-1]
				if !slices.ContainsFunc(got[key], func(r kuji.Record) bool { return r.Position == last.Position && r.Index == last.Index }) {
					return false
				}
			}
			return true
		}
		for !complete() {
			clear(got)
			for _, r := range kafkatest.Records(t, hosts, topic) {
				var rec kuji.Record
				if err := json.Unmarshal(r.Value, &rec); err != nil {
					t.Fatal(err)
				}
				if rec.Kind != "kuji-progress" {
					got[string(r.Key)] = append(got[string(r.Key)], rec)
				}
			}
		}
		terminate(t, cmd, log)
		for key := range want {
			wantInOrder(t, got[key], want[key], kills)
		}
		if len(got) != len(want) {
			t.Errorf("records of %d keys, want %d", len(got), len(want))
		}
	})
}

// TestFeedInterrupted: a signal ends a feed whose target does not take the events, and nothing is noted.
func TestFeedInterrupted(t *testing.T) {
	f := newFed(t)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer hook.Close()
	position := filepath.Join(f.dir, "position")
	cmd, log := f.command("--to", hook.URL, "--allow-private", "--secret-file", filepath.Join(f.dir, "secret"), "--position", position)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !log.wait(0, "it answered 503", time.Minute) {
		t.Error(log)
	}
	terminate(t, cmd, log)
	if _, err := os.Stat(position); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a position was noted: %v", err)
	}
}

// TestFeedAsked: what "kuji feed" refuses, with which exit code, and what it says.
func TestFeedAsked(t *testing.T) {
	f := newFed(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	secret, position := filepath.Join(f.dir, "secret"), filepath.Join(f.dir, "position")
	hook := []string{"--secret-file", secret, "--position", position}
	for _, c := range []struct {
		args []string
		exit exitCode
		said string
	}{
		{nil, exitUsage, "missing flag --to"},
		{[]string{"--to", "ftp://x"}, exitUsage, "expected https://…, kafka://… or postgres://…"},
		{[]string{"--to", "https://example.com"}, exitUsage, "a webhook needs --secret-file and --position"},
		{append(hook, "--to", "http://example.com"), exitUsage, "http needs --allow-private"},
		{append(hook, "--to", strings.Replace(gone.URL, "http:", "https:", 1)), exitRefused, "is not a public one"},
		{append(hook, "--to", gone.URL, "--allow-private"), exitRefused, "answered 404"},
		{append(hook, "--to", gone.URL, "--allow-private", "--from", "1000"), exitUsage, "position 1000; the next one is"},
		{[]string{"--to", "https://example.com", "--secret-file", f.kuji + ".none", "--position", position}, exitUsage, "no such file"},
		{[]string{"--to", "kafka://b/t", "--position", position}, exitUsage, "--position is only for webhooks"},
		{[]string{"--to", "kafka://b/t", "--history-age", "1h"}, exitUsage, "--history-age is only for PostgreSQL"},
		{[]string{"--to", "postgres://b/t", "--history-age", "-1h"}, exitUsage, "expected at least 0s"},
		{[]string{"--to", "postgres://b/t", "--player", "ann"}, exitUsage, "--player is only for webhooks and Kafka"},
		{[]string{"--to", "postgres://user:word@127.0.0.1:1/t"}, exitUnexpected, "opening the history"},
	} {
		var out, said bytes.Buffer
		a := &app{stdout: &out, stderr: &said, getenv: func(string) string { return "" }}
		code := a.run(t.Context(), append([]string{"feed", "--server", f.server.ready.URL}, c.args...))
		if code != c.exit || !strings.Contains(said.String(), c.said) || strings.Contains(said.String(), ":word") || strings.Contains(said.String(), "MfKQ9r") {
			t.Errorf("%v: exit code %d, want %d\n%s", c.args, code, c.exit, said.String())
		}
	}
}
