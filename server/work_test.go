package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// largeCatalog has n items, and a pool of n entries that give two of them each.
func largeCatalog(n int) []byte {
	var b strings.Builder
	b.WriteString("kuji: 1\nitems:\n")
	for i := range n {
		fmt.Fprintf(&b, "  item-%05d: {name: Number %d}\n", i, i)
	}
	b.WriteString("pools:\n  box:\n    max_count: 1000\n    entries:\n")
	for i := range n {
		fmt.Fprintf(&b, "    - id: entry-%05d\n      weight: 1\n      reward: {items: {item-%05d: 1, item-%05d: 3}}\n", i, i, (i+1)%n)
	}
	return []byte(b.String())
}

// shownCatalog is largeCatalog with the longest displays that there can be in a language, of escapes of JSON, and quests.
func shownCatalog(n int) string {
	long := func(of string, most int) string { return strings.Repeat(of, most/len(of)) }
	var metadata []string
	for i := range 16 {
		metadata = append(metadata, fmt.Sprintf(`k%02d: %q`, i, long(`"`, 61)))
	}
	display := fmt.Sprintf(`{name: {en: %[1]q, de: %[1]q}, description: {en: "x", de: %[2]q}, rarity: %[3]s, icon: %[4]q, metadata: {%[5]s}`,
		long(`"`, 256), long("\n", 2047)+"x", long("r", 64), "/"+long("i", 511), strings.Join(metadata, ", "))
	var b strings.Builder
	fmt.Fprintf(&b, "kuji: 1\nrarities: {%s: {}}\nitems:\n", long("r", 64))
	for i := range n {
		fmt.Fprintf(&b, "  item-%05d: %s}\n", i, display)
	}
	b.WriteString("counters:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  counter-%05d: %s}\n", i, display)
	}
	b.WriteString("quests:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  quest-%05d: %s, needs: {counter-%05d: 1}, reward: {items: {item-%05d: 1}}}\n", i, display, i, i%n)
	}
	_, pools, _ := strings.Cut(string(largeCatalog(n)), "pools:\n")
	return b.String() + "pools:\n" + pools
}

// TestWork: no call takes more memory than it takes from the budget, apart from its request.
func TestWork(t *testing.T) {
	f := start(t, server.Options{})
	const entries = 2000
	if _, err := clients(t, f.url)[0].admin.ApplyCatalog(context.Background(), &kujiv1.ApplyCatalogRequest{Yaml: largeCatalog(entries)}); err != nil {
		t.Fatal(err)
	}
	many := func(n int, count uint32) *kujiv1.BatchRequest {
		m := &kujiv1.BatchRequest{}
		for i := range n {
			m.Commands = append(m.Commands, drawCommand("", fmt.Sprint("player-", i%100), "box", count))
		}
		return m
	}
	group := &kujiv1.AtomicRequest{}
	for range kuji.MaxAtomic {
		group.Members = append(group.Members, &kujiv1.Member{Command: &kujiv1.Member_Draw{Draw: &kujiv1.Draw{Player: "ann", Pool: "box", Count: 20}}})
	}
	crowd := roundRealm(t, f, "rounds")
	reqs := []kuji.Request{kuji.OpenRound{Round: "crowd"}}
	for i := range kuji.MaxEntrants {
		reqs = append(reqs, kuji.Join{Player: fmt.Sprint("player-", i), Round: "crowd"}, kuji.OpenRound{Round: "duel"})
	}
	if _, err := crowd.DoAll(t.Context(), reqs); err != nil {
		t.Fatal(err)
	}
	holdMany(t, f, group)
	applyTo(t, f, "shown", shownCatalog(entries))
	applyTo(t, f, "published", shownCatalog(350)) // nearly as long a page as there can be
	for _, c := range []struct {
		path string
		m    proto.Message
	}{
		{"ListHolds", &kujiv1.ListHoldsRequest{Realm: "holds", Limit: kuji.MaxHolds}},
		{"ListHolds", &kujiv1.ListHoldsRequest{Realm: "holds", Player: "ann"}},
		{"GetHold", &kujiv1.GetHoldRequest{Hold: "open"}},
		{"Atomic", &kujiv1.AtomicRequest{RequestId: "again", Members: group.GetMembers(), HoldMs: 60_000}},
		{"Batch", &kujiv1.BatchRequest{Commands: []*kujiv1.Command{{RequestId: "many", Command: &kujiv1.Command_Draw{Draw: &kujiv1.Draw{Player: "ann", Pool: "box", Count: kuji.MaxDrawCount, HoldMs: 60_000}}}}}},
		{"ListHolds", &kujiv1.ListHoldsRequest{Limit: 1}},
		{"Confirm", &kujiv1.ConfirmRequest{RequestId: "c", Hold: "given"}},
		{"Confirm", &kujiv1.ConfirmRequest{RequestId: "d", Hold: "drawn"}},
		{"GetRound", &kujiv1.GetRoundRequest{Realm: "rounds", Number: 1, EntrantLimit: kuji.MaxEntrants}},
		{"GetRound", &kujiv1.GetRoundRequest{Realm: "rounds", Number: 1, EntrantLimit: 1}},
		{"ListRounds", &kujiv1.ListRoundsRequest{Realm: "rounds"}},
		{"Settle", &kujiv1.SettleRequest{Realm: "rounds", RequestId: "s", Round: "crowd"}},
		{"Draw", &kujiv1.DrawRequest{Player: "ann", Pool: "box", Count: kuji.MaxDrawCount}},
		{"Draw", &kujiv1.DrawRequest{Player: "ann", Pool: "box"}},
		{"Atomic", group},
		{"Batch", many(100, kuji.MaxDrawCount)},
		{"Batch", many(kuji.MaxBatch, 1)},
		{"GetPool", &kujiv1.GetPoolRequest{Pool: "box", EntryLimit: entries}},
		{"GetCatalog", &kujiv1.GetCatalogRequest{ItemLimit: entries}},
		{"GetCatalog", &kujiv1.GetCatalogRequest{Realm: "shown", ItemLimit: entries, Language: "de"}},
		{"GetPool", &kujiv1.GetPoolRequest{Realm: "shown", Pool: "box", EntryLimit: entries, Names: true, Language: "de"}},
		{"ListQuests", &kujiv1.ListQuestsRequest{Realm: "shown", QuestLimit: 1000, Names: true, Language: "de"}},
		{"ListDisplays", &kujiv1.ListDisplaysRequest{Realm: "shown", Limit: 10000, Language: "de"}},
		{"ListDisplays", &kujiv1.ListDisplaysRequest{Realm: "shown", Language: "de"}},
		{"ListDisplays", &kujiv1.ListDisplaysRequest{Limit: 10000}},
		{"GetDisclosure", &kujiv1.GetDisclosureRequest{Realm: "published", Language: "de"}},
	} {
		for _, codec := range []string{"proto", "json"} {
			body, err := proto.Marshal(c.m)
			if codec == "json" {
				body, err = protojson.Marshal(c.m)
			}
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			call := func() {
				r := httptest.NewRequest(http.MethodPost, "/kuji.v1.RewardService/"+c.path, bytes.NewReader(body))
				r.Host = "localhost"
				r.Header.Set("Content-Type", "application/"+codec)
				w = httptest.NewRecorder()
				f.server.ServeHTTP(w, r)
			}
			decoding := allocated(func() {
				if err := server.Codecs()[codec].Unmarshal(body, c.m.ProtoReflect().New().Interface()); err != nil {
					t.Error(err)
				}
			})
			call()
			runtime.GC()
			runtime.GC() // pools of buffers are empty: the worst case
			taken := allocated(call)
			t.Logf("%s in %s: %d of %d", c.path, codec, taken, server.WorkOf(c.m))
			if w.Code != http.StatusOK {
				t.Fatalf("%s in %s: %d %.300s", c.path, codec, w.Code, w.Body)
			}
			if most := uint64(server.WorkOf(c.m)) + decoding; taken > most {
				t.Errorf("%s in %s takes %d bytes, %d are reckoned", c.path, codec, taken, most)
			}
		}
	}
}

// holdMany holds a group of as many draws as one can have in three ways, and a thousand small ones in another realm.
func holdMany(t *testing.T, f *fixture, group *kujiv1.AtomicRequest) {
	t.Helper()
	c := clients(t, f.url)[0]
	for id, refund := range map[string]bool{"open": false, "given": false, "drawn": true} {
		if _, err := c.reward.Atomic(t.Context(), &kujiv1.AtomicRequest{RequestId: id, Members: group.GetMembers(), HoldMs: 3_600_000, Refund: refund}); err != nil {
			t.Fatal(err)
		}
	}
	small := holdRealm(t, f, "holds")
	var reqs []kuji.Request
	for i := range kuji.MaxHolds {
		player := "ann"
		if i >= kuji.MaxPlayerHolds {
			player = fmt.Sprint("player-", i)
		}
		reqs = append(reqs, kuji.Draw{ID: fmt.Sprint("h", i), Player: player, Pool: "free", Hold: kuji.Holding{For: time.Hour}})
	}
	if _, err := small.DoAll(t.Context(), reqs); err != nil {
		t.Fatal(err)
	}
}

// TestStreamForgets: a stream keeps nothing of its large batches.
func TestStreamForgets(t *testing.T) {
	f := start(t, server.Options{})
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // pools give up what they hold
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	batch := drawsOf(kuji.MaxBatch, -1)
	batch.Realm = ""
	client := streamClients(t, f.url)[0]
	exchange(t, openStream(t, client), batch)
	before := heap()
	const streams = 20
	for range streams {
		exchange(t, openStream(t, client), batch)
	}
	if most, grown := uint64(streams)<<20, int64(heap()-before); grown > int64(most) {
		t.Errorf("%d streams keep %d bytes of their batches, want at most %d", streams, grown, most)
	}
}

// slowClient takes no byte of its answer until it is released.
type slowClient struct {
	*httptest.ResponseRecorder
	answering, release chan struct{}
}

func (c *slowClient) Write(p []byte) (int, error) {
	c.answering <- struct{}{}
	<-c.release
	return c.ResponseRecorder.Write(p)
}

func (f *fixture) serve(ctx context.Context, w http.ResponseWriter, path, body string) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	f.server.ServeHTTP(w, r)
}

// TestWorkWaits: a call holds its memory until its answer is sent. Others that need much wait
// for it as long as their clients do, and small ones go on.
func TestWorkWaits(t *testing.T) {
	f := newServer(t, server.Options{Limits: server.Limits{WorkBytes: 1}})
	const page, draw = "/kuji.v1.RewardService/GetPool", `{"player":"ann","pool":"free"}`
	slow := &slowClient{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	var calls sync.WaitGroup
	calls.Go(func() { f.serve(t.Context(), slow, page, `{"pool":"free"}`) })
	<-slow.answering
	if n := f.server.InWork(); n != 1 {
		t.Errorf("%d bytes are taken by a call that is answered, want all: 1", n)
	}
	w := httptest.NewRecorder()
	if f.serve(t.Context(), w, drawPath, draw); w.Code != http.StatusOK {
		t.Errorf("a small call meanwhile: %d %s", w.Code, w.Body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone, next := httptest.NewRecorder(), httptest.NewRecorder()
	ended := make(chan struct{})
	go func() {
		f.serve(ctx, gone, page, `{"pool":"free"}`)
		close(ended)
	}()
	calls.Go(func() { f.serve(t.Context(), next, page, `{"pool":"free"}`) })
	cancel()
	<-ended
	if gone.Code != 499 || !strings.Contains(gone.Body.String(), "canceled") {
		t.Errorf("a large call whose client left: %d %s, want canceled", gone.Code, gone.Body)
	}
	close(slow.release)
	calls.Wait()
	if next.Code != http.StatusOK {
		t.Errorf("a large call that waited: %d %s", next.Code, next.Body)
	}
	if n := f.server.InWork(); n != 0 {
		t.Errorf("%d bytes are taken after the end, want 0", n)
	}
}

// TestCatalogTurns: catalogs are read one at a time, and keep no other call waiting.
func TestCatalogTurns(t *testing.T) {
	f := newServer(t, server.Options{})
	const path = "/kuji.v1.AdminService/ApplyCatalog"
	entered, release := make(chan struct{}), make(chan struct{})
	f.server.Replace(path, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	}))
	var calls sync.WaitGroup
	const waiting = 20 // more than BulkInFlight
	for range waiting {
		calls.Go(func() { f.serve(t.Context(), httptest.NewRecorder(), path, "{}") })
	}
	<-entered
	for f.server.InFlight() < waiting {
		runtime.Gosched()
	}
	w := httptest.NewRecorder()
	if f.serve(t.Context(), w, "/kuji.v1.RewardService/Batch", `{"commands":[{"draw":{"player":"ann","pool":"free"}}]}`); w.Code != http.StatusOK {
		t.Errorf("a batch meanwhile: %d %s", w.Code, w.Body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.serve(ctx, httptest.NewRecorder(), path, "{}") // does not wait
	for range waiting - 1 {
		select {
		case <-entered:
			t.Fatal("two catalogs are read at a time")
		case release <- struct{}{}:
		}
		<-entered
	}
	release <- struct{}{}
	calls.Wait()
}

// endingContext ends when it is looked at for the nth time.
type endingContext struct {
	context.Context
	left *atomic.Int64
}

func (c *endingContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestCatalogEndsWithItsCaller: a catalog whose caller leaves is read no further.
func TestCatalogEndsWithItsCaller(t *testing.T) {
	var left atomic.Int64
	f := newServer(t, server.Options{Interceptors: []connect.Interceptor{connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			return next(&endingContext{ctx, &left}, r)
		}
	})}})
	body, err := protojson.Marshal(&kujiv1.ApplyCatalogRequest{Yaml: largeCatalog(5000), DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	taken := func(looks int64, want int) uint64 {
		left.Store(looks)
		w := httptest.NewRecorder()
		n := allocated(func() { f.serve(t.Context(), w, "/kuji.v1.AdminService/ApplyCatalog", string(body)) })
		if w.Code != want {
			t.Fatalf("a caller that leaves after %d looks: %d %.200s, want %d", looks, w.Code, w.Body, want)
		}
		return n
	}
	whole, part := taken(1<<60, http.StatusOK), taken(50, 499)
	if part > whole/4 {
		t.Errorf("%d bytes for a catalog whose caller leaves, %d for one whose caller stays, want at most a quarter", part, whole)
	}
}
