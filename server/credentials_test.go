package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/server"
)

const getPlayer = "/kuji.v1.RewardService/GetPlayer"

// from asks for a player with a secret, as somebody at an address does, and returns the HTTP status.
func from(f *fixture, address, secret string) <-chan int {
	r := httptest.NewRequest(http.MethodPost, getPlayer, strings.NewReader(`{"player": "ann"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+secret)
	r.RemoteAddr = address
	done := make(chan int, 1)
	go func() {
		w := httptest.NewRecorder()
		f.server.ServeHTTP(w, r)
		done <- w.Code
	}()
	return done
}

// TestTokensTakeTurns: tokens of strangers wait behind those of their own address, and nobody else does.
func TestTokensTakeTurns(t *testing.T) {
	f, k, _ := accessServer(t)
	if w := ask(f, methodOf(t, "Grant"), "admin", `{"player": "ann", "items": [{"item": "gem", "quantity": 1}]}`); w.Code != 200 {
		t.Fatal(w.Body)
	}
	bad := k.of("ann") + "x"
	for _, address := range []string{"192.0.2.7:80", "[2001:db8::1]:80"} {
		release := f.server.HoldChecks(address)
		waits := []<-chan int{from(f, address, bad), from(f, address, k.of("ann"))}
		until(t, "two tokens wait", func() bool { return f.server.WaitingChecks() == 2 })
		if code := <-from(f, address, "only-read"); code != 200 {
			t.Errorf("a key from there: HTTP %d", code)
		}
		if code := <-from(f, address, "no-key"); code != 401 {
			t.Errorf("no key from there: HTTP %d", code)
		}
		for _, other := range []string{"192.0.2.8:80", "[2001:db8:0:1::1]:80"} {
			if code := <-from(f, other, k.of("ann")); code != 200 {
				t.Errorf("a token from %s: HTTP %d", other, code)
			}
		}
		release()
		if bad, good := <-waits[0], <-waits[1]; bad != 401 || good != 200 {
			t.Errorf("a bad and a good token that waited: HTTP %d, %d", bad, good)
		}
	}
	until(t, "nobody waits", func() bool { return f.server.WaitingChecks() == 0 })
}

// TestManyTokensWait: of those from one address some are refused, and there is room for another one.
func TestManyTokensWait(t *testing.T) {
	f, k, _ := accessServer(t)
	release := f.server.HoldChecks("192.0.2.7:80")
	var answers []<-chan int
	for range 2000 {
		answers = append(answers, from(f, "192.0.2.7:80", k.of("ann")+"x"))
	}
	refused := 0
	for waiting := answers; len(waiting) > 768; { // three quarters of the places
		var left []<-chan int
		for _, a := range waiting {
			select {
			case code := <-a:
				if refused++; code != 503 {
					t.Fatalf("HTTP %d, want 503", code)
				}
			default:
				left = append(left, a)
			}
		}
		waiting = left
	}
	if code := <-from(f, "192.0.2.8:80", k.of("bob")+"x"); code != 401 {
		t.Errorf("from another address: HTTP %d", code)
	}
	release()
	until(t, "nobody waits", func() bool { return f.server.WaitingChecks() == 0 })
	if refused < 2000-768 {
		t.Errorf("%d are refused, want those beyond three quarters of the places", refused)
	}
}

// TestTrustedConnections: a token on a connection where the last one was good waits for nobody. A bad one
// ends that.
func TestTrustedConnections(t *testing.T) {
	keys, k := playerKeys(t)
	f := start(t, server.Options{Keys: keys})
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	call := func(secret string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+getPlayer, strings.NewReader(`{"player": "ann"}`))
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+secret)
		res, err := transport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Error(err)
		}
		return res.StatusCode
	}
	if code := call(k.of("ann")); code != 404 { // nobody knows ann
		t.Fatalf("HTTP %d", code)
	}
	release := f.server.HoldChecks(f.addr)
	if code := call(k.of("ann")); code != 404 {
		t.Errorf("behind a good token: HTTP %d", code)
	}
	if code := call(k.of("ann") + "x"); code != 401 {
		t.Errorf("a bad token: HTTP %d", code)
	}
	done := make(chan int, 1)
	go func() { done <- call(k.of("ann")) }()
	until(t, "it waits", func() bool { return f.server.WaitingChecks() == 1 })
	release()
	if code := <-done; code != 404 {
		t.Errorf("behind a bad token: HTTP %d", code)
	}
}
