package main

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// clusterKey is the one secret of a cluster, which all of its nodes have. What nodes need is derived
// from it, for each purpose and cluster something else:
//
//	seeds      seals the seeds of epochs in the log (kuji.Options.Key)
//	nats       the password between the embedded NATS servers
//	authority  signs the certificates that nodes make at each start and show each other
type clusterKey [32]byte

// maxClusterKey bounds a file with a cluster's key, in bytes.
const maxClusterKey = 4096

func (a *app) readClusterKey(file string) (key clusterKey, err error) {
	data, err := a.readFile(file, maxClusterKey)
	if err != nil {
		return key, err
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(raw) != len(key) { // what is there may be a secret: it is not shown
		return key, usageError{fmt.Errorf("--cluster-key %s: expected %d hexadecimal digits and nothing else; see \"kuji cluster keygen --help\"", file, 2*len(key))}
	}
	copy(key[:], raw)
	return key, nil
}

// writeClusterKey makes a key and writes it to a file that is not there yet.
func writeClusterKey(file string) (err error) {
	var key clusterKey
	_, _ = rand.Read(key[:]) // never fails: without entropy the process ends
	f, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return refusedError{fmt.Sprintf("%s is there already: a cluster that loses its key cannot prove its draws, so it stays", file)}
	}
	if err != nil {
		return usageError{err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.WriteString(f, hex.EncodeToString(key[:])+"\n"); err != nil {
		return err
	}
	return f.Sync()
}

// derive returns a secret for one purpose in one cluster.
func (k clusterKey) derive(cluster, purpose string) (secret [32]byte) {
	out, err := hkdf.Key(sha256.New, k[:], nil, "kuji cluster "+cluster+" "+purpose, len(secret))
	if err != nil {
		panic(err) // of a length that is not allowed: this one is
	}
	copy(secret[:], out)
	return secret
}

// password returns what the NATS servers tell each other.
func (k clusterKey) password(cluster string) string {
	secret := k.derive(cluster, "nats")
	return hex.EncodeToString(secret[:])
}

// tls returns what both sides of a connection between nodes use: a new certificate for host, good
// for both, and trust in those who know the key, and nobody else. The certificates have no end that
// matters, since no clock must keep nodes apart and each start makes another one.
func (k clusterKey) tls(cluster, host string) (*tls.Config, error) {
	seed := k.derive(cluster, "authority")
	authority := ed25519.NewKeyFromSeed(seed[:])
	from, to := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kuji cluster " + cluster}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, err := signed(root, root, authority.Public(), authority)
	if err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "kuji node"}, NotBefore: from, NotAfter: to, KeyUsage: x509.KeyUsageDigitalSignature,
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
	pool := x509.NewCertPool()
	pool.AddCert(root)
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
