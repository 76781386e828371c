package server_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// needs says once more what each RPC needs, and whether it is about a realm, a pool and a player. An
// RPC that is not here fails the test.
var needs = map[string]struct {
	command             string
	realm, pool, player bool
	anyPool             bool // not for keys with pools
	whole               bool // of a realm: not for keys with pools, not for players
	server              bool // of all realms
}{
	"Draw":             {command: "draw", realm: true, pool: true, player: true},
	"Redeem":           {command: "redeem", realm: true, player: true, anyPool: true},
	"Register":         {command: "register", realm: true, player: true},
	"Grant":            {command: "grant", realm: true, player: true},
	"Consume":          {command: "consume", realm: true, player: true},
	"Transfer":         {command: "transfer", realm: true, player: true},
	"Progress":         {command: "progress", realm: true, player: true},
	"Claim":            {command: "claim", realm: true, player: true},
	"Collect":          {command: "collect", realm: true, player: true},
	"OpenRound":        {command: "open_round", realm: true, player: true},
	"Join":             {command: "join", realm: true, player: true},
	"Settle":           {command: "settle", realm: true},
	"Reroll":           {command: "reroll", realm: true},
	"CancelRound":      {command: "cancel_round", realm: true},
	"LinkCode":         {command: "link_code", realm: true, player: true, anyPool: true},
	"Link":             {command: "link", realm: true, player: true, anyPool: true},
	"Unlink":           {command: "unlink", realm: true, player: true, anyPool: true},
	"HandleMessage":    {command: "chat", realm: true, whole: true},
	"Confirm":          {command: "confirm", realm: true, anyPool: true},
	"Cancel":           {command: "cancel", realm: true, anyPool: true},
	"GetResult":        {command: "read", realm: true, player: true},
	"StreamEvents":     {command: "read", realm: true, pool: true, player: true},
	"GetHistory":       {command: "read", realm: true, pool: true, player: true},
	"ListPlayers":      {command: "read", realm: true, whole: true},
	"ListHolders":      {command: "read", realm: true, whole: true},
	"ListRanks":        {command: "read", realm: true, whole: true},
	"GetRound":         {command: "read", realm: true, whole: true},
	"ListRounds":       {command: "read", realm: true, whole: true},
	"GetHold":          {command: "read", realm: true, whole: true},
	"ListHolds":        {command: "read", realm: true, player: true},
	"GetPlayer":        {command: "read", realm: true, player: true},
	"ListQuests":       {command: "read", realm: true, player: true},
	"GetPool":          {command: "read", realm: true, pool: true, player: true},
	"GetOdds":          {command: "read", realm: true, pool: true, player: true},
	"GetCatalog":       {command: "read", realm: true, whole: true},
	"ExportCatalog":    {command: "read", realm: true, whole: true},
	"ListCatalogs":     {command: "read", realm: true, whole: true},
	"GetCodes":         {command: "read", realm: true, whole: true},
	"GetStatus":        {command: "read", realm: true, whole: true},
	"ListRealms":       {command: "read", whole: true, server: true},
	"ApplyCatalog":     {command: "admin", realm: true, whole: true},
	"CreateRealm":      {command: "admin", realm: true, whole: true},
	"SetClock":         {command: "admin", realm: true, whole: true},
	"FinishUpgrade":    {command: "admin", realm: true, whole: true},
	"SetTrack":         {command: "admin", realm: true, whole: true, player: true},
	"SetLimit":         {command: "admin", realm: true, whole: true, pool: true, player: true},
	"SetCounter":       {command: "admin", realm: true, whole: true, player: true},
	"Merge":            {command: "admin", realm: true, whole: true, player: true},
	"Forget":           {command: "admin", realm: true, whole: true, player: true},
	"Block":            {command: "admin", realm: true, whole: true, player: true},
	"Reverse":          {command: "admin", realm: true, whole: true},
	"GetAccess":        {command: "any"},
	"GetEpoch":         {command: "read", realm: true},
	"ListDisplays":     {command: "read", realm: true},
	"GetDisclosure":    {command: "read", realm: true, pool: true},
	"ListKeys":         {command: "admin", whole: true, server: true},
	"ListSlow":         {command: "read", whole: true, server: true},
	"ListNodes":        {command: "read", whole: true, server: true},
	"Simulate":         {command: "simulate", realm: true, pool: true, whole: true},
	"ProposeCatalog":   {command: "propose", realm: true, whole: true},
	"ListProposals":    {command: "read", realm: true, whole: true},
	"GetProposal":      {command: "read", realm: true, whole: true},
	"WithdrawProposal": {command: "propose or approve", realm: true, whole: true},
	"ApproveCatalog":   {command: "approve", realm: true, whole: true},
	"DeleteRealm":      {command: "admin", realm: true, whole: true, server: true},
	"ImportCodes":      {command: "admin", realm: true, whole: true},
	"ExportCodes":      {command: "admin", realm: true, whole: true},
	"Backup":           {command: "admin", realm: true, whole: true},
	// Batch, Atomic and StreamDraws need what is in them: see TestCommandsInside.
	"Batch": {command: "write", realm: true}, "Atomic": {command: "write", realm: true}, "StreamDraws": {command: "draw", realm: true},
}

var (
	allCommands = []string{"read", "draw", "redeem", "register", "grant", "consume", "transfer", "progress", "claim", "collect",
		"open_round", "join", "settle", "reroll", "cancel_round", "confirm", "cancel", "link_code", "link", "unlink", "chat", "simulate", "propose", "approve"}
	// notPlayers are those that no player's token has.
	notPlayers = []string{"grant", "progress", "open_round", "settle", "reroll", "cancel_round", "confirm", "cancel", "unlink", "chat", "simulate", "propose", "approve", "propose or approve", "admin"}
)

// tokens makes player tokens.
type tokens struct {
	t       testing.TB
	private ed25519.PrivateKey
	public  []byte // the JWKS
}

func newTokens(t testing.TB) *tokens {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k1", Algorithm: "EdDSA", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &tokens{t, private, set}
}

// good are the claims of a good token for a player.
func good(player string) map[string]any {
	return map[string]any{"sub": player, "iss": "https://id.example", "aud": []string{"kuji"}, "exp": time.Now().Add(time.Hour).Unix()}
}

// sign makes a token, signed by a key.
func sign(t testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	o := &jose.SignerOptions{}
	if id != "" {
		o = o.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (k *tokens) of(player string) string {
	return sign(k.t, jose.EdDSA, k.private, "k1", good(player))
}

// accessServer is a server with a key of each kind.
func accessServer(t *testing.T) (*fixture, *tokens, *access.Keys) {
	t.Helper()
	keys, k := playerKeys(t)
	return newServer(t, server.Options{Keys: keys}), k, keys
}

// playerKeys are a key of each kind, and what makes player tokens.
func playerKeys(t *testing.T) (*access.Keys, *tokens) {
	t.Helper()
	dir := t.TempDir()
	k := newTokens(t)
	if err := os.WriteFile(filepath.Join(dir, "players.json"), k.public, 0o600); err != nil {
		t.Fatal(err)
	}
	lines := []string{
		keyLine(t, "admin", "admin", ""),
		keyLine(t, strings.Join(allCommands, ","), "everything", ""),
		keyLine(t, "admin", "admin-here", "", "realms=default"),
		keyLine(t, "admin", "admin-elsewhere", "", "realms=other"),
		keyLine(t, strings.Join(allCommands, ","), "free-pool", "", "pools=free"),
		keyLine(t, strings.Join(allCommands, ","), "other-pool", "", "pools=standard,box"),
		"read,draw,redeem,register,consume,transfer,claim,collect,join,link_code,link jwks=players.json players algs=EdDSA issuer=https://id.example audience=kuji",
	}
	for _, c := range allCommands {
		lines = append(lines, keyLine(t, c, "only-"+c, ""))
	}
	path := filepath.Join(dir, "keys")
	writeKeys(t, path, lines...)
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys, k
}

// fill makes a request of an RPC that names the default realm, the pool free and the player ann.
func fill(m protoreflect.MethodDescriptor) string {
	msg := dynamicpb.NewMessage(m.Input())
	for name, value := range map[protoreflect.Name]string{"realm": "default", "pool": "free", "player": "ann", "from": "ann"} {
		if f := m.Input().Fields().ByName(name); f != nil && f.Kind() == protoreflect.StringKind {
			msg.Set(f, protoreflect.ValueOfString(value))
		}
	}
	data, err := protojson.Marshal(msg)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// ask calls an RPC with a secret, by plain HTTP.
func ask(f *fixture, method protoreflect.MethodDescriptor, secret, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/"+string(method.Parent().FullName())+"/"+string(method.Name()), strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if method.IsStreamingClient() || method.IsStreamingServer() { // with the stream's envelope
		r = httptest.NewRequest(http.MethodPost, r.URL.Path, strings.NewReader(fmt.Sprintf("\x00\x00\x00\x00%c%s", len(body), body)))
		r.Header.Set("Content-Type", "application/connect+json")
		r.ProtoMajor, r.ProtoMinor, r.Proto = 2, 0, "HTTP/2.0"
	}
	if !method.IsStreamingClient() && method.IsStreamingServer() { // it never ends by itself
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		r = r.WithContext(ctx)
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	w := &streamable{httptest.NewRecorder()}
	f.server.ServeHTTP(w, r)
	return w.ResponseRecorder
}

// streamable is a recorder that pretends to have deadlines.
type streamable struct{ *httptest.ResponseRecorder }

func (streamable) SetReadDeadline(time.Time) error  { return nil }
func (streamable) SetWriteDeadline(time.Time) error { return nil }

// denied returns how an answer denies access: 401, 403, or 0 if it does not.
func denied(w *httptest.ResponseRecorder) int {
	switch body := w.Body.String(); {
	case w.Code == 401, strings.Contains(body, `"error":{"code":"unauthenticated"`):
		return 401
	case w.Code == 403, strings.Contains(body, `"error":{"code":"permission_denied"`):
		return 403
	}
	return 0
}

// TestWhoMayWhat asks for every RPC of the contract with every kind of credential.
func TestWhoMayWhat(t *testing.T) {
	f, k, _ := accessServer(t)
	for _, service := range server.Contract() {
		for i := range service.Methods().Len() {
			method := service.Methods().Get(i)
			name := string(method.Name())
			n, ok := needs[name]
			if !ok {
				t.Errorf("%s: say in needs what it needs", name)
				continue
			}
			has := func(field protoreflect.Name) bool { return method.Input().Fields().ByName(field) != nil }
			if has("realm") != n.realm || has("pool") != n.pool || (has("player") || has("from")) != n.player {
				t.Errorf("%s: needs says otherwise what it is about than the contract", name)
			}
			can := func(command string) bool {
				return n.command == command || n.command == "any" || n.command == "write" && command != "read" ||
					n.command == "propose or approve" && (command == "propose" || command == "approve")
			}
			who := map[string]int{
				"": 401, "nobody": 401, k.of("ann") + "x": 401,
				"admin": 0, "admin-here": 403 * b(n.server), "admin-elsewhere": 403 * b(n.command != "any"),
				"everything": 403 * b(n.command == "admin"),
				"free-pool":  403 * b(n.command == "admin" || n.whole || n.anyPool),
				"other-pool": 403 * b(n.command == "admin" || n.whole || n.anyPool || n.pool),
				k.of("ann"):  403 * b(slices.Contains(notPlayers, n.command) || n.whole),
				k.of("bob"):  403 * b(slices.Contains(notPlayers, n.command) || n.whole || n.player),
			}
			for _, c := range allCommands {
				who["only-"+c] = 403 * b(!can(c))
			}
			for secret, want := range who {
				w := ask(f, method, secret, fill(method))
				if got := denied(w); got != want {
					t.Errorf("%s with %.30q: HTTP %d %s, want %d", name, secret, w.Code, w.Body, want)
				}
			}
			if n.realm && !n.server && name != "GetStatus" { // no realm is the default realm
				body := strings.ReplaceAll(fill(method), `"default"`, `""`)
				if got := denied(ask(f, method, "admin-elsewhere", body)); got != 403 {
					t.Errorf("%s of no realm for a key of another: %d", name, got)
				}
				if got := denied(ask(f, method, "admin-here", body)); got != 0 {
					t.Errorf("%s of no realm for a key of the default realm: %d", name, got)
				}
			}
		}
	}
	if got := denied(ask(f, methodOf(t, "GetStatus"), "admin-here", `{}`)); got != 403 {
		t.Errorf("the status of all realms for a key of one: %d", got)
	}
	for secret, want := range map[string]int{"only-read": 0, "admin-here": 403, "free-pool": 403, "only-draw": 403, k.of("ann"): 403} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		w := httptest.NewRecorder()
		if f.server.ServeHTTP(w, r); denied(w) != want {
			t.Errorf("metrics with %.20q: HTTP %d, want %d", secret, w.Code, want)
		}
	}
}

func b(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func methodOf(t *testing.T, name protoreflect.Name) protoreflect.MethodDescriptor {
	t.Helper()
	for _, service := range server.Contract() {
		if m := service.Methods().ByName(name); m != nil {
			return m
		}
	}
	t.Fatalf("no RPC %s", name)
	return nil
}

// TestCommandsInside: a batch, a group and a stream need what the commands in them need. The kinds
// of commands are those of the contract.
func TestCommandsInside(t *testing.T) {
	f, k, _ := accessServer(t)
	inside := map[string]string{
		"draw":         `{"draw": {"player": "ann", "pool": "free"}}`,
		"redeem":       `{"redeem": {"player": "ann", "code": "x"}}`,
		"register":     `{"register": {"player": "ann"}}`,
		"grant":        `{"grant": {"player": "ann", "items": [{"item": "gem", "quantity": 1}]}}`,
		"consume":      `{"consume": {"player": "ann", "items": [{"item": "gem", "quantity": 1}]}}`,
		"transfer":     `{"transfer": {"from": "ann", "to": "bob", "items": [{"item": "gem", "quantity": 1}]}}`,
		"progress":     `{"progress": {"player": "ann", "event": "wins"}}`,
		"collect":      `{"collect": {"player": "ann"}}`,
		"claim":        `{"claim": {"player": "ann", "quest": "winner"}}`,
		"open_round":   `{"open_round": {"round": "prize"}}`,
		"join":         `{"join": {"player": "ann", "round": "prize"}}`,
		"settle":       `{"settle": {"round": "prize"}}`,
		"reroll":       `{"reroll": {"round": "prize", "number": "1"}}`,
		"cancel_round": `{"cancel_round": {"round": "prize"}}`,
		"confirm":      `{"confirm": {"hold": "h"}}`,
		"cancel":       `{"cancel": {"hold": "h"}}`,
		"link_code":    `{"link_code": {"player": "ann", "code": "x"}}`,
		"link":         `{"link": {"player": "ann", "code": "y"}}`,
		"unlink":       `{"unlink": {"player": "ann"}}`,
		"merge":        `{"merge": {"player": "ann", "from": "bob"}}`,
		"forget":       `{"forget": {"player": "ann"}}`,
		"block":        `{"block": {"player": "ann", "ends": true}, "reason": "x"}`,
		"reverse":      `{"reverse": {"request": "r"}, "reason": "x"}`,
		"set_counter":  `{"set_counter": {"player": "ann", "counter": "wins", "value": "1"}, "reason": "x"}`,
		"set_limit":    `{"set_limit": {"player": "ann", "pool": "once", "per": "LIMIT_PERIOD_FOREVER", "used": 1}, "reason": "x"}`,
	}
	for _, m := range []proto.Message{&kujiv1.Command{}, &kujiv1.Member{}} {
		fields := m.ProtoReflect().Descriptor().Oneofs().ByName("command").Fields()
		for i := range fields.Len() {
			if name := string(fields.Get(i).Name()); inside[name] == "" && name != "atomic" {
				t.Errorf("%s: say who may ask for %s", m.ProtoReflect().Descriptor().Name(), name)
			}
		}
	}
	for command, one := range inside {
		bodies := map[string]string{
			"Atomic": `{"members": [` + one + `]}`,
			"Batch":  `{"commands": [` + one + `]}`,
		}
		nested := `{"commands": [{"atomic": {"members": [` + one + `]}}]}`
		rpcs := map[string][]string{"Atomic": {bodies["Atomic"]}, "Batch": {bodies["Batch"], nested}}
		admins := slices.Contains([]string{"set_limit", "set_counter", "merge", "forget", "block", "reverse"}, command)
		anyPool := slices.Contains([]string{"redeem", "confirm", "cancel", "link_code", "link", "unlink"}, command)
		if (*kujiv1.Member)(nil).ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(command)) == nil { // no member of a group can be one
			rpcs = map[string][]string{"Batch": {bodies["Batch"]}}
		}
		for rpc, body := range rpcs {
			for _, body := range body {
				for _, c := range allCommands {
					if got := denied(ask(f, methodOf(t, protoreflect.Name(rpc)), "only-"+c, body)); (got == 0) != (c == command) {
						t.Errorf("%s of a %s with a key for %s: %d", rpc, command, c, got)
					}
				}
				for secret, want := range map[string]int{
					"admin": 0, "everything": 403 * b(admins), "free-pool": 403 * b(anyPool || admins),
					"other-pool": 403 * b(command == "draw" || anyPool || admins),
					k.of("ann"):  403 * b(slices.Contains(notPlayers, command) || admins), k.of("bob"): 403,
				} {
					if got := denied(ask(f, methodOf(t, protoreflect.Name(rpc)), secret, body)); got != want {
						t.Errorf("%s of a %s with %.20q: %d, want %d", rpc, command, secret, got, want)
					}
				}
			}
		}
	}
	// What is forbidden anywhere forbids all of it.
	mixed := `{"commands": [` + inside["draw"] + `, ` + inside["grant"] + `]}`
	if w := ask(f, methodOf(t, "Batch"), "only-draw", mixed); denied(w) != 403 || !strings.Contains(w.Body.String(), "commands[1]: it needs the command grant") {
		t.Errorf("a batch with a grant in it, with a key for draws: %s", w.Body)
	}
	// A player's results are for who names the player.
	nobody := strings.Replace(fill(methodOf(t, "GetResult")), `"ann"`, `""`, 1)
	for secret, want := range map[string]int{"only-read": 0, "free-pool": 0, k.of("ann"): 403} {
		if w := ask(f, methodOf(t, "GetResult"), secret, nobody); denied(w) != want {
			t.Errorf("a result of nobody with %.20q: %s, want %d", secret, w.Body, want)
		}
	}
	// So are the events of a player, and those of pools are for who names one of theirs.
	follow := methodOf(t, "StreamEvents")
	all := strings.NewReplacer(`"ann"`, `""`, `"free"`, `""`).Replace(fill(follow))
	for secret, want := range map[string]int{"only-read": 0, "only-draw": 403, "free-pool": 403, k.of("ann"): 403} {
		if w := ask(f, follow, secret, all); denied(w) != want {
			t.Errorf("all events with %.20q: %s, want %d", secret, w.Body, want)
		}
	}
	// And so is history.
	history := methodOf(t, "GetHistory")
	for body, who := range map[string]map[string]int{
		`{"item": "gem"}`:                  {"only-read": 0, "only-draw": 403, "free-pool": 403, k.of("ann"): 403},
		`{"pool": "free"}`:                 {"only-read": 0, "free-pool": 0, "other-pool": 403, k.of("ann"): 403},
		`{"player": "ann"}`:                {"only-read": 0, "free-pool": 403, k.of("ann"): 0, k.of("bob"): 403},
		`{"player": "ann", "item": "gem"}`: {"only-read": 0, "free-pool": 403, k.of("ann"): 0, k.of("bob"): 403},
	} {
		for secret, want := range who {
			if w := ask(f, history, secret, body); denied(w) != want {
				t.Errorf("history %s with %.20q: %s, want %d", body, secret, w.Body, want)
			}
		}
	}
	stream := methodOf(t, "StreamDraws")
	for secret, want := range map[string]int{"only-draw": 0, "only-grant": 403, "free-pool": 0, "other-pool": 403, k.of("ann"): 0, k.of("bob"): 403} {
		if w := ask(f, stream, secret, `{"players": ["ann"], "pools": ["free"]}`); denied(w) != want {
			t.Errorf("a stream with %.20q: %s, want %d", secret, w.Body, want)
		}
	}
	if w := ask(f, stream, k.of("ann"), `{"players": ["ann", "bob"], "playerIndexes": [0], "pools": ["free"]}`); denied(w) != 403 {
		t.Errorf("a stream that names another player: %s", w.Body)
	}
}

// TestTokens: what makes a player token good, and that anything else is nobody's.
func TestTokens(t *testing.T) {
	f, k, _ := accessServer(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(c map[string]any)) string {
		c := good("ann")
		change(c)
		return sign(t, jose.EdDSA, k.private, "k1", c)
	}
	now := time.Now()
	_, another, _ := ed25519.GenerateKey(rand.Reader)
	for name, tt := range map[string]struct {
		token string
		good  bool
	}{
		"good":                   {k.of("ann"), true},
		"no kid":                 {sign(t, jose.EdDSA, k.private, "", good("ann")), true},
		"aud a string":           {with(func(c map[string]any) { c["aud"] = "kuji" }), true},
		"just expired":           {with(func(c map[string]any) { c["exp"] = now.Add(-5 * time.Second).Unix() }), true}, // clocks differ
		"expired":                {with(func(c map[string]any) { c["exp"] = now.Add(-time.Minute).Unix() }), false},
		"never expires":          {with(func(c map[string]any) { delete(c, "exp") }), false},
		"not yet":                {with(func(c map[string]any) { c["nbf"] = now.Add(time.Minute).Unix() }), false},
		"other issuer":           {with(func(c map[string]any) { c["iss"] = "https://evil.example" }), false},
		"no issuer":              {with(func(c map[string]any) { delete(c, "iss") }), false},
		"other audience":         {with(func(c map[string]any) { c["aud"] = "shop" }), false},
		"no audience":            {with(func(c map[string]any) { delete(c, "aud") }), false},
		"no player":              {with(func(c map[string]any) { delete(c, "sub") }), false},
		"long player":            {with(func(c map[string]any) { c["sub"] = strings.Repeat("a", 65) }), false},
		"other kid":              {sign(t, jose.EdDSA, k.private, "k2", good("ann")), false},
		"other key":              {sign(t, jose.EdDSA, another, "k1", good("ann")), false},
		"other algorithm":        {sign(t, jose.ES256, curve, "k1", good("ann")), false},
		"public key as a secret": {sign(t, jose.HS256, []byte(k.private.Public().(ed25519.PublicKey)), "k1", good("ann")), false},
		"none":                   {"eyJhbGciOiJub25lIiwia2lkIjoiazEifQ." + strings.Split(k.of("ann"), ".")[1] + ".", false},
		"too long":               {with(func(c map[string]any) { c["x"] = strings.Repeat("x", access.MaxTokenBytes) }), false},
	} {
		w := ask(f, methodOf(t, "Draw"), tt.token, `{"player": "ann", "pool": "free"}`)
		if (w.Code == 200) != tt.good || !tt.good && denied(w) != 401 {
			t.Errorf("%s: HTTP %d %s", name, w.Code, w.Body)
		}
	}
}

// TestTokenSubjectUTF8: subjects that are not UTF-8 are nobody's, not all the player that decoding makes
// of them.
func TestTokenSubjectUTF8(t *testing.T) {
	f, k, _ := accessServer(t)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: k.private}, (&jose.SignerOptions{}).WithHeader("kid", "k1"))
	if err != nil {
		t.Fatal(err)
	}
	claims, err := json.Marshal(good("a-subject"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		subject string
		good    bool
	}{{"a-subject", true}, {"あ", true}, {"a\xff", false}, {"a\xfe", false}, {"a\xed\xa0\x80", false}, {`a\ud800`, false}, {"a\ufffd", false}, {`a\ufffd`, false}} {
		object, err := signer.Sign(bytes.ReplaceAll(claims, []byte("a-subject"), []byte(tt.subject)))
		if err != nil {
			t.Fatal(err)
		}
		token, err := object.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		player := strings.ToValidUTF8(tt.subject, "\ufffd")
		if strings.HasPrefix(tt.subject, `a\`) {
			player = "a\ufffd"
		}
		w := ask(f, methodOf(t, "Draw"), token, fmt.Sprintf(`{"player": %q, "pool": "free"}`, player))
		if (w.Code == 200) != tt.good || !tt.good && denied(w) != 401 {
			t.Errorf("subject %q: HTTP %d %s", tt.subject, w.Code, w.Body)
		}
	}
}

// TestJWKSByURL: the keys of an issuer change; nobody waits for them, and a dead issuer takes nobody's
// keys away.
func TestJWKSByURL(t *testing.T) {
	first, second := newTokens(t), newTokens(t)
	second.public = []byte(strings.ReplaceAll(string(second.public), `"k1"`, `"k2"`))
	var mu sync.Mutex
	now, answer, failure := time.Now(), first.public, error(nil)
	asked := make(chan struct{}, 100)
	fetch := func(context.Context, string) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		asked <- struct{}{}
		return answer, failure
	}
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	change := func(by time.Duration, body []byte, err error) {
		mu.Lock()
		defer mu.Unlock()
		now, answer, failure = now.Add(by), body, err
	}
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, "draw jwks=https://id.example/keys players algs=EdDSA")
	keys, err := access.LoadKeysWith(path, fetch, clock)
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	old, young := first.of("ann"), sign(t, jose.EdDSA, second.private, "k2", good("ann"))
	if keys.Find(old) == nil || keys.Find(young) != nil {
		t.Fatal("the first set is not in use")
	}
	change(0, second.public, nil)
	if keys.Find(young) != nil || len(asked) > 0 {
		t.Error("an unknown key is looked for at once again")
	}
	change(31*time.Second, second.public, nil)
	keys.Find(young) // is refused, and begins to look
	<-asked
	for keys.Find(young) == nil { // until the set is there
		if len(asked) > 0 {
			t.Fatal("the set was asked for again")
		}
	}
	if keys.Find(old) != nil {
		t.Error("a key that the issuer withdrew is good")
	}
	change(11*time.Minute, nil, errors.New("dead"))
	if keys.Find(young) == nil {
		t.Error("an old set is not used while a new one is asked for")
	}
	<-asked
	change(11*time.Minute, nil, errors.New("dead"))
	for len(asked) == 0 { // until the set is asked for again: the first attempt has ended
		if keys.Find(young) == nil {
			t.Fatal("a dead issuer took a key away")
		}
	}
	if err := keys.Reload(); err == nil || !errors.Is(err, access.ErrKeys) {
		t.Errorf("reload with a dead issuer: %v", err)
	}
	if keys.Find(young) == nil {
		t.Error("a failed reload took a key away")
	}
	if _, err := access.LoadKeysWith(path, fetch, clock); !errors.Is(err, access.ErrKeys) {
		t.Errorf("start with a dead issuer: %v", err)
	}
}

// TestRates: a key that asks too often waits, others do not, and a batch counts its commands.
func TestRates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, keyLine(t, "draw", "slow", "", "rate=2"), keyLine(t, "draw", "free", ""))
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	f := newServer(t, server.Options{Keys: keys})
	now := time.Now()
	f.server.SetRateClock(func() time.Time { return now })
	draw := func(key string) *httptest.ResponseRecorder {
		return ask(f, methodOf(t, "Draw"), key, `{"player": "ann", "pool": "free"}`)
	}
	var codes []int
	for range 4 {
		codes = append(codes, draw("slow").Code)
	}
	if want := []int{200, 200, 503, 503}; !slices.Equal(codes, want) {
		t.Errorf("four draws at once get %v, want %v", codes, want)
	}
	if w := draw("slow"); w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "more than 2 commands a second: try again in 500ms") {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	if w := draw("free"); w.Code != 200 {
		t.Errorf("another key: HTTP %d", w.Code)
	}
	now = now.Add(500 * time.Millisecond)
	if a, b := draw("slow").Code, draw("slow").Code; a != 200 || b != 503 {
		t.Errorf("half a second later: %d, %d", a, b)
	}
	now = now.Add(time.Minute)
	batch := `{"commands": [` + strings.Repeat(`{"draw": {"player": "ann", "pool": "free"}},`, 19) + `{"draw": {"player": "ann", "pool": "free"}}]}`
	if w := ask(f, methodOf(t, "Batch"), "slow", batch); w.Code != 200 {
		t.Errorf("a batch: HTTP %d", w.Code)
	}
	now = now.Add(9*time.Second + 400*time.Millisecond)
	if got := draw("slow").Code; got != 503 {
		t.Errorf("9.4 s after a batch of 20: HTTP %d", got)
	}
	now = now.Add(100 * time.Millisecond)
	if got := draw("slow").Code; got != 200 {
		t.Errorf("9.5 s after a batch of 20: HTTP %d", got)
	}
}

// TestTokenEndsStream: a stream of a player ends with the player's token.
func TestTokenEndsStream(t *testing.T) {
	dir, k := t.TempDir(), newTokens(t)
	if err := os.WriteFile(filepath.Join(dir, "players.json"), k.public, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "keys")
	writeKeys(t, path, "draw jwks=players.json players algs=EdDSA")
	var mu sync.Mutex
	now := time.Now()
	keys, err := access.LoadKeysWith(path, nil, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	})
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, server.Options{Keys: keys})
	h := h2c(t)
	h.Transport = keyed{h.Transport, k.of("ann")}
	s := openStream(t, newClient("", h, f.url, connect.WithGRPC()))
	batch := &kujiv1.StreamDrawsRequest{Players: []string{"ann"}, Pools: []string{"free"}}
	exchange(t, s, batch)
	mu.Lock()
	now = now.Add(2 * time.Hour)
	mu.Unlock()
	_ = s.Send(batch)
	if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("after the token's time: %v", err)
	}
}
