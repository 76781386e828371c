package console_test

import (
	"strings"
	"testing"
)

// TestContract: every call is found and described, types lead to types, what only reads can be sent, and
// what changes something cannot.
func TestContract(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	p := browse(t, s.address, wide, "/contract")
	p.enter("ops")
	p.has("main", "unavailable 503")
	p.has("main", "REASON_UNKNOWN_OUTCOME")
	p.set("[name=find]", "/GetPool")
	p.until("!document.querySelector('a[href*=GetPlayer]')")
	p.press("a[href*=GetPool]")
	p.has("main", "How many entries to skip.")
	p.set("[name=body]", `{"pool": "box", "stale": true}`)
	p.press("form .button.primary")
	p.has("#answer", `"name": "Harvest Moon, box 1"`)
	eval[any](p, `(window.sent = null, window.fetch = ((real) => (path, o) => { if (o && o.body) window.sent = o.body; return real(path, o); })(window.fetch))`)
	p.set("[name=body]", `{"pool": "box", "player": "ann", "entryOffset": 1.0, "stale": true}`)
	p.press("form .button.primary")
	p.until(`window.sent !== null`)
	if got := eval[string](p, "window.sent"); !strings.Contains(got, `"entryOffset": 1.0,`) {
		t.Errorf("the page sent %s: numbers are not what was written", got) // beyond 2^53 they would lose digits
	}
	p.set("[name=body]", `{"pool": "no-such"}`)
	p.press("form .button.primary")
	p.has("main", "no-such")
	p.set("[name=body]", `{`)
	p.press("form .button.primary")
	p.has("main", "JSON")
	p.visit("/contract/type/kuji.v1.PoolMode")
	p.has("main", "POOL_MODE_RAFFLE Odds by remaining stock")
	p.visit("/contract/call/kuji.v1.RewardService%2FDraw")
	p.has("main", "This call changes something")
	if eval[bool](p, "!!document.querySelector('form .button.primary')") {
		t.Error("a draw can be sent from the page of the API")
	}
	p.visit("/contract/type/constructor")
	p.has("main", "No call or type has this name.")
	p.visit("/contract/call/nothing")
	p.has("main", "No call or type has this name.")
}

// TestNoSuchPage: an address that names no page leads to the first one, also if JavaScript knows the name.
func TestNoSuchPage(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	p := browse(t, s.address, wide, "/constructor")
	p.enter("ops")
	p.until(`document.title === "Players · Kuji"`)
	p.has("h1", "Players")
}
