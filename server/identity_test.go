package server_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

const nameCatalog = `
kuji: 1
items: {coin: {kind: currency}, gem: {}}
pools:
  shop: {price: {coin: 10}, entries: [{id: gem, weight: 1, stock: 1000, reward: {items: {gem: 2}}}]}
`

// names brings about every status of a command about a name of a player, and of a reverse.
func (c client) names(ctx context.Context, t *testing.T) map[kuji.Status]*kujiv1.Result {
	t.Helper()
	result := func(res interface{ GetResult() *kujiv1.Result }, err error) *kujiv1.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return res.GetResult()
	}
	id := func(name string) string { return name + c.name }
	grant := func(request, player string) *kujiv1.Result {
		return result(c.reward.Grant(ctx, &kujiv1.GrantRequest{Realm: "names", RequestId: id(request), Player: id(player), Items: []*kujiv1.Stack{{Item: "gem", Quantity: 1}}}))
	}
	link := func(name, to string) *kujiv1.Result {
		return result(c.reward.Link(ctx, &kujiv1.LinkRequest{Realm: "names", Player: id(name), To: id(to)}))
	}
	code := func(player string) *kujiv1.Result {
		return result(c.reward.LinkCode(ctx, &kujiv1.LinkCodeRequest{Realm: "names", Player: id(player), Code: id("K7QM")}))
	}
	reverse := func(request string) *kujiv1.Result {
		return result(c.admin.Reverse(ctx, &kujiv1.ReverseRequest{Realm: "names", Request: id(request), Reason: "sorry"}))
	}
	forget := func(player string) *kujiv1.Result {
		return result(c.admin.Forget(ctx, &kujiv1.ForgetRequest{Realm: "names", Player: id(player)}))
	}
	for _, player := range []string{"ann", "bob", "eve", "mob", "gone"} {
		grant("to "+player, player)
	}
	reverse("to bob")
	result(c.reward.Consume(ctx, &kujiv1.ConsumeRequest{Realm: "names", RequestId: id("less"), Player: id("ann"), Items: []*kujiv1.Stack{{Item: "gem", Quantity: 1}}}))
	result(c.admin.Block(ctx, &kujiv1.BlockRequest{Realm: "names", Player: id("mob"), Reason: "a bot"}))
	link("tom", "ann")
	code("ann")
	for i := range kuji.MaxAliases {
		link(fmt.Sprint("e", i), "eve")
	}
	forget("gone")
	return map[kuji.Status]*kujiv1.Result{
		kuji.UnknownRequest:  reverse("nothing"),
		kuji.NotReversible:   reverse("less"),
		kuji.AlreadyReversed: reverse("to bob"),
		kuji.Blocked:         grant("blocked", "mob"),
		kuji.UnknownPlayer:   forget("nobody"),
		kuji.AlreadyLinked:   link("tom", "ann"),
		kuji.UnknownLinkCode: result(c.reward.Link(ctx, &kujiv1.LinkRequest{Realm: "names", Player: id("jim"), Code: "wrong"})),
		kuji.NotLinked:       result(c.reward.Unlink(ctx, &kujiv1.UnlinkRequest{Realm: "names", Player: id("ann")})),
		kuji.MergeNeeded:     link("eve", "ann"),
		kuji.TooManyAliases:  link("more", "eve"),
		kuji.LinkCodeTaken:   code("bob"),
		kuji.Forgotten:       grant("to gone", "gone"),
	}
}

// nameSession is about the catalog nameCatalog.
var nameSession = redisSteps{
	{"GRANT ann coin 20 gem 1 ID g1", dict{"status": "ok"}},
	{"LINKCODE ann K7QM ID c1", dict{"status": "ok"}},
	{"LINKCODE ann K7QM ID c1", dict{"status": "ok", "replayed": true}},
	{"LINKCODE ann OTHER ID c1", errors.New("IDREUSED ")},
	{"LINKCODE ann", errors.New("INVALID 1 arguments, want LINKCODE player code [ID id]")},
	{"LINK tw:1 CODE WRONG", dict{"status": "unknown_link_code"}},
	{"LINK tw:1 CODE K7QM ID l1", dict{"status": "ok"}},
	{"LINK tw:1 CODE K7QM", dict{"status": "unknown_link_code"}}, // it was used
	{"LINK tw:1 TO ann", dict{"status": "already_linked"}},
	{"LINK tw:2", errors.New("INVALID to: ")},
	{"LINK tw:2 CODE x TO ann", errors.New("INVALID to: ")},
	{"PLAYER tw:1", dict{"id": "ann", "items": dict{"coin": int64(20), "gem": int64(1)}, "aliases": []any{dict{"name": "tw:1"}}}},
	{"UNLINK tw:1", dict{"status": "ok"}},
	{"UNLINK tw:1", dict{"status": "not_linked"}},
	{"GRANT bob gem 1", dict{"status": "ok"}},
	{"LINK bob TO ann", dict{"status": "merge_needed"}},
	{"MERGE ann bob STRICT REASON twins ID m1", dict{"status": "ok"}},
	{"MERGE ann bob strict ID m1 REASON twins", dict{"status": "ok", "replayed": true}},
	{"MERGE ann bob ID m1 REASON twins", errors.New("IDREUSED ")},
	{"BLOCK bob bot", dict{"status": "ok"}},
	{"PLAYER ann", dict{"id": "ann", "items": dict{"coin": int64(20), "gem": int64(2)}, "aliases": []any{dict{"name": "bob", "merged": true}}, "blocked": "bot"}},
	{"GRANT bob gem 1", dict{"status": "blocked"}},
	{"BLOCK ann", errors.New("INVALID 1 arguments, want BLOCK player reason [ENDS] [ID id]")},
	{"BLOCK ann sorry ENDS", dict{"status": "ok"}},
	{"DRAW ann shop ID d1", dict{"status": "ok", "outcomes": []any{dict{"entry": "gem", "items": dict{"gem": int64(2)}}}, "paid": dict{"coin": int64(10)}}},
	{"CONSUME ann gem 3", dict{"status": "ok"}},
	{"REVERSE d1 sorry", dict{"status": "ok", "beyond": []any{dict{"item": "gem", "quantity": int64(1), "how": "missing", "player": "ann"}}}},
	{"REVERSE d1 sorry", dict{"status": "already_reversed"}},
	{"REVERSE d1", errors.New("INVALID 1 arguments, want REVERSE request reason [ID id]")},
	{"FORGET bob REASON asked", dict{"status": "ok"}},
	{"GRANT ann coin 20 gem 1 ID g1", dict{"status": "forgotten", "replayed": true}},
	{"PLAYER ann", errors.New("NOTFOUND player: ")},
	{"MULTI", "OK"},
	{"FORGET ann", errors.New("INVALID FORGET in a group, want ")},
	{"DISCARD", "OK"},
}

// tight takes the blanks out of JSON, of which there are more or fewer from build to build.
var tight = strings.NewReplacer(`": `, `":`, `, "`, `,"`, `, {`, `,{`)

// posts sends JSON over HTTP, and returns the answer in a short form.
func posts(t *testing.T, f *fixture, path, body, secret string) (code int, answer string) {
	t.Helper()
	headers := []string{"Content-Type", "application/json"}
	if secret != "" {
		headers = append(headers, "Authorization", "Bearer "+secret)
	}
	return send(t, h1(t), http.MethodPost, f.url+"/kuji.v1."+path, body, headers...)
}

// TestNames: a player's other name is linked by a code, and means the player from then on. What cannot be undone is for
// administrators. A reverse says what is missing, and the repeat of a request of a player who was forgotten says that.
func TestNames(t *testing.T) {
	keys, k := playerKeys(t)
	f := startWith(t, kuji.Options{}, server.Options{Keys: keys}) // the feed waits until an event survives a crash
	applyTo(t, f, "names", nameCatalog)
	for i, step := range []struct {
		path, secret, body string
		code               int
		want               string
	}{
		{"RewardService/Grant", "admin", `"requestId": "g1", "player": "ann", "items": [{"item": "coin", "quantity": 20}]`, 200, "STATUS_OK"},
		// A player's token asks for a code of its own player, and sends one as its own player.
		{"RewardService/LinkCode", k.of("bob"), `"player": "ann", "code": "K7QM-3XPD"`, 403, `acts for player \"bob\" alone`},
		{"RewardService/LinkCode", k.of("ann"), `"player": "ann", "code": "K7QM-3XPD"`, 200, "STATUS_OK"},
		{"RewardService/Link", k.of("bob"), `"player": "tw:1", "code": "K7QM-3XPD"`, 403, `acts for player \"bob\" alone`},
		{"RewardService/Link", k.of("tw:1"), `"player": "tw:1", "to": "ann"`, 403, "send that player's code"},
		{"RewardService/Link", k.of("ann"), `"player": "tw:1", "to": "ann"`, 403, "send that player's code"},
		{"RewardService/Link", k.of("tw:1"), `"player": "tw:1", "code": "K7QM"`, 200, "STATUS_UNKNOWN_LINK_CODE"},
		{"RewardService/Link", k.of("tw:1"), `"player": "tw:1", "code": "K7QM-3XPD"`, 200, "STATUS_OK"},
		{"RewardService/Link", "free-pool", `"player": "tw:2", "to": "ann"`, 403, "restricted to some"},
		{"RewardService/Link", "only-link", `"player": "tw:2", "to": "ann"`, 200, "STATUS_OK"},
		{"RewardService/Link", "only-link", `"player": "tw:3"`, 400, `"field":"to"`},
		// What is read by another name is the player's.
		{"RewardService/GetPlayer", k.of("tw:1"), `"player": "tw:1"`, 200, `{"player":{"id":"ann","items":[{"item":"coin","quantity":"20"}],`},
		{"RewardService/GetPlayer", k.of("tw:1"), `"player": "tw:1"`, 200, `"aliases":[{"name":"tw:1"},{"name":"tw:2"}]`},
		{"RewardService/Unlink", k.of("tw:2"), `"player": "tw:2"`, 403, "unlink"},
		{"RewardService/Unlink", "only-unlink", `"player": "tw:2"`, 200, "STATUS_OK"},
		// Administrators alone merge, block, reverse and forget.
		{"RewardService/Grant", "admin", `"player": "eve", "items": [{"item": "coin", "quantity": 5}]`, 200, "STATUS_OK"},
		{"AdminService/Merge", k.of("ann"), `"player": "ann", "from": "eve"`, 403, "admin"},
		{"AdminService/Merge", "everything", `"player": "ann", "from": "eve"`, 403, "admin"},
		{"RewardService/Batch", "everything", `"commands": [{"merge": {"player": "ann", "from": "eve"}}]`, 403, "commands[0]: it needs the command admin"},
		{"AdminService/Merge", "admin", `"player": "ann", "from": "eve", "reason": "one person"`, 200, "STATUS_OK"},
		{"RewardService/GetPlayer", "admin", `"player": "eve"`, 200, `"aliases":[{"name":"tw:1"},{"name":"eve","merged":true}]`},
		{"AdminService/Block", "admin", `"player": "eve"`, 400, `"field":"reason"`},
		{"AdminService/Block", "admin", `"player": "eve", "reason": "a bot"`, 200, "STATUS_OK"},
		{"RewardService/Draw", k.of("ann"), `"player": "ann", "pool": "shop"`, 200, "STATUS_BLOCKED"},
		{"RewardService/GetPlayer", "admin", `"player": "ann"`, 200, `"blocked":"a bot"`},
		{"AdminService/Block", "admin", `"player": "ann", "ends": true, "reason": "no bot"`, 200, "STATUS_OK"},
		{"RewardService/Draw", k.of("eve"), `"requestId": "d1", "player": "eve", "pool": "shop"`, 200, "STATUS_OK"},
		{"RewardService/Consume", k.of("ann"), `"player": "ann", "items": [{"item": "gem", "quantity": 1}]`, 200, "STATUS_OK"},
		{"AdminService/Reverse", "only-grant", `"request": "d1", "reason": "sorry"`, 403, "admin"},
		{"AdminService/Reverse", "admin", `"request": "d1"`, 400, `"field":"reason"`},
		{"AdminService/Reverse", "admin", `"request": "d1", "reason": "sorry"`, 200, `"beyond":[{"item":"gem","quantity":"1","how":"missing","player":"ann"}]`},
		{"RewardService/GetPlayer", "admin", `"player": "ann"`, 200, `"items":[{"item":"coin","quantity":"15"}]`}, // the price stays paid
		{"AdminService/Forget", "admin", `"player": "tw:1", "reason": "asked"`, 200, "STATUS_OK"},
		{"RewardService/Grant", "admin", `"requestId": "g1", "player": "ann", "items": [{"item": "coin", "quantity": 20}]`, 200, "STATUS_FORGOTTEN"},
		{"RewardService/GetPlayer", "admin", `"player": "ann"`, 404, "NOT_FOUND"},
		{"AdminService/Forget", "admin", `"player": "ann"`, 200, "STATUS_UNKNOWN_PLAYER"},
	} {
		code, answer := posts(t, f, step.path, `{"realm": "names", `+step.body+`}`, step.secret)
		if answer = tight.Replace(answer); code != step.code || !strings.Contains(answer, step.want) {
			t.Fatalf("step %d, %s %s: HTTP %d %s, want %d %s", i, step.path, step.body, code, answer, step.code, step.want)
		}
	}
	r, err := f.engine.Lookup("names")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rec, err := range r.Feed().Events(within(t), 1) {
		if err != nil {
			t.Fatal(err)
		}
		m := server.EventProto(&rec)
		if m.GetReversed() != "" || len(m.GetNames()) > 0 {
			got = append(got, fmt.Sprint(m.GetKind(), m.GetReversed(), m.GetNames(), m.GetBy(), m.GetReason()))
		}
		if rec.Status == "unknown_player" { // the last one
			break
		}
	}
	if want := []string{"reversed1[]adminsorry", "forget[ann tw:1 eve]adminasked"}; !slices.Equal(got, want) {
		t.Errorf("the feed says %q, want %q", got, want)
	}
}

// TestNamesByEveryProtocol: the commands answer the same by each protocol, alone and in a batch, and codes are said to
// nobody.
func TestNamesByEveryProtocol(t *testing.T) {
	f := startWith(t, kuji.Options{}, server.Options{})
	r := applyTo(t, f, "names", nameCatalog)
	for _, c := range clients(t, f.url) {
		player, name := "player of "+c.name, "name of "+c.name
		batch := func(commands ...*kujiv1.Command) (all []string) {
			t.Helper()
			resp, err := c.reward.Batch(t.Context(), &kujiv1.BatchRequest{Realm: "names", Commands: commands})
			if err != nil {
				t.Fatal(err)
			}
			for _, res := range resp.GetResults() {
				all = append(all, contract.Word(res.GetStatus())+map[bool]string{true: " again"}[res.GetReplayed()])
			}
			return all
		}
		command := func(id, reason string, m proto.Message) *kujiv1.Command {
			cmd := contract.AsCommand(id+c.name, m)
			cmd.Reason = reason
			return cmd
		}
		if _, err := c.reward.LinkCode(t.Context(), &kujiv1.LinkCodeRequest{Realm: "names", RequestId: "code" + c.name, Player: player, Code: "K7QM" + c.name}); err != nil {
			t.Fatal(err)
		}
		got := batch(
			command("code", "", &kujiv1.LinkCode{Player: player, Code: "K7QM" + c.name}),
			command("link", "", &kujiv1.Link{Player: name, Code: "K7QM" + c.name}),
			command("unlink", "", &kujiv1.Unlink{Player: name}),
			command("again", "", &kujiv1.Link{Player: name, To: player}),
			command("block", "", &kujiv1.Block{Player: name}),
			command("block", "a bot", &kujiv1.Block{Player: name}),
			command("free", "no bot", &kujiv1.Block{Player: name, Ends: true}),
			command("grant", "", &kujiv1.Grant{Player: name, Items: []*kujiv1.Stack{{Item: "gem", Quantity: 1}}}),
			command("reverse", "sorry", &kujiv1.Reverse{Request: "grant" + c.name}),
			command("come", "", &kujiv1.Grant{Player: "from" + c.name, Items: []*kujiv1.Stack{{Item: "gem", Quantity: 1}}}),
			command("merge", "", &kujiv1.Merge{Player: player, From: "from" + c.name}),
			command("forget", "", &kujiv1.Forget{Player: name}),
		)
		if want := []string{"ok again", "ok", "ok", "ok", "refused", "ok", "ok", "ok", "ok", "ok", "ok", "ok"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
	if _, err := r.Do(t.Context(), kuji.Register{ID: "end", Player: "end"}); err != nil {
		t.Fatal(err)
	}
	for rec, err := range r.Feed().Events(within(t), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if text := server.EventProto(&rec).String(); strings.Contains(text, "K7QM") {
			t.Errorf("the feed has a code: %s", text)
		}
		if rec.ID == "end" {
			break
		}
	}
}

// TestFeedByAnotherName: who asks for events by another name of a player gets the player's.
func TestFeedByAnotherName(t *testing.T) {
	f := startWith(t, kuji.Options{}, server.Options{})
	r := applyTo(t, f, "names", nameCatalog)
	gem := []kuji.Stack{{Item: "gem", Quantity: 1}}
	for _, req := range []kuji.Request{kuji.Grant{Player: "bob", Items: gem}, kuji.Grant{Player: "ann", Items: gem}, kuji.Grant{Player: "eve", Items: gem},
		kuji.Merge{Player: "ann", From: "bob"}, kuji.Consume{ID: "end", Player: "ann", Items: gem}} {
		if _, err := r.Do(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient("grpc", h2c(t), f.url, connect.WithGRPC())
	from := uint64(1)
	feed, err := c.reward.StreamEvents(within(t), &kujiv1.StreamEventsRequest{Realm: "names", Player: "bob", From: &from})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for end := false; !end && feed.Receive(); {
		for _, e := range feed.Msg().GetEvents() {
			got = append(got, e.GetKind()+" "+e.GetPlayer())
			end = end || e.GetRequestId() == "end"
		}
	}
	if want := []string{"grant bob", "grant ann", "merge ann", "consume ann"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q (%v)", got, want, feed.Err())
	}
}

// TestDeleteRealm: a realm that is served is deleted if its name is said twice, by whom nothing restricts.
func TestDeleteRealm(t *testing.T) {
	_, k := playerKeys(t)
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, keyLine(t, "admin", "admin", ""), keyLine(t, "write", "everything", ""),
		keyLine(t, "admin", "admin-here", "", "realms=default"), keyLine(t, "grant", "capped", "", "grants=gem:1/1"))
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	f := startWith(t, kuji.Options{}, server.Options{Keys: keys})
	applyTo(t, f, "spring", nameCatalog)
	for i, step := range []struct {
		path, secret, body string
		code               int
		want               string
	}{
		{"RewardService/Grant", "admin", `"realm": "spring", "player": "ann", "items": [{"item": "gem", "quantity": 1}]`, 200, "STATUS_OK"},
		{"AdminService/DeleteRealm", "everything", `"realm": "spring", "confirm": "spring"`, 403, "admin"},
		{"AdminService/DeleteRealm", "admin-here", `"realm": "default", "confirm": "default"`, 403, "restricted to a part"},
		{"AdminService/DeleteRealm", k.of("ann"), `"realm": "spring", "confirm": "spring"`, 401, "unauthenticated"},
		{"RewardService/Grant", "capped", `"realm": "spring", "player": "ann", "items": [{"item": "gem", "quantity": 1}]`, 200, "STATUS_OK"},
		{"RewardService/Grant", "capped", `"realm": "spring", "player": "ann", "items": [{"item": "gem", "quantity": 1}]`, 403, "gem"},
		{"AdminService/DeleteRealm", "admin", `"realm": "spring", "confirm": "sprin"`, 400, `"field":"confirm"`},
		{"AdminService/DeleteRealm", "admin", `"confirm": "default"`, 400, `"field":"realm"`},
		{"AdminService/DeleteRealm", "admin", `"realm": "summer", "confirm": "summer"`, 404, "NOT_FOUND"},
		{"RewardService/GetPlayer", "admin", `"realm": "spring", "player": "ann"`, 200, `"gem"`},
		{"AdminService/DeleteRealm", "admin", `"realm": "spring", "confirm": "spring"`, 200, `{}`},
		{"RewardService/GetPlayer", "admin", `"realm": "spring", "player": "ann"`, 404, "NOT_FOUND"},
		{"AdminService/ListRealms", "admin", ``, 200, `{"realms":["default"]}`},
		{"AdminService/CreateRealm", "admin", `"realm": "spring"`, 200, `"created":true`},
		{"RewardService/GetPlayer", "admin", `"realm": "spring", "player": "ann"`, 404, "NOT_FOUND"},
		// What a key may grant in a day is counted anew.
		{"AdminService/ApplyCatalog", "admin", `"realm": "spring", "yaml": "` + base64.StdEncoding.EncodeToString([]byte(nameCatalog)) + `"`, 200, "{"},
		{"RewardService/Grant", "capped", `"realm": "spring", "player": "ann", "items": [{"item": "gem", "quantity": 1}]`, 200, "STATUS_OK"},
	} {
		code, answer := posts(t, f, step.path, `{`+step.body+`}`, step.secret)
		if answer = tight.Replace(answer); code != step.code || !strings.Contains(answer, step.want) {
			t.Fatalf("step %d, %s %s: HTTP %d %s, want %d %s", i, step.path, step.body, code, answer, step.code, step.want)
		}
	}
}

// within ends a feed that has not said all in time.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}
