package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// MaxTokenBytes is the longest player token, in bytes.
const MaxTokenBytes = 4096

const (
	// maxJWKS bounds a set of an issuer's keys, in bytes, and maxIssuerKeys in number.
	maxJWKS       = 1 << 20
	maxIssuerKeys = 64
	// jwksAge is after how long a set from a URL is fetched again, jwksPause the least time between
	// attempts.
	jwksAge   = 10 * time.Minute
	jwksPause = 30 * time.Second
	// tokenLeeway is how far the issuer's clock may be from the server's.
	tokenLeeway = 30 * time.Second
)

// tokenAlgorithms are those that a key file may allow. HS256 is not among them: with a secret that
// the issuer shares, the server could make tokens too.
var tokenAlgorithms = []jose.SignatureAlgorithm{jose.EdDSA, jose.ES256, jose.ES384, jose.ES512,
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}

// issuer makes tokens for players. The server only checks them. They are JWTs, signed by a key of a
// JWKS in a file or at a URL. A token is good if
//
//   - its algorithm is one of the line's algs, and its key one of the JWKS, by the header kid; a
//     token without kid is checked by the only key of a JWKS of one;
//   - exp is there and has not passed, and nbf has not yet to come, give or take tokenLeeway;
//   - iss is the line's issuer, and aud has the line's audience in it, where the line has them;
//   - sub is a player's id: UTF-8, without U+FFFD.
//
// Its holder may do what the line says, as this player only.
type issuer struct {
	Access
	where    string
	algs     []jose.SignatureAlgorithm
	issuer   string
	audience string

	keys     atomic.Pointer[jose.JSONWebKeySet]
	fetched  atomic.Int64 // when keys came or were last asked for, Unix nanoseconds
	fetching atomic.Bool
}

// option reads an option that keys do not have.
func (i *issuer) option(name, value string) error {
	switch name {
	case "issuer":
		i.issuer = value
	case "audience":
		i.audience = value
	case "algs":
		for alg := range strings.SplitSeq(value, ",") {
			if !slices.Contains(tokenAlgorithms, jose.SignatureAlgorithm(alg)) {
				return fmt.Errorf("algorithm %.40q, want some of %v", alg, tokenAlgorithms)
			}
			i.algs = append(i.algs, jose.SignatureAlgorithm(alg))
		}
	default:
		return fmt.Errorf("option %.40q, want algs=, issuer=, audience=, realms=, pools= or rate=", name)
	}
	return nil
}

func (i *issuer) check() error {
	if not := i.can & notPlayers; not != 0 {
		return fmt.Errorf("players may %v, not %v", strings.ReplaceAll((canAll&^notPlayers).String(), ",", ", "), not)
	}
	if len(i.algs) == 0 {
		return fmt.Errorf("no algs=, want the algorithms that tokens may be signed with, of %v", tokenAlgorithms)
	}
	return nil
}

// fetcher fetches a URL.
type fetcher func(ctx context.Context, url string) ([]byte, error)

// newFetcher returns a fetcher that follows no redirects and takes at most maxJWKS bytes.
func newFetcher() fetcher {
	client := &http.Client{Timeout: 5 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(ctx context.Context, where string) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("%s answers HTTP %d, want 200", where, resp.StatusCode)
		}
		return io.ReadAll(io.LimitReader(resp.Body, maxJWKS+1))
	}
}

// load reads the issuer's keys.
func (i *issuer) load(k *Keys) error {
	data, err := i.read(k)
	i.fetched.Store(k.now().UnixNano())
	if err != nil {
		return err
	}
	set, err := parseJWKS(i.where, data)
	if err != nil {
		return err
	}
	i.keys.Store(set)
	return nil
}

// parseJWKS reads the public keys of an issuer.
func parseJWKS(where string, data []byte) (*jose.JSONWebKeySet, error) {
	var set jose.JSONWebKeySet
	switch err := json.Unmarshal(data, &set); {
	case len(data) > maxJWKS:
		return nil, fmt.Errorf("%s: more than %d bytes", where, maxJWKS)
	case err != nil:
		return nil, fmt.Errorf("%s: not a JWKS: %w", where, err)
	case len(set.Keys) < 1, len(set.Keys) > maxIssuerKeys:
		return nil, fmt.Errorf("%s: %d keys, want 1 to %d", where, len(set.Keys), maxIssuerKeys)
	}
	for n := range set.Keys {
		if one := &set.Keys[n]; !one.Valid() || !one.IsPublic() {
			return nil, fmt.Errorf("%s: key %d is not a valid public key: secrets do not belong here", where, n)
		}
	}
	return &set, nil
}

func (i *issuer) read(k *Keys) ([]byte, error) {
	if !i.remote() {
		path := i.where
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(k.path), path)
		}
		return os.ReadFile(path)
	}
	u, err := url.Parse(i.where)
	if err != nil || u.Scheme != "https" && !IsLoopback(CanonicalHost(u.Hostname())) {
		return nil, fmt.Errorf("%.200q: want an https:// URL; http:// is for loopback only", i.where)
	}
	return k.fetch(context.Background(), i.where)
}

func (i *issuer) remote() bool { return strings.Contains(i.where, "://") }

// A Fault says why a key or a token is not good. The operator's log gets all of it. The sender
// learns only that the secret is not good, and of a token that an issuer signed, why.
type Fault struct {
	text string // for the sender
	Why  string // for the operator's log
	ours bool   // an issuer has signed it
}

func (f *Fault) Error() string {
	if f.ours {
		return f.text + ": " + f.Why
	}
	return f.text
}

// Unsigned returns the fault of a secret without an issuer's signature.
func Unsigned(format string, args ...any) *Fault {
	return &Fault{Why: fmt.Sprintf(format, args...)}
}

func signed(format string, args ...any) *Fault {
	return &Fault{Why: fmt.Sprintf(format, args...), ours: true}
}

// player returns what the holder of a token may do, or why it is not a good token of this issuer.
func (i *issuer) player(k *Keys, token string) (*Access, *Fault) {
	t, err := jwt.ParseSigned(token, i.algs)
	if err != nil {
		return nil, Unsigned("not a JWT that is signed with one of %v: %v", i.algs, err)
	}
	if len(t.Headers) != 1 {
		return nil, Unsigned("a JWT with %d signatures, want one", len(t.Headers))
	}
	now := k.now()
	verified := i.key(k, t.Headers[0].KeyID, now)
	switch alg := t.Headers[0].Algorithm; {
	case verified == nil:
		return nil, Unsigned("the issuer has no key %.80q", t.Headers[0].KeyID)
	case verified.Use != "" && verified.Use != "sig", verified.Algorithm != "" && verified.Algorithm != alg:
		return nil, Unsigned("the issuer's key %.80q is for %q with %q, and the token has %q", t.Headers[0].KeyID, verified.Use, verified.Algorithm, alg)
	}
	var c jwt.Claims
	if err := t.Claims(verified.Key, &c); err != nil {
		return nil, Unsigned("the signature or the claims are wrong: %v", err)
	}
	if fault := i.checkClaims(&c, now); fault != nil {
		return nil, fault
	}
	a := i.Access
	a.Player, a.token, a.expires = c.Subject, token, c.Expiry.Time().Add(tokenLeeway)
	a.Who = playerCaller(i.Name, a.Player)
	return &a, nil
}

// checkClaims checks the claims of a token that the issuer signed.
func (i *issuer) checkClaims(c *jwt.Claims, now time.Time) *Fault {
	want := jwt.Expected{Issuer: i.issuer, Time: now}
	if i.audience != "" {
		want.AnyAudience = jwt.Audience{i.audience}
	}
	at := func(d *jwt.NumericDate) string { return d.Time().UTC().Format(time.RFC3339) }
	err := c.ValidateWithLeeway(want, tokenLeeway)
	switch {
	case c.Expiry == nil:
		return signed("it has no exp, the time at which it expires")
	case errors.Is(err, jwt.ErrExpired):
		return signed("it expired at %s", at(c.Expiry))
	case errors.Is(err, jwt.ErrNotValidYet):
		return signed("it is not valid before %s", at(c.NotBefore))
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return signed("its iss is %.80q, which is not the issuer of this server's tokens", c.Issuer)
	case errors.Is(err, jwt.ErrInvalidAudience):
		return signed("its aud is %.200q, and this server is not in it", []string(c.Audience))
	case err != nil:
		return signed("%v", err)
	case c.Subject == "":
		return signed("it has no sub, the player's id")
	case len(c.Subject) > kuji.MaxID:
		return signed("its sub has %d bytes, and a player's id has at most %d", len(c.Subject), kuji.MaxID)
	case strings.ContainsRune(c.Subject, utf8.RuneError):
		// Decoding made U+FFFD of bytes that are not UTF-8: different subjects would be the same
		// player.
		return signed("its sub is not UTF-8")
	}
	return nil
}

// key returns the key with an id, or nil. It fetches a set from a URL again from time to time, and
// for an unknown id. No request waits for that: an issuer publishes a key before it signs with it.
func (i *issuer) key(k *Keys, id string, now time.Time) *jose.JSONWebKey {
	set := i.keys.Load()
	var found *jose.JSONWebKey
	if id == "" && len(set.Keys) == 1 {
		found = &set.Keys[0]
	} else if all := set.Key(id); len(all) == 1 {
		found = &all[0]
	}
	age := now.Sub(time.Unix(0, i.fetched.Load()))
	if i.remote() && (age > jwksAge || found == nil && age > jwksPause) && i.fetching.CompareAndSwap(false, true) {
		go func() {
			defer i.fetching.Store(false)
			_ = i.load(k) // the old keys stay; metrics and clients show what is refused
		}()
	}
	return found
}

// BadSecret refuses a request whose key or token is not good.
func BadSecret(text string, fault *Fault) *connect.Error {
	fault.text = text
	return contract.Refused(connect.CodeUnauthenticated, kujiv1.Reason_REASON_UNAUTHENTICATED, fault)
}
