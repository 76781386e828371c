package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// TestGetAccess: each key learns what it may do, whatever it is restricted to; ListKeys tells an
// administrator of all. Nobody learns a key, or its hash.
func TestGetAccess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path,
		keyLine(t, "admin", adminKey, "ops"),
		keyLine(t, "draw", writeKey, "kiosk", "realms=summer,default", "pools=splash", "rate=20"),
		keyLine(t, "grant,read", readKey, "support", "grants=gem:100/5000,*:1"))
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	f := newServer(t, server.Options{Keys: keys, Version: "v9", TestClock: new(kuji.TestClock)})
	ctx := t.Context()
	for _, tt := range []struct{ key, want string }{
		{adminKey, `{"name":"ops","commands":["admin"],"idsOptional":true}`},
		{writeKey, `{"name":"kiosk","commands":["draw"],"realms":["summer","default"],"pools":["splash"],"rate":20}`},
		{readKey, `{"name":"support","commands":["read","grant"],"grants":[{"item":"*","request":"1"},{"item":"gem","request":"100","day":"5000"}],"idsOptional":true}`},
	} {
		res, err := kujiv1connect.NewRewardServiceClient(direct{f.server}, "http://localhost", withKey(tt.key)).GetAccess(ctx, &kujiv1.GetAccessRequest{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := protojson.Marshal(res.GetAccess())
		if text := strings.ReplaceAll(string(got), ": ", ":"); err != nil || strings.ReplaceAll(text, ", ", ",") != tt.want {
			t.Errorf("%s, %v, want %s", got, err, tt.want)
		}
		if m := res; m.GetVersion() != "v9" || m.GetFeatures().GetHistory() || m.GetFeatures().GetCluster() || !m.GetFeatures().GetTestClock() {
			t.Errorf("%v", m)
		}
	}
	admin := kujiv1connect.NewAdminServiceClient(direct{f.server}, "http://localhost", withKey(adminKey))
	all, err := admin.ListKeys(ctx, &kujiv1.ListKeysRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range all.GetKeys() {
		names = append(names, k.GetName())
	}
	if want := []string{"ops", "kiosk", "support"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for _, key := range []string{adminKey, writeKey, readKey} {
		hash := sha256.Sum256([]byte(key))
		if text := fmt.Sprint(all); strings.Contains(text, key) || strings.Contains(text, hex.EncodeToString(hash[:4])) {
			t.Errorf("ListKeys tells of the key %q: %s", key, text)
		}
	}
}
