package cluster

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"
)

// Key is the one secret of a cluster, which all of its nodes have. They derive other secrets from it,
// for each cluster and purpose another one:
//
//	seeds      seals the seeds of epochs in the log (kuji.Options.Key)
//	nats       the password between the embedded NATS servers
//	authority  signs the certificates that nodes make at each start and show each other
type Key [32]byte

// Keys are the key that a node uses, and a second one that it accepts while the cluster's key is being changed.
type Keys []Key

// NewKey returns a new key, as the line of a file.
func NewKey() string {
	var key Key
	_, _ = rand.Read(key[:]) // never fails: without entropy the process ends
	return hex.EncodeToString(key[:]) + "\n"
}

// ParseKeys reads a file with one key or two, each on its line.
func ParseKeys(file []byte) (keys Keys, err error) {
	for line := range strings.FieldsSeq(string(file)) {
		raw, err := hex.DecodeString(line)
		if err != nil || len(raw) != len(Key{}) || len(keys) == 2 { // it may be a secret: no error shows it
			keys = nil
			break
		}
		keys = append(keys, Key(raw))
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("expected %d hexadecimal digits, or two lines of them while the key is being changed, and nothing else", 2*len(Key{}))
	}
	return keys, nil
}

// derive returns a secret for one purpose in one cluster.
func (k Key) derive(cluster, purpose string) (secret [32]byte) {
	out, err := hkdf.Key(sha256.New, k[:], nil, "kuji cluster "+cluster+" "+purpose, len(secret))
	if err != nil {
		panic(err) // of a length that is not allowed: this one is
	}
	copy(secret[:], out)
	return secret
}

// Seals returns the key that seals the seeds of a cluster's epochs, and those that may have sealed older ones.
func (k Keys) Seals(cluster string) (key [32]byte, old [][32]byte) {
	for _, one := range k[1:] {
		old = append(old, one.derive(cluster, "seeds"))
	}
	return k[0].derive(cluster, "seeds"), old
}

// passwords returns the passwords of the NATS servers. They use the first one and accept all.
func (k Keys) passwords(cluster string) (all []string) {
	for _, one := range k {
		secret := one.derive(cluster, "nats")
		all = append(all, hex.EncodeToString(secret[:]))
	}
	return all
}

// validFrom and validTo bound all certificates: a wrong clock must not keep nodes apart.
var validFrom, validTo = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)

// authority returns what signs the certificates of a cluster's nodes.
func (k Key) authority(cluster string) (root *x509.Certificate, key ed25519.PrivateKey, err error) {
	seed := k.derive(cluster, "authority")
	key = ed25519.NewKeyFromSeed(seed[:])
	root = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kuji cluster " + cluster}, NotBefore: validFrom, NotAfter: validTo,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, err = signed(root, root, key.Public(), key)
	return root, key, err
}

// tls returns both sides of a connection between nodes: a new certificate for host, and trust in the keys.
func (k Keys) tls(cluster, host string) (*tls.Config, error) {
	root, authority, err := k[0].authority(cluster)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, one := range k {
		trusted, _, err := one.authority(cluster)
		if err != nil {
			return nil, err
		}
		pool.AddCert(trusted)
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{ // with a random number
		Subject: pkix.Name{CommonName: "kuji node"}, NotBefore: validFrom, NotAfter: validTo, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = []net.IP{ip}
	} else if host != "" {
		leaf.DNSNames = []string{host}
	}
	if leaf, err = signed(leaf, root, public, authority); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: private, Leaf: leaf}},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}, nil
}

func signed(cert, parent *x509.Certificate, public any, key ed25519.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
