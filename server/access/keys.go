package access

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// MaxKeyBytes is the longest API key, in bytes.
const MaxKeyBytes = 512

// MaxKeys is the most keys in a key file, issuers of player tokens among them.
const MaxKeys = 1024

// maxRate is the highest rate of a key.
const maxRate = 1_000_000

// ErrKeys is wrapped by every error about a key file.
var ErrKeys = errors.New("bad API keys")

// Keys are API keys read from a file. Each line of the file is one of
//
//	commands sha256 name [realms=a,b] [pools=a,b] [rate=n] [grants=item:n/m,…] [ids=optional]
//	commands jwks=where name algs=ES256,EdDSA [issuer=text] [audience=text] [realms=a,b] [pools=a,b] [rate=n]
//
// The commands are some of read, draw, redeem, register, grant, consume, transfer, progress, claim, collect, open_round, join,
// settle, reroll, cancel_round, confirm, cancel, link_code, link, unlink, chat and admin, with commas between them; admin includes all others. The first form is a key. sha256 is the hash of
// the key, 64 hexadecimal digits. The second form is an issuer of player tokens: see [issuer].
// Realms and pools restrict the key to those. The rate is the most commands and reads in a second;
// for an issuer, it is per player. Grants list the items that the key may grant, with the most in a
// request and in a day. Grants need request ids, unless the ids are optional. Empty lines and lines
// that start with # are ignored. The file contains no secret: nobody can find a key of at least 128
// random bits from its hash.
type Keys struct {
	path  string
	set   atomic.Pointer[keySet]
	fetch fetcher
	now   func() time.Time
}

// keySet is the content of a key file.
type keySet struct {
	keys    []key
	issuers []*issuer
}

type key struct {
	hash [sha256.Size]byte
	Access
}

// LoadKeys reads a key file, and the keys of the issuers in it. A file without any key is an error.
func LoadKeys(path string) (*Keys, error) {
	return LoadKeysWith(path, newFetcher(), time.Now)
}

// LoadKeysWith is LoadKeys with its own way to fetch a URL, and its own clock.
func LoadKeysWith(path string, fetch func(ctx context.Context, url string) ([]byte, error), now func() time.Time) (*Keys, error) {
	k := &Keys{path: path, fetch: fetch, now: now}
	if err := k.Reload(); err != nil {
		return nil, err
	}
	return k, nil
}

// Reload reads the file again. If it fails, the old keys stay in use.
func (k *Keys) Reload() error {
	data, err := os.ReadFile(k.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	set, err := parseKeys(data)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrKeys, k.path, err)
	}
	for _, i := range set.issuers {
		if err := i.load(k); err != nil {
			return fmt.Errorf("%w: %s: issuer %q: %w", ErrKeys, k.path, i.Name, err)
		}
	}
	k.set.Store(set)
	return nil
}

// Len returns how many keys and issuers there are.
func (k *Keys) Len() int {
	set := k.set.Load()
	return len(set.keys) + len(set.issuers)
}

func parseKeys(data []byte) (*keySet, error) {
	set, names := &keySet{}, map[string]bool{}
	hashes := map[[sha256.Size]byte]bool{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		one, iss, err := parseKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case names[one.Name]:
			return nil, fmt.Errorf("line %d: another line has the name %q", n, one.Name)
		case iss != nil:
			set.issuers = append(set.issuers, iss)
		case hashes[one.hash]:
			return nil, fmt.Errorf("line %d: the same hash as an earlier line", n)
		default:
			set.keys = append(set.keys, one)
		}
		names[one.Name], hashes[one.hash] = true, true
		if len(names) > MaxKeys {
			return nil, fmt.Errorf("line %d: more than %d keys", n, MaxKeys)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("no keys, want at least one line: commands sha256 name")
	}
	return set, nil
}

// parseKey reads a line: that of a key, or of an issuer if iss is not nil.
func parseKey(line string) (one key, iss *issuer, err error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return key{}, nil, fmt.Errorf("got %d fields, want: commands sha256 name", len(fields))
	}
	if one.can, err = parseCommands(fields[0]); err != nil {
		return key{}, nil, err
	}
	if one.Name = fields[2]; len(one.Name) > kuji.MaxBy || !utf8.ValidString(one.Name) || strings.Contains(one.Name, "=") {
		return key{}, nil, fmt.Errorf("name %.80q, want at most %d bytes of UTF-8 without =", one.Name, kuji.MaxBy)
	}
	where, players := strings.CutPrefix(fields[1], "jwks=")
	if players {
		iss = &issuer{where: where}
	}
	seen := map[string]bool{}
	for _, f := range fields[3:] {
		name, value, ok := strings.Cut(f, "=")
		if !ok || value == "" || seen[name] {
			return key{}, nil, fmt.Errorf("option %.40q, want name=value, each name once", f)
		}
		seen[name] = true
		if err := one.option(iss, name, value); err != nil {
			return key{}, nil, err
		}
	}
	if players {
		iss.Access = one.Access
		return one, iss, iss.check()
	}
	if hash, err := hex.DecodeString(fields[1]); err != nil || copy(one.hash[:], hash) != len(one.hash) || len(hash) != len(one.hash) {
		// Do not quote the field: a key pasted here by mistake must not end up in a log.
		return key{}, nil, fmt.Errorf("second field of %d bytes, want a SHA-256 of %d hexadecimal digits, or jwks=", len(fields[1]), 2*sha256.Size)
	}
	one.Who = Caller{one.hash, one.can&canAdmin != 0}
	return one, nil, nil
}

// option reads an option of a key, or of an issuer if iss is not nil.
func (a *Access) option(iss *issuer, name, value string) (err error) {
	mayGrant := a.can&canGrant != 0
	switch {
	case name == "realms":
		a.realms, err = parseNames(name, value)
	case name == "pools":
		a.pools, err = parseNames(name, value)
	case name == "rate":
		if a.Rate, err = strconv.Atoi(value); err != nil || a.Rate < 1 || a.Rate > maxRate {
			return fmt.Errorf("rate=%.40s: want 1 to %d commands a second", value, maxRate)
		}
	case name == "grants" && mayGrant:
		a.grants, err = parseGrants(value)
		for _, c := range a.grants {
			a.daily = a.daily || c.day > 0
		}
	case name == "ids" && mayGrant:
		if a.anyID = value == "optional"; !a.anyID {
			return fmt.Errorf("ids=%.40s: want ids=optional, or nothing: grants need request ids", value)
		}
	case iss != nil:
		return iss.option(name, value)
	default:
		return fmt.Errorf("option %.40q, want realms=, pools= or rate=, and of a key that may grant also grants= or ids=", name)
	}
	return err
}

func parseNames(option, text string) ([]string, error) {
	all := strings.Split(text, ",")
	for _, id := range all {
		if id == "" || len(id) > catalog.MaxID {
			return nil, fmt.Errorf("%s=%.80s: want names of 1 to %d bytes, with commas between them", option, text, catalog.MaxID)
		}
	}
	return all, nil
}

// Find returns the access that a key or a token gives, nil if it is neither.
func (k *Keys) Find(secret string) *Access {
	if a := k.ByKey(secret); a != nil {
		return a
	}
	a, _ := k.ByToken(secret)
	return a
}

// ByKey returns the access that a key gives, nil if it is no key of the file.
func (k *Keys) ByKey(secret string) *Access {
	if secret == "" || len(secret) > MaxKeyBytes {
		return nil
	}
	return k.of(Caller{Hash: sha256.Sum256([]byte(secret))})
}

// MayBeToken reports whether a secret must be checked as a token: issuers, and three parts.
func (k *Keys) MayBeToken(secret string) bool {
	return len(secret) <= MaxTokenBytes && strings.Count(secret, ".") == 2 && len(k.set.Load().issuers) > 0
}

// ByToken returns the access that a token gives, or what is wrong with it.
func (k *Keys) ByToken(secret string) (*Access, *Fault) {
	if !k.MayBeToken(secret) {
		return nil, Unsigned("it is no key of the file, and no token")
	}
	var why []string
	for _, i := range k.set.Load().issuers {
		a, fault := i.player(k, secret)
		if a != nil || fault.ours {
			return a, fault
		}
		why = append(why, fmt.Sprintf("%s: %s", i.Name, fault.Why))
	}
	return nil, Unsigned("%s", strings.Join(why, "; "))
}

// again returns the access as the key file has it now, nil if the key or token is no longer good.
func (k *Keys) again(a *Access) *Access {
	if a.token != "" {
		return k.Find(a.token)
	}
	return k.of(a.Who)
}

// of returns the access of the key with a hash, or nil, in a time that tells nothing about keys.
func (k *Keys) of(who Caller) *Access {
	set, at := k.set.Load().keys, -1
	for i := range set {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(who.Hash[:], set[i].hash[:]), i, at)
	}
	if at < 0 {
		return nil
	}
	return &set[at].Access
}

// SecretOf returns the key in a request's header, or "".
func SecretOf(h http.Header) string {
	if v := h.Get("Authorization"); v != "" {
		scheme, secret, ok := strings.Cut(v, " ")
		if !ok || !strings.EqualFold(scheme, "Bearer") {
			return ""
		}
		return strings.TrimSpace(secret)
	}
	return h.Get("X-Api-Key")
}

// NewKey returns a new random API key of 256 bits.
func NewKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: without entropy the process ends
	return "kuji_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// KeyLine returns the line for a key in a key file, see [Keys]. Options are name=value.
func KeyLine(commands, secret, name string, options ...string) (string, error) {
	if secret == "" || len(secret) > MaxKeyBytes {
		return "", fmt.Errorf("%w: a key of %d bytes, want 1 to %d", ErrKeys, len(secret), MaxKeyBytes)
	}
	hash := sha256.Sum256([]byte(secret))
	return makeLine(append([]string{commands, hex.EncodeToString(hash[:]), name}, options...))
}

// makeLine joins the parts of a line, and reads it as a server does.
func makeLine(parts []string) (string, error) {
	for _, p := range parts {
		if p == "" || strings.ContainsFunc(p, unicode.IsSpace) {
			return "", fmt.Errorf("%w: %.80q, want a word", ErrKeys, p)
		}
	}
	line := strings.Join(parts, " ")
	if _, _, err := parseKey(line); err != nil {
		return "", fmt.Errorf("%w: %w", ErrKeys, err)
	}
	return line, nil
}
