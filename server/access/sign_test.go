package access

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSigningKey: a server with the key's line takes its tokens, for their life, and a key that was written and read
// again signs as before.
func TestSigningKey(t *testing.T) {
	made := NewSigningKey("id", "kuji")
	private, err := made.Private()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseSigningKey(private)
	if err != nil {
		t.Fatal(err)
	}
	line, err := made.Line("read,draw", "players.jwks.json", "players", "rate=5")
	if err != nil {
		t.Fatal(err)
	}
	public, err := made.Public()
	if err != nil {
		t.Fatal(err)
	}
	dir, now := t.TempDir(), time.Now()
	for name, data := range map[string][]byte{"players.jwks.json": public, "keys": []byte(line)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := LoadKeysWith(filepath.Join(dir, "keys"), newFetcher(), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	longest := strings.Repeat("é", 32)
	for _, k := range []*SigningKey{made, read} {
		token, err := k.Sign(longest, now, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if a, fault := keys.ByToken(token); fault != nil || a.Player != longest || a.Name != "players" || a.Rate != 5 {
			t.Fatalf("%+v, %v", a, fault)
		}
		now = now.Add(time.Minute + 2*tokenLeeway)
		if _, fault := keys.ByToken(token); fault == nil || !strings.Contains(fault.Error(), "it expired at") {
			t.Errorf("after its life: %v", fault)
		}
	}
	for player, life := range map[string]time.Duration{
		"": time.Minute, longest + "x": time.Minute, "\xff": time.Minute, "ann": MaxTokenLife + 1, "bob": time.Second - 1,
	} {
		if _, err := made.Sign(player, now, life); err == nil {
			t.Errorf("%q has a token for %v", player, life)
		}
	}
	if _, err := made.For("", strings.Repeat("a", MaxTokenBytes)).Sign("ann", now, time.Minute); err == nil {
		t.Error("a token that no server reads")
	}
	if _, err := made.Line("grant", "x", "players"); err == nil {
		t.Error("a line that lets players grant")
	}
}

// TestSigningKeyIsNotShown: neither formatting nor an error shows the private key.
func TestSigningKeyIsNotShown(t *testing.T) {
	k := NewSigningKey("id", "kuji")
	private, err := k.Private()
	if err != nil {
		t.Fatal(err)
	}
	var jwk map[string]string
	if err := json.Unmarshal(private, &jwk); err != nil {
		t.Fatal(err)
	}
	seed := k.key.Key.(ed25519.PrivateKey).Seed()
	hide := func(text string) {
		t.Helper()
		if strings.Contains(text, jwk["d"]) || strings.Contains(text, fmt.Sprint(seed[:8])[1:20]) {
			t.Errorf("the private key is shown: %s", text)
		}
	}
	hide(fmt.Sprint(k))
	hide(fmt.Sprintf("%v %+v %s", k, k, k))
	for _, spoil := range [][2]string{{`"OKP"`, `"EC"`}, {`{`, ``}, {`"d": "`, `"d": "AAAA`}, {`"x": "`, `"x": "AAAA`}, {`"d"`, `"e"`}} {
		if other, err := ParseSigningKey([]byte(strings.Replace(string(private), spoil[0], spoil[1], 1))); err == nil {
			t.Errorf("with %s: %v", spoil[1], other)
		} else {
			hide(err.Error())
		}
	}
}
