package server_test

import (
	"path/filepath"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/verify"
)

// TestWhoseKey: the log says by whose key something was granted, taken, moved and applied, and why, by
// every protocol.
func TestWhoseKey(t *testing.T) {
	dir := t.TempDir()
	engine, err := kuji.Open(dir, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, keyLine(t, "admin", "secret", "shop"))
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	f := startEngine(t, engine, server.Options{Keys: keys})
	ctx, info := connect.NewClientContext(t.Context())
	info.RequestHeader().Set("Authorization", "Bearer secret")
	gem := []*kujiv1.Stack{{Item: "gem", Quantity: 1}}
	all := clients(t, f.url)
	for _, c := range all {
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		yaml := "kuji: 1\nname: " + c.name + "\nitems: {gem: {}}\n"
		must(c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(yaml), Reason: "r", Metadata: "m"}))
		must(c.reward.Grant(ctx, &kujiv1.GrantRequest{Player: "ann", Items: gem, Reason: "r", Metadata: "m"}))
		must(c.reward.Consume(ctx, &kujiv1.ConsumeRequest{Player: "ann", Items: gem, Reason: "r", Metadata: "m"}))
		must(c.reward.Transfer(ctx, &kujiv1.TransferRequest{From: "ann", To: "bob", Items: gem, Reason: "r", Metadata: "m"}))
		grant := &kujiv1.Grant{Player: "ann", Items: gem}
		group := []*kujiv1.Member{{Command: &kujiv1.Member_Grant{Grant: grant}}}
		must(c.reward.Atomic(ctx, &kujiv1.AtomicRequest{Members: group, Reason: "r", Metadata: "m"}))
		must(c.reward.Batch(ctx, &kujiv1.BatchRequest{Commands: []*kujiv1.Command{
			{Command: &kujiv1.Command_Grant{Grant: grant}, Reason: "r", Metadata: "m"},
			{Command: &kujiv1.Command_Consume{Consume: &kujiv1.Consume{Player: "ann", Items: gem}}, Reason: "r", Metadata: "m"},
			{Command: &kujiv1.Command_Transfer{Transfer: &kujiv1.Transfer{From: "ann", To: "bob", Items: gem}}, Reason: "r", Metadata: "m"},
			{Command: &kujiv1.Command_Atomic{Atomic: &kujiv1.Atomic{Members: group}}, Reason: "r", Metadata: "m"},
		}}))
		_, err := c.reward.Batch(ctx, &kujiv1.BatchRequest{Commands: []*kujiv1.Command{
			{Command: &kujiv1.Command_Draw{Draw: &kujiv1.Draw{Player: "ann", Pool: "p"}}, Reason: "r"}}})
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: a draw with a reason: %v", c.name, err)
		}
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	if _, err := verify.Dir(dir, server.DefaultRealm, verify.Options{Seen: func(rec kuji.Record) {
		if n++; rec.By != "shop" || rec.Reason != "r" || rec.Metadata != "m" {
			t.Errorf("%s: by %q, because %q, with %q", rec.Kind, rec.By, rec.Reason, rec.Metadata)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	if want := 9 * len(all); n != want {
		t.Errorf("%d events, want %d", n, want)
	}
}
