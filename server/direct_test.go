package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// directCase is a request that is sent once to the direct path and once to
// Connect's handler.
type directCase struct {
	name   string
	direct bool // the direct path answers it
	body   string
	header []string // names and values
	edit   func(*http.Request)
}

func asProto(m proto.Message) string {
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(data)
}

var (
	jsonType  = []string{"Content-Type", "application/json"}
	protoType = []string{"Content-Type", "application/proto"}
)

func with(header []string, more ...string) []string {
	return append(append([]string(nil), header...), more...)
}

func directCases() []directCase {
	ann := &kujiv1.DrawRequest{RequestId: "p1", Player: "ann", Pool: "standard", Count: 3}
	const free = `{"player":"ann","pool":"free"}`
	long := strings.Repeat("x", kuji.MaxID)
	cases := []directCase{
		{"json", true, `{"requestId":"j1","player":"ann","pool":"standard","count":2}`, jsonType, nil},
		{"json, other names, white space", true, " {\n\t\"request_id\" : \"j1\" ,\r\"player\":\"ann\", \"pool\":\"standard\",\"count\":2 } ", jsonType, nil},
		{"json, no id", true, free, jsonType, nil},
		{"json, no text but ASCII", true, `{"requestId":"籤","player":"安","pool":"free","realm":"default"}`, jsonType, nil},
		{"json, longest", true, fmt.Sprintf(`{"requestId":%q,"player":%q,"pool":%q,"realm":%q,"count":4294967295}`, long, long, long, long), jsonType, nil},
		{"json, empty object", true, `{}`, jsonType, nil},
		{"json, escapes", false, `{"player":"\u0061nn","pool":"free"}`, jsonType, nil},
		{"json, null", false, `{"player":"ann","pool":"free","realm":null}`, jsonType, nil},
		{"json, count as text", false, `{"player":"ann","pool":"free","count":"1"}`, jsonType, nil},
		{"json, count too large", false, `{"player":"ann","pool":"free","count":4294967296}`, jsonType, nil},
		{"json, count with a leading zero", false, `{"player":"ann","pool":"free","count":01}`, jsonType, nil},
		{"json, count negative", false, `{"player":"ann","pool":"free","count":-1}`, jsonType, nil},
		{"json, unknown field", false, `{"player":"ann","pool":"free","amount":10}`, jsonType, nil},
		{"json, field twice", false, `{"player":"ann","pool":"free","player":"bob"}`, jsonType, nil},
		{"json, field twice by both names", false, `{"requestId":"1","request_id":"2","player":"ann","pool":"free"}`, jsonType, nil},
		{"json, more behind it", false, free + "x", jsonType, nil},
		{"json, half", false, free[:10], jsonType, nil},
		{"json, no UTF-8", false, "{\"player\":\"\xff\",\"pool\":\"free\"}", jsonType, nil},
		{"json, control character", false, "{\"player\":\"a\nb\",\"pool\":\"free\"}", jsonType, nil},
		{"json, empty body", false, "", jsonType, nil},
		{"json, large", false, `{"player":"ann","pool":"free"` + strings.Repeat(" ", server.MaxDirect) + "}", jsonType, nil},
		{"json, too large", false, `{"player":"ann","pool":"free"` + strings.Repeat(" ", 64<<10) + "}", jsonType, nil},

		{"proto", true, asProto(ann), protoType, nil},
		{"proto, fields in any order, twice", true, asProto(ann) + asProto(&kujiv1.DrawRequest{RequestId: "p1"}), protoType, nil},
		{"proto, no id", true, asProto(&kujiv1.DrawRequest{Player: "ann", Pool: "free"}), protoType, nil},
		{"proto, empty", false, "", protoType, nil},
		{"proto, field of another type", false, string(protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 1)), protoType, nil},
		{"proto, unknown field", false, asProto(ann) + string(protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "new")), protoType, nil},
		{"proto, no UTF-8", false, string(protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType), "\xff")), protoType, nil},
		{"proto, half", false, asProto(ann)[:5], protoType, nil},

		{"key in another header", true, free, with(jsonType, "X-Api-Key", writeKey, "Authorization", ""), nil},
		{"no key", false, free, with(jsonType, "Authorization", ""), nil},
		{"a reader's key", false, free, with(jsonType, "Authorization", "Bearer "+readKey), nil},
		{"version", true, free, with(jsonType, "Connect-Protocol-Version", "1"), nil},
		{"another version", false, free, with(jsonType, "Connect-Protocol-Version", "2"), nil},
		{"time-out", true, free, with(jsonType, "Connect-Timeout-Ms", "60000"), nil},
		{"time-out that has passed", true, free, with(jsonType, "Connect-Timeout-Ms", "0"), nil},
		{"time-out of too many digits", false, free, with(jsonType, "Connect-Timeout-Ms", "00000060000"), nil},
		{"negative time-out", false, free, with(jsonType, "Connect-Timeout-Ms", "-1"), nil},
		{"no time-out", false, free, with(jsonType, "Connect-Timeout-Ms", "soon"), nil},
		{"answers in gzip accepted", true, free, with(jsonType, "Accept-Encoding", "gzip"), nil},
		{"charset", false, `{"requestId":"c1","player":"ann","pool":"free"}`, []string{"Content-Type", "application/json; charset=utf-8"}, nil},
		{"other type", false, free, []string{"Content-Type", "text/plain"}, nil},
		{"no type", false, free, nil, nil},
		{"identity", false, free, with(jsonType, "Content-Encoding", "identity"), nil},
		{"unknown compression", false, free, with(jsonType, "Content-Encoding", "br"), nil},
		{"not gzip", false, free, with(jsonType, "Content-Encoding", "gzip"), nil},
		{"gRPC", false, "\x00\x00\x00\x00\x0f" + asProto(&kujiv1.DrawRequest{RequestId: "g1", Player: "ann", Pool: "free"}), []string{"Content-Type", "application/grpc"}, nil},
		{"GET", false, free, jsonType, func(r *http.Request) { r.Method = http.MethodGet }},
		{"body of unknown length", false, free, jsonType, func(r *http.Request) { r.ContentLength = -1 }},
		{"caller gone", true, free, jsonType, func(r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			*r = *r.WithContext(ctx)
		}},
		{"body one byte at a time", true, free, jsonType, func(r *http.Request) { r.Body = io.NopCloser(iotest.OneByteReader(r.Body)) }},
		{"body that breaks off", false, free, jsonType, func(r *http.Request) {
			r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, 10), iotest.ErrReader(errors.New("cut"))))
		}},
	}
	// Every way in which a draw can end.
	for _, pool := range []string{"standard", "last", "once", "dear", "future", "past", "nope"} {
		for _, player := range []string{"first", "second"} {
			body := fmt.Sprintf(`{"requestId":"%s-%s","player":%q,"pool":%[1]q,"count":1}`, pool, player, player)
			cases = append(cases, directCase{pool + " for the " + player, true, body, jsonType, nil})
		}
	}
	return append(cases,
		directCase{"too many", true, `{"requestId":"many","player":"ann","pool":"standard","count":11}`, jsonType, nil},
		directCase{"an id used for something else", true, `{"requestId":"j1","player":"bob","pool":"standard","count":2}`, jsonType, nil},
		directCase{"unknown realm", true, `{"player":"ann","pool":"free","realm":"nowhere"}`, jsonType, nil},
		directCase{"no player", true, `{"pool":"free"}`, jsonType, nil},
		directCase{"id too long", true, fmt.Sprintf(`{"player":%q,"pool":"free"}`, long+"x"), jsonType, nil},
	)
}

// answered is everything that a client and the metrics see of an answer.
type answered struct {
	Code    int
	Header  http.Header
	Body    string
	Samples map[string]float64
}

// TestDirect sends each request to the direct path and to Connect's handler,
// and finds no difference in answers and metrics. Each is sent once before, so
// that request ids give the same answer both times.
func TestDirect(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t)})
	connected := 0
	f.server.Wrap(kujiv1connect.RewardServiceDrawProcedure, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			connected++
			h.ServeHTTP(w, r)
		})
	})
	for _, tt := range directCases() {
		t.Run(tt.name, func(t *testing.T) {
			send := func() answered {
				t.Helper()
				before := samples(t, f.server)
				r := httptest.NewRequest(http.MethodPost, drawPath, strings.NewReader(tt.body))
				r.Header.Set("Authorization", "Bearer "+writeKey)
				for i := 0; i < len(tt.header); i += 2 {
					r.Header.Set(tt.header[i], tt.header[i+1])
				}
				if tt.edit != nil {
					tt.edit(r)
				}
				w := httptest.NewRecorder()
				f.server.ServeHTTP(w, r)
				a := answered{w.Code, w.Header(), comparable(t, w), samples(t, f.server)}
				for name, v := range before {
					if a.Samples[name] -= v; a.Samples[name] == 0 {
						delete(a.Samples, name)
					}
				}
				return a
			}
			send()
			connected = 0
			got := send()
			if direct := connected == 0 && got.Samples[`kuji_rpc_duration_seconds_count{rpc="kuji.v1.RewardService/Draw"}`] > 0; direct != tt.direct {
				t.Errorf("answered directly: %v, want %v", direct, tt.direct)
			}
			undo := f.server.Indirect()
			want := send()
			undo()
			if tt.direct && connected != 1 {
				t.Errorf("Connect's handler was called %d times, want once", connected)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the direct path's answer is not Connect's (-Connect +direct):\n%s", d)
			}
		})
	}
}

// comparable is an answer's body without what differs from one draw to the
// next, and without the white space that the JSON library puts in at random.
func comparable(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	body := w.Body.Bytes()
	m := new(kujiv1.DrawResponse)
	var err error
	switch w.Header().Get("Content-Type") {
	case "application/proto":
		err = proto.Unmarshal(body, m)
	case "application/json":
		if w.Code != http.StatusOK {
			return string(body)
		}
		err = protojson.Unmarshal(body, m)
		var tight bytes.Buffer
		if err := json.Compact(&tight, body); err != nil {
			t.Fatal(err)
		}
		body = tight.Bytes()
	default:
		return string(body)
	}
	if err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	if m.GetResult().GetReplayed() {
		return string(body)
	}
	rc := m.GetResult().GetReceipt()
	rc.Position, rc.Index, rc.TimeUnixMs = 0, 0, 0
	return asProto(m)
}

// samples are the server's own counters.
func samples(t *testing.T, s *server.Server) map[string]float64 {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Authorization", "Bearer "+readKey)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	all := make(map[string]float64)
	for line := range strings.Lines(w.Body.String()) {
		at := strings.LastIndexByte(line, ' ')
		for _, prefix := range []string{"kuji_rpc_requests_total", "kuji_rpc_duration_seconds_count", "kuji_results_total", "kuji_realm_draws_total",
			"kuji_realm_failures_total", "kuji_realm_replays_total"} {
			if strings.HasPrefix(line, prefix) {
				var v float64
				if _, err := fmt.Sscan(line[at+1:], &v); err != nil {
					t.Fatal(err)
				}
				all[line[:at]] = v
			}
		}
	}
	return all
}

// TestDirectPanic: a panic beneath a draw is logged and answered as elsewhere.
func TestDirectPanic(t *testing.T) {
	log := &lockedBuffer{}
	f := newServer(t, server.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	send := func() answered {
		f.server.BreakRealm("broken")
		r := httptest.NewRequest(http.MethodPost, "http://localhost"+drawPath, strings.NewReader(`{"player":"ann","pool":"free","realm":"broken"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		f.server.ServeHTTP(w, r)
		return answered{Code: w.Code, Header: w.Header(), Body: w.Body.String()}
	}
	got := send()
	if text := log.String(); got.Code != http.StatusInternalServerError || strings.Count(text, "panic while answering") != 1 || !strings.Contains(text, "drawDirect") {
		t.Errorf("HTTP %d %s, log %q: want an internal error, and the panic in the log", got.Code, got.Body, text)
	}
	undo := f.server.Indirect()
	want := send()
	undo()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the direct path's answer is not Connect's (-Connect +direct):\n%s", d)
	}
}

// TestDirectLimit: the limit of a request holds for small ones too.
func TestDirectLimit(t *testing.T) {
	f := newServer(t, server.Options{Limits: server.Limits{RequestBytes: 40}})
	for body, want := range map[string]int{
		`{"player":"ann","pool":"free"}`:                http.StatusOK,
		`{"player":"ann","pool":"free","realm":"none"}`: http.StatusTooManyRequests,
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost"+drawPath, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		f.server.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%d bytes: HTTP %d %s, want %d", len(body), w.Code, w.Body, want)
		}
	}
}

// FuzzDirectRequest: what is read directly is what the codecs read.
func FuzzDirectRequest(f *testing.F) {
	for _, tt := range directCases() {
		f.Add([]byte(tt.body), len(tt.header) > 1 && tt.header[1] == "application/json")
	}
	codecs := server.Codecs()
	f.Fuzz(func(t *testing.T, data []byte, asJSON bool) {
		got, ok := server.DecodeDirect(data, asJSON)
		if !ok {
			return
		}
		codec := codecs["proto"]
		if asJSON {
			codec = codecs["json"]
		}
		m := new(kujiv1.DrawRequest)
		if err := codec.Unmarshal(data, m); err != nil {
			t.Fatalf("%q is read as %v, want the error %v", data, got, err)
		}
		want := kuji.Draw{ID: m.GetRequestId(), Player: m.GetPlayer(), Pool: m.GetPool(), Count: int(min(m.GetCount(), 1<<30))}
		if got.Draw != want || got.Realm != m.GetRealm() {
			t.Errorf("%q is read as %v, want %v", data, got, m)
		}
	})
}

// TestDirectAnswer: what is written directly is what the codecs write.
func TestDirectAnswer(t *testing.T) {
	id := rapid.OneOf(rapid.StringMatching(`[a-z0-9-]{0,20}`), rapid.SampledFrom([]string{"剣", "a\"b", "back\\slash", "tab\t", "\x7f", "\u2028", "<&>", "\xff", "é\x80"}))
	stack := rapid.Custom(func(t *rapid.T) kuji.Stack {
		return kuji.Stack{Item: id.Draw(t, "item"), Quantity: rapid.Uint64().Draw(t, "quantity")}
	})
	outcome := rapid.Custom(func(t *rapid.T) kuji.Outcome {
		return kuji.Outcome{Entry: id.Draw(t, "entry"), Items: rapid.SliceOfN(stack, 0, 4).Draw(t, "items"), Via: rapid.SliceOfN(id, 0, 3).Draw(t, "via")}
	})
	written := 0
	rapid.Check(t, func(t *rapid.T) {
		res := kuji.Result{Outcomes: rapid.SliceOfN(outcome, 0, 5).Draw(t, "outcomes"), Replayed: rapid.Bool().Draw(t, "replayed")}
		res.Status = rapid.SampledFrom([]kuji.Status{kuji.OK, kuji.OK, kuji.OK, kuji.SoldOut}).Draw(t, "status")
		res.Receipt = kuji.Receipt{
			Realm: id.Draw(t, "realm"), Position: rapid.Uint64().Draw(t, "position"), Index: int(rapid.Uint32().Draw(t, "index")),
			Time: rapid.Int64().Draw(t, "time"), CatalogVersion: rapid.Uint64().Draw(t, "version"), Epoch: rapid.Uint64().Draw(t, "epoch"),
		}
		copy(res.Receipt.Commitment[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "commitment"))
		m := server.DrawResponse(&res)
		for name, codec := range server.Codecs() {
			got, ok := server.EncodeDirect([]byte("kept "), &res, name == "json")
			if !ok {
				continue // then the codec writes it
			}
			written++
			want, err := codec.Marshal(m)
			if err != nil {
				t.Fatalf("%s: %q is written, want the error %v", name, got, err)
			}
			if name == "json" {
				var tight bytes.Buffer
				if err := json.Compact(&tight, want); err != nil {
					t.Fatal(err)
				}
				want = tight.Bytes()
			}
			if string(got) != "kept "+string(want) {
				t.Fatalf("%s:\n got %q\nwant %q", name, got, want)
			}
		}
	})
	if written == 0 {
		t.Error("nothing was written directly")
	}
}
