package access

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// MaxTokenLife is for how long a token of a [SigningKey] is good at most. Nobody can withdraw one.
const MaxTokenLife = 24 * time.Hour

// A SigningKey signs player tokens with EdDSA (Ed25519). It is for tests and small set-ups. In
// production, the service where players sign in has the key and signs: it alone knows who somebody
// is. A SigningKey does not change, so goroutines can share it.
type SigningKey struct {
	issuer, audience string
	key              jose.JSONWebKey
}

// signingFile is a private key in a file: a JWK (RFC 7517), with two members for whom its tokens are
// from and for, which other readers of JWKs ignore.
type signingFile struct {
	Type     string `json:"kty"`
	Curve    string `json:"crv"`
	ID       string `json:"kid"`
	Use      string `json:"use"`
	Alg      string `json:"alg"`
	Public   string `json:"x"`
	Private  string `json:"d"`
	Issuer   string `json:"issuer,omitempty"`
	Audience string `json:"audience,omitempty"`
}

// NewSigningKey returns a new random key. Its tokens have this iss and aud, unless [SigningKey.For]
// gives others. Its kid is its thumbprint (RFC 7638), so two keys of an issuer differ in it.
func NewSigningKey(issuer, audience string) *SigningKey {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // never: without entropy the process ends
	}
	k := &SigningKey{issuer, audience, jose.JSONWebKey{Key: private, Algorithm: string(jose.EdDSA), Use: "sig"}}
	thumbprint, err := (&jose.JSONWebKey{Key: public}).Thumbprint(crypto.SHA256)
	if err != nil {
		panic(err) // never: the key is an Ed25519 key
	}
	k.key.KeyID = base64.RawURLEncoding.EncodeToString(thumbprint)
	return k
}

// ParseSigningKey reads what [SigningKey.Private] returns. Any private JWK for Ed25519 will do. Errors
// show nothing of the key.
func ParseSigningKey(data []byte) (*SigningKey, error) {
	var k SigningKey
	var f signingFile
	if json.Unmarshal(data, &f) != nil || json.Unmarshal(data, &k.key) != nil {
		return nil, errors.New("not a private key as a JWK")
	}
	if private, ok := k.key.Key.(ed25519.PrivateKey); !ok || !k.key.Valid() || len(private) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("a key of type %.20q and curve %.20q, want a private one: OKP with Ed25519 and d", f.Type, f.Curve)
	}
	k.issuer, k.audience = f.Issuer, f.Audience
	return &k, nil
}

// For returns the key with another iss and aud for its tokens. What is "" stays.
func (k *SigningKey) For(issuer, audience string) *SigningKey {
	other := *k
	if issuer != "" {
		other.issuer = issuer
	}
	if audience != "" {
		other.audience = audience
	}
	return &other
}

// String names the key, so that no log shows it.
func (k *SigningKey) String() string { return "signing key " + k.key.KeyID }

// Private returns the key as a JWK. Anyone who has it can act as any player.
func (k *SigningKey) Private() ([]byte, error) {
	private := k.key.Key.(ed25519.PrivateKey)
	encode := base64.RawURLEncoding.EncodeToString
	return json.MarshalIndent(signingFile{"OKP", "Ed25519", k.key.KeyID, "sig", string(jose.EdDSA),
		encode(private.Public().(ed25519.PublicKey)), encode(private.Seed()), k.issuer, k.audience}, "", "  ")
}

// Public returns the JWKS with which a server checks the key's tokens.
func (k *SigningKey) Public() ([]byte, error) {
	return json.MarshalIndent(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{k.key.Public()}}, "", "  ")
}

// Line returns the line for the key in a key file: see [Keys]. The server finds the JWKS at where.
// Options are name=value.
func (k *SigningKey) Line(commands, where, name string, options ...string) (string, error) {
	public, err := k.Public()
	if err == nil {
		_, err = parseJWKS(where, public)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrKeys, err)
	}
	own := []string{"algs=" + string(jose.EdDSA)}
	if k.issuer != "" {
		own = append(own, "issuer="+k.issuer)
	}
	if k.audience != "" {
		own = append(own, "audience="+k.audience)
	}
	return makeLine(append([]string{commands, "jwks=" + where, name}, append(own, options...)...))
}

// Sign makes a token for a player. It is good from now on for a life of one second to [MaxTokenLife],
// in whole seconds. Sign checks it as a server does, so it fails for what is no player's id.
func (k *SigningKey) Sign(player string, now time.Time, life time.Duration) (string, error) {
	if life < time.Second || life > MaxTokenLife {
		return "", fmt.Errorf("a token for %v, want %v to %v", life, time.Second, MaxTokenLife)
	}
	claims := jwt.Claims{Issuer: k.issuer, Subject: player, IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(life))}
	if k.audience != "" {
		claims.Audience = jwt.Audience{k.audience}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: k.key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	if len(token) > MaxTokenBytes {
		return "", fmt.Errorf("a token of %d bytes, want at most %d", len(token), MaxTokenBytes)
	}
	checks := &issuer{algs: []jose.SignatureAlgorithm{jose.EdDSA}, issuer: k.issuer, audience: k.audience}
	checks.keys.Store(&jose.JSONWebKeySet{Keys: []jose.JSONWebKey{k.key.Public()}})
	if _, fault := checks.player(&Keys{now: func() time.Time { return now }}, token); fault != nil {
		return "", fmt.Errorf("no token for %.80q: %s", player, fault.Why)
	}
	return token, nil
}
