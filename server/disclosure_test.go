package server_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestGetDisclosure: the published odds come as HTML and as the same data, of any version and in a language.
func TestGetDisclosure(t *testing.T) {
	f := start(t, server.Options{})
	r := applyTo(t, f, "shop", displayCatalog)
	applyTo(t, f, "shop", strings.Replace(displayCatalog, "de: Rad}", "de: Glücksrad}, price: {gem: 2}", 1))
	for _, c := range clients(t, f.url) {
		old, err := c.reward.GetDisclosure(t.Context(), &kujiv1.GetDisclosureRequest{Realm: "shop", Language: "de", Version: 1})
		if err != nil {
			t.Fatal(err)
		}
		now, err := c.reward.GetDisclosure(t.Context(), &kujiv1.GetDisclosureRequest{Realm: "shop", Language: "de", Pool: "free"})
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Catalogs().InForce(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if old.GetVersion() != 1 || now.GetVersion() != 2 || !bytes.Equal(now.GetHash(), v.Hash[:]) || now.GetName() != "Laden" || now.GetLanguage() != "de" || len(now.GetPools()) != 1 {
			t.Errorf("%s: versions %d and %d, %v", c.name, old.GetVersion(), now.GetVersion(), now)
		}
		p := now.GetPools()[0]
		o := p.GetOutcomes()[0]
		if p.GetName() != "Glücksrad" || old.GetPools()[0].GetName() != "Rad" || len(p.GetPrices()) != 1 || p.GetPrices()[0] != "2 × Stein" || len(old.GetPools()[0].GetPrices()) != 0 {
			t.Errorf("%s: %v", c.name, p)
		}
		if o.GetName() != "Stein + Sword" || o.GetRarity() != "epic" || o.GetRarityName() != "Episch" || o.GetChance().GetExact() != "1" || o.GetExpected() != 1 || o.LongRun == nil || o.GetLongRun() != 1 {
			t.Errorf("%s: %v", c.name, o)
		}
		for _, want := range []string{`<section class="kuji-odds" lang="de">`, "Glücksrad", "Stein &#43; Sword", "Episch", fmt.Sprintf("%x", now.GetHash())} {
			if !strings.Contains(now.GetHtml(), want) {
				t.Errorf("%s: the page has no %q", c.name, want)
			}
		}
	}
	c := newClient("", h1(t), f.url)
	for _, tt := range []struct {
		q    *kujiv1.GetDisclosureRequest
		code connect.Code
	}{
		{&kujiv1.GetDisclosureRequest{Realm: "shop", Pool: "none"}, connect.CodeNotFound},
		{&kujiv1.GetDisclosureRequest{Realm: "shop", Pool: "standard"}, connect.CodeNotFound}, // internal
		{&kujiv1.GetDisclosureRequest{Realm: "shop", Version: 9}, connect.CodeNotFound},
		{&kujiv1.GetDisclosureRequest{Realm: "nowhere"}, connect.CodeNotFound},
		{&kujiv1.GetDisclosureRequest{Realm: "shop", Language: "<de>"}, connect.CodeInvalidArgument},
	} {
		if _, err := c.reward.GetDisclosure(t.Context(), tt.q); connect.CodeOf(err) != tt.code {
			t.Errorf("%v: %v, want %v", tt.q, err, tt.code)
		}
	}
}

// TestDisclosureOfMany: too many outcomes are refused before anything is computed, and pool by pool they are not.
func TestDisclosureOfMany(t *testing.T) {
	f := start(t, server.Options{})
	var b strings.Builder
	b.WriteString("kuji: 1\nitems: {dust: {}}\npools:\n")
	for _, pool := range []string{"a", "b"} {
		fmt.Fprintf(&b, "  %s:\n    entries:\n", pool)
		for i := range 600 {
			fmt.Fprintf(&b, "      - {id: e%d, weight: 1}\n", i)
		}
	}
	applyTo(t, f, "default", b.String())
	c := newClient("", h1(t), f.url)
	if _, err := c.reward.GetDisclosure(t.Context(), &kujiv1.GetDisclosureRequest{}); connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "1200 outcomes, want at most 1000") {
		t.Errorf("all: %v", err)
	}
	for range 2 { // the second one is kept
		resp, err := c.reward.GetDisclosure(t.Context(), &kujiv1.GetDisclosureRequest{Pool: "b"})
		if err != nil || len(resp.GetPools()) != 1 || len(resp.GetPools()[0].GetOutcomes()) != 600 {
			t.Fatalf("one pool: %v", err)
		}
		sum := 0.0
		for _, o := range resp.GetPools()[0].GetOutcomes() {
			sum += o.GetExpected()
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("the chances add up to %v", sum)
		}
	}
}

// TestWhoSeesDisclosures: players may, and a key with pools for each of its pools.
func TestWhoSeesDisclosures(t *testing.T) {
	keys, k := playerKeys(t)
	f := start(t, server.Options{Keys: keys})
	for _, tt := range []struct {
		key, pool string
		code      connect.Code
	}{
		{sign(t, jose.EdDSA, k.private, "k1", good("ann")), "", 0}, {"only-read", "", 0}, {"free-pool", "free", 0},
		{"free-pool", "", connect.CodePermissionDenied}, {"free-pool", "standard", connect.CodePermissionDenied},
		{"admin-elsewhere", "", connect.CodePermissionDenied}, {"only-draw", "free", connect.CodePermissionDenied}, {"nobody", "", connect.CodeUnauthenticated},
	} {
		_, err := newClient("", h1(t), f.url, withKey(tt.key)).reward.GetDisclosure(t.Context(), &kujiv1.GetDisclosureRequest{Pool: tt.pool})
		if got := connect.CodeOf(err); err != nil && got != tt.code || err == nil && tt.code != 0 {
			t.Errorf("%.20s, pool %q: %v, want %v", tt.key, tt.pool, err, tt.code)
		}
	}
}
