package server

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// MaxKeys is the most keys in a key file.
const MaxKeys = 1024

// ErrKeys is wrapped by every error about a key file.
var ErrKeys = errors.New("bad API keys")

// Keys are API keys read from a file. Each line of the file is
//
//	role sha256 name
//
// The role is admin, write or read. sha256 is the hash of the key, 64 hexadecimal digits. The name
// is for people and may be left out. Empty lines and lines that start with # are ignored. The file
// contains no secret: a key of at least 128 random bits cannot be found from its hash.
type Keys struct {
	path string
	set  atomic.Pointer[[]key]
}

type key struct {
	hash [sha256.Size]byte
	role kujiv1.Role
	name string
}

// LoadKeys reads a key file. A file without any key is an error.
func LoadKeys(path string) (*Keys, error) {
	k := &Keys{path: path}
	if err := k.Reload(); err != nil {
		return nil, err
	}
	return k, nil
}

// Reload reads the file again. If that fails, the keys stay as they were.
func (k *Keys) Reload() error {
	data, err := os.ReadFile(k.path)
	if err != nil {
		return fmt.Errorf("server: %w: %w", ErrKeys, err)
	}
	set, err := parseKeys(data)
	if err != nil {
		return fmt.Errorf("server: %w: %s: %w", ErrKeys, k.path, err)
	}
	k.set.Store(&set)
	return nil
}

// Len returns how many keys there are.
func (k *Keys) Len() int { return len(*k.set.Load()) }

func parseKeys(data []byte) ([]key, error) {
	var set []key
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		one, err := parseKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		for _, other := range set {
			if other.hash == one.hash {
				return nil, fmt.Errorf("line %d: the same hash as an earlier line", n)
			}
		}
		if set = append(set, one); len(set) > MaxKeys {
			return nil, fmt.Errorf("line %d: more than %d keys", n, MaxKeys)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(set) == 0 {
		return nil, errors.New("no keys, want at least one line: role sha256 name")
	}
	return set, nil
}

func parseKey(line string) (key, error) {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return key{}, fmt.Errorf("got %d fields, want: role sha256 name", len(fields))
	}
	one := key{name: strings.Join(fields[2:], " ")}
	switch fields[0] {
	case "admin":
		one.role = kujiv1.Role_ROLE_ADMIN
	case "write":
		one.role = kujiv1.Role_ROLE_WRITE
	case "read":
		one.role = kujiv1.Role_ROLE_READ
	default:
		return key{}, fmt.Errorf("role %q, want admin, write or read", fields[0])
	}
	if hash, err := hex.DecodeString(fields[1]); err != nil || copy(one.hash[:], hash) != len(one.hash) || len(hash) != len(one.hash) {
		// Do not quote the field: a key pasted here by mistake must not end up in a log.
		return key{}, fmt.Errorf("second field of %d bytes, want a SHA-256 of %d hexadecimal digits", len(fields[1]), 2*sha256.Size)
	}
	return one, nil
}

// find returns the key with this secret, the zero key if there is none.
func (k *Keys) find(secret string) key {
	if secret == "" || len(secret) > MaxKeyBytes {
		return key{}
	}
	return k.of(sha256.Sum256([]byte(secret)))
}

// of returns a caller's key, the zero key if there is none. It compares with every known one in
// constant time, so the time it takes reveals nothing about the keys.
func (k *Keys) of(who caller) key {
	set, at := *k.set.Load(), -1
	for i, one := range set {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(who[:], one.hash[:]), i, at)
	}
	if at < 0 {
		return key{}
	}
	return set[at]
}

// secretOf returns the key in a request's header, or "".
func secretOf(h http.Header) string {
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

// KeyLine returns the line for a key in a key file. The name may be empty.
func KeyLine(role, secret, name string) (string, error) {
	if secret == "" || len(secret) > MaxKeyBytes {
		return "", fmt.Errorf("server: %w: a key of %d bytes, want 1 to %d", ErrKeys, len(secret), MaxKeyBytes)
	}
	hash := sha256.Sum256([]byte(secret))
	line := role + " " + hex.EncodeToString(hash[:])
	if name != "" {
		line += " " + name
	}
	if strings.ContainsAny(line, "\r\n") {
		return "", fmt.Errorf("server: %w: the name has more than one line", ErrKeys)
	}
	if _, err := parseKey(line); err != nil {
		return "", fmt.Errorf("server: %w: %w", ErrKeys, err)
	}
	return line, nil
}
