package cli

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

// clusterKeys are what a node knows: the key that it uses, and then another one that it accepts as well,
// while the cluster's key is being changed.
type clusterKeys []clusterKey

// maxClusterKey bounds a file with a cluster's key, in bytes.
const maxClusterKey = 4096

// readClusterKeys reads a file with one key or two, each on its line.
func (a *app) readClusterKeys(file string) (keys clusterKeys, err error) {
	data, err := a.readFile(file, maxClusterKey)
	if err != nil {
		return nil, err
	}
	for line := range strings.FieldsSeq(string(data)) {
		raw, err := hex.DecodeString(line)
		if err != nil || len(raw) != len(clusterKey{}) || len(keys) == 2 { // what is there may be a secret: it is not shown
			keys = nil
			break
		}
		keys = append(keys, clusterKey(raw))
	}
	if len(keys) == 0 {
		return nil, usageError{fmt.Errorf("--cluster-key %s: expected %d hexadecimal digits, or two lines of them while the key is being changed, and nothing else; see \"kuji cluster keygen --help\"", file, 2*len(clusterKey{}))}
	}
	return keys, nil
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

// seals returns the key that seals the seeds of epochs, and those that may have sealed older ones.
func (k clusterKeys) seals(cluster string) (key [32]byte, old [][32]byte) {
	for _, one := range k[1:] {
		old = append(old, one.derive(cluster, "seeds"))
	}
	return k[0].derive(cluster, "seeds"), old
}

// passwords returns what the NATS servers tell each other: the first one. They accept all of them.
func (k clusterKeys) passwords(cluster string) (all []string) {
	for _, one := range k {
		secret := one.derive(cluster, "nats")
		all = append(all, hex.EncodeToString(secret[:]))
	}
	return all
}

// validFrom and validTo are the time of all certificates: no clock must keep nodes apart, and each start
// makes another one.
var validFrom, validTo = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)

// authority returns what signs the certificates of those who know the key.
func (k clusterKey) authority(cluster string) (root *x509.Certificate, key ed25519.PrivateKey, err error) {
	seed := k.derive(cluster, "authority")
	key = ed25519.NewKeyFromSeed(seed[:])
	root = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kuji cluster " + cluster}, NotBefore: validFrom, NotAfter: validTo,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, err = signed(root, root, key.Public(), key)
	return root, key, err
}

// tls returns what both sides of a connection between nodes use: a new certificate for host, good
// for both, and trust in those who know one of the keys, and nobody else.
func (k clusterKeys) tls(cluster, host string) (*tls.Config, error) {
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
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "kuji node"}, NotBefore: validFrom, NotAfter: validTo, KeyUsage: x509.KeyUsageDigitalSignature,
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
