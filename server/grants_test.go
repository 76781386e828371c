package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/redis/go-redis/v9"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// grantServer is a server with keys for grants, on a directory. Its clock is now.
func grantServer(t *testing.T, dir string, now *time.Time, lines ...string) (f *fixture, of func(key string) kujiv1connect.RewardServiceClient, stop func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, lines...)
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := kuji.Open(dir, kuji.Options{Now: func() time.Time { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	realm, err := engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte("{kuji: 1, items: {gem: {}, coin: {}, sword: {}}, pools: {free: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}]}}}"))
	if err == nil {
		_, err = realm.Apply(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	f = newServerOn(t, engine, server.Options{Keys: keys})
	return f, func(key string) kujiv1connect.RewardServiceClient {
			return kujiv1connect.NewRewardServiceClient(direct{f.server}, "http://localhost", connect.WithInterceptors(bearer(key)))
		}, sync.OnceFunc(func() {
			_ = f.server.Shutdown(context.Background())
			if err := engine.Close(); err != nil {
				t.Error(err)
			}
		})
}

// direct calls a handler without a network.
type direct struct{ http.Handler }

// Do implements [connect.HTTPClient].
func (d direct) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	r.RemoteAddr = "127.0.0.1:1"
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

func bearer(key string) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			r.Header().Set("Authorization", "Bearer "+key)
			return next(ctx, r)
		}
	}
}

func rawKeyLine(t *testing.T, key string, options ...string) string {
	t.Helper()
	line, err := access.KeyLine("read,grant,draw", key, key, options...)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func grant(id, item string, n uint64) *kujiv1.GrantRequest {
	return &kujiv1.GrantRequest{RequestId: id, Player: "ann", Items: []*kujiv1.Stack{{Item: item, Quantity: n}}}
}

func grantMember(item string, n uint64) *kujiv1.Member {
	return &kujiv1.Member{Command: &kujiv1.Member_Grant{Grant: &kujiv1.Grant{Player: "ann", Items: []*kujiv1.Stack{{Item: item, Quantity: n}}}}}
}

// TestGrantsNeedIDs: a grant without a request id, alone, in a group, in a batch or over Redis, is refused
// unless the key's line says otherwise.
func TestGrantsNeedIDs(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	f, of, stop := grantServer(t, t.TempDir(), &now, rawKeyLine(t, "shop"), rawKeyLine(t, "old", "ids=optional"))
	defer stop()
	ctx := t.Context()
	for key, want := range map[string]connect.Code{"shop": connect.CodeInvalidArgument, "old": 0} {
		c := of(key)
		check := func(what, field string, err error) {
			t.Helper()
			if connect.CodeOf(err) != want && (want != 0 || err != nil) {
				t.Errorf("%s by %s: %v, want %v", what, key, err, want)
			}
			if want != 0 && !strings.HasPrefix(err.(*connect.Error).Message(), field+": is empty") {
				t.Errorf("%s by %s: %v, want field %s", what, key, err, field)
			}
		}
		_, err := c.Grant(ctx, grant("", "gem", 1))
		check("a grant", "request_id", err)
		_, err = c.Atomic(ctx, &kujiv1.AtomicRequest{Members: []*kujiv1.Member{grantMember("gem", 1)}})
		check("a group", "request_id", err)
		_, err = c.Batch(ctx, &kujiv1.BatchRequest{Commands: []*kujiv1.Command{
			{RequestId: key, Command: &kujiv1.Command_Grant{Grant: &kujiv1.Grant{Player: "ann", Items: grant("", "gem", 1).GetItems()}}},
			{Command: &kujiv1.Command_Grant{Grant: &kujiv1.Grant{Player: "ann", Items: grant("", "gem", 1).GetItems()}}}}})
		check("a batch", "commands[1].request_id", err)
		if _, err := c.Grant(ctx, grant("with-"+key, "gem", 1)); err != nil {
			t.Error(err)
		}
		if _, err := c.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "free"}); err != nil {
			t.Errorf("a draw needs no id: %v", err)
		}
	}
	r := redis.NewClient(&redis.Options{Addr: startRedis(t, f), Password: "shop", Username: "default"})
	defer r.Close()
	if err := r.Do(ctx, "GRANT", "ann", "gem", 1).Err(); err == nil || !strings.HasPrefix(err.Error(), "INVALID request_id: is empty") {
		t.Error(err)
	}
	if err := r.Do(ctx, "GRANT", "ann", "gem", 1, "ID", "redis").Err(); err != nil {
		t.Error(err)
	}
}

// TestGrantCaps: a key grants no more than its line says, in a request and in a day, whatever way the
// grants come, also at the same time, and also after a restart.
func TestGrantCaps(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 3, 4, 22, 0, 0, 0, time.UTC)
	lines := []string{rawKeyLine(t, "desk", "grants=gem:5/12,coin:3"), rawKeyLine(t, "other", "grants=*:100/100"), rawKeyLine(t, "free")}
	f, of, stop := grantServer(t, dir, &now, lines...)
	ctx := t.Context()
	n := 0
	give := func(key, item string, quantity uint64, want string) {
		t.Helper()
		n++
		_, err := of(key).Grant(ctx, grant(fmt.Sprint("g", n), item, quantity))
		if want == "" && err != nil || want != "" && (connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s grants %d of %s: %v, want %q", key, quantity, item, err, want)
		}
	}
	give("desk", "gem", 6, `may grant 5 of "gem" in a request`)
	give("desk", "sword", 1, `may not grant "sword"`)
	give("desk", "coin", 3, "")
	give("desk", "coin", 3, "")
	give("free", "sword", 1000, "")
	group := &kujiv1.AtomicRequest{RequestId: "group", Members: []*kujiv1.Member{grantMember("gem", 3), grantMember("gem", 3)}}
	if _, err := of("desk").Atomic(ctx, group); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a group of 6: %v", err)
	}
	group.Members[1] = grantMember("gem", 1)
	if _, err := of("desk").Atomic(ctx, group); err != nil {
		t.Error(err)
	}
	give("desk", "gem", 5, "")
	give("desk", "gem", 4, `may grant 12 of "gem" in a day, and has granted 9; the next day begins at 2026-03-05T00:00:00Z`)
	// A repeat gets its answer and takes nothing; what the state refuses takes nothing.
	for range 3 {
		if res, err := of("desk").Atomic(ctx, group); err != nil || !res.GetResult().GetReplayed() {
			t.Errorf("the group again: %v, %v", res, err)
		}
	}
	// At the same time: three are left.
	var all sync.WaitGroup
	var mu sync.Mutex
	fit := 0
	for i := range 8 {
		all.Go(func() {
			_, err := of("desk").Grant(ctx, grant(fmt.Sprint("at-once-", i), "gem", 1))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				fit++
			}
		})
	}
	if all.Wait(); fit != 3 {
		t.Errorf("%d of 8 grants fitted, want 3", fit)
	}
	// A retry in the same batch is no final refusal: its first answer may be a moment away.
	ore := func() *kujiv1.Command {
		return &kujiv1.Command{RequestId: "ore", Command: &kujiv1.Command_Grant{Grant: &kujiv1.Grant{Player: "ann", Items: grant("", "sword", 60).GetItems()}}}
	}
	both, err := of("other").Batch(ctx, &kujiv1.BatchRequest{Commands: []*kujiv1.Command{ore(), ore()}})
	if err != nil || both.GetResults()[1].GetError().GetReason() != kujiv1.Reason_REASON_OVERLOADED {
		t.Errorf("a retry in the same batch: %v, %v", both, err)
	}
	if res, err := of("other").Batch(ctx, &kujiv1.BatchRequest{Commands: []*kujiv1.Command{ore()}}); err != nil || !res.GetResults()[0].GetReplayed() {
		t.Errorf("a retry in another batch: %v, %v", res, err)
	}
	check := func(f *fixture) {
		t.Helper()
		res, err := of("desk").Batch(ctx, &kujiv1.BatchRequest{Commands: []*kujiv1.Command{
			{RequestId: "b1", Command: &kujiv1.Command_Grant{Grant: &kujiv1.Grant{Player: "ann", Items: grant("", "gem", 1).GetItems()}}},
			{RequestId: "g8", Command: &kujiv1.Command_Grant{Grant: &kujiv1.Grant{Player: "ann", Items: grant("", "gem", 1).GetItems()}}}}})
		if err != nil || res.GetResults()[0].GetError().GetReason() != kujiv1.Reason_REASON_FORBIDDEN {
			t.Errorf("a batch: %v, %v", res, err)
		}
		r := redis.NewClient(&redis.Options{Addr: startRedis(t, f), Password: "desk", Username: "default"})
		defer r.Close()
		if err := r.Do(ctx, "GRANT", "ann", "gem", 1, "ID", fmt.Sprint("redis", n)).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("over Redis: %v", err)
		}
		give("desk", "gem", 1, "has granted 12")
		if res, err := of("desk").Atomic(ctx, group); err != nil || !res.GetResult().GetReplayed() {
			t.Errorf("the group again: %v, %v", res, err)
		}
	}
	check(f)
	give("other", "gem", 60, "")
	stop()
	f, of, stop = grantServer(t, dir, &now, lines...)
	defer stop()
	check(f)
	give("other", "gem", 41, "has granted 60")
	give("other", "coin", 41, "") // each item by itself
	for range 125 {               // a realm follows a jump of its clock by at most a minute
		now = now.Add(59 * time.Second)
		give("free", "gem", 1, "")
	}
	give("desk", "gem", 5, "")
	give("desk", "gem", 5, "")
	give("desk", "gem", 5, "has granted 10")
}
