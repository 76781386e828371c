package server_test

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/kuji-dev/kuji/server"
)

// TestRefusedTokensSayWhy: the log always says what is wrong with a token. Who sent it learns that too,
// if the issuer has signed it, and nothing otherwise.
func TestRefusedTokensSayWhy(t *testing.T) {
	keys, k := playerKeys(t)
	log := &lockedBuffer{}
	f := newServer(t, server.Options{Keys: keys, Logger: slog.New(slog.NewTextHandler(log, nil))})
	redis := startRedis(t, f)
	with := func(changes map[string]any) string {
		claims := good("ann")
		maps.Copy(claims, changes)
		maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
		return sign(t, jose.EdDSA, k.private, "k1", claims)
	}
	past := time.Date(2020, 5, 4, 3, 2, 1, 0, time.UTC).Unix()
	other := newTokens(t)
	for _, tt := range []struct {
		name, secret, why string
		told              bool
	}{
		{"expired", with(map[string]any{"exp": past}), "it expired at 2020-05-04T03:02:01Z", true},
		{"no exp", with(map[string]any{"exp": nil}), "it has no exp", true},
		{"not yet", with(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), "it is not valid before 2", true},
		{"audience", with(map[string]any{"aud": []string{"elsewhere"}}), "its aud is", true},
		{"issuer", with(map[string]any{"iss": "https://other.example"}), "its iss is", true},
		{"no sub", with(map[string]any{"sub": nil}), "it has no sub, the player's id", true},
		{"long sub", with(map[string]any{"sub": strings.Repeat("x", 65)}), "its sub has 65 bytes", true},
		{"sub of no text", with(map[string]any{"sub": "a\ufffd"}), "its sub is not UTF-8", true},
		{"no key", sign(t, jose.EdDSA, k.private, "k9", good("ann")), "the issuer has no key", false},
		{"other signer", sign(t, jose.EdDSA, other.private, "k1", map[string]any{"exp": past}), "the signature or the claims are wrong", false},
		{"no token", "a.b.c", "not a JWT", false},
		{"no key of the file", "nobody", "it is no key of the file", false},
		{"nothing", "", "there is none", false},
	} {
		check := func(where, said string) {
			t.Helper()
			if strings.Contains(said, tt.why) != tt.told || !strings.Contains(said, "want a valid API key or player token") {
				t.Errorf("%s over %s: the client is told %q; told why: %v", tt.name, where, said, tt.told)
			}
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, "why=") || !strings.Contains(last, tt.why) {
				t.Errorf("%s over %s: the log has %s, want %q", tt.name, where, last, tt.why)
			} else if tt.secret != "" && len(tt.secret) > 5 && tt.secret != "nobody" && strings.Contains(last, tt.secret) {
				t.Errorf("%s: the log has the token", tt.name)
			}
		}
		check("HTTP", ask(f, methodOf(t, "GetPool"), tt.secret, `{"pool": "free"}`).Body.String())
		if tt.secret != "" {
			c := dialRaw(t, redis)
			answer, _ := c.ask("AUTH " + tt.secret).(error)
			if answer == nil || kindOf(answer) != "WRONGPASS" {
				t.Errorf("%s: AUTH answers %v", tt.name, answer)
				continue
			}
			c.ask("PING") // the line of AUTH stands in the log, and that of PING behind it
			log.drop("redis/PING")
			check("Redis", answer.Error())
		}
	}
}

// drop forgets lines with a text.
func (l *lockedBuffer) drop(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kept []string
	for line := range strings.Lines(l.b.String()) {
		if !strings.Contains(line, text) {
			kept = append(kept, line)
		}
	}
	l.b.Reset()
	l.b.WriteString(strings.Join(kept, ""))
}

// TestOtherContentType: a body of another type is refused with words, of a call and of a stream.
func TestOtherContentType(t *testing.T) {
	f := newServer(t, server.Options{})
	for _, path := range []string{drawPath, "/kuji.v1.RewardService/StreamEvents"} {
		for _, kind := range []string{"text/plain", "", "application/x-www-form-urlencoded; charset=utf-8", "application/jsonx"} {
			r := httptest.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader("{}"))
			r.Header.Set("Content-Type", kind)
			w := httptest.NewRecorder()
			f.server.ServeHTTP(w, r)
			if w.Code != 415 || !strings.Contains(w.Body.String(), "want one of application/") || w.Header().Get("Accept-Post") == "" {
				t.Errorf("%s with %q: %d %s", path, kind, w.Code, w.Body)
			}
		}
	}
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+drawPath, strings.NewReader(`{"player": "ann", "pool": "free"}`))
	r.Header.Set("Content-Type", "Application/JSON; charset=UTF-8")
	w := httptest.NewRecorder()
	if f.server.ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("JSON in capitals: %d %s", w.Code, w.Body)
	}
}
