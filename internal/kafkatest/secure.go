package kafkatest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Who may sign in at secure brokers, by each of the mechanisms PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
const (
	User     = "kuji"
	Password = "a-word-of-the-tests"
)

// Secure is brokers that want TLS and SASL.
type Secure struct {
	Hosts []string
	CA    string    // file with the certificate to trust
	Admin []string  // hosts for Topic and Records
	Opts  []kgo.Opt // for Topic and Records
}

// EachSecure runs a test against each kind of secure brokers there is.
func EachSecure(t *testing.T, test func(t *testing.T, s Secure)) {
	t.Run("fake", func(t *testing.T) { test(t, fakeSecure(t)) })
	t.Run("kafka", func(t *testing.T) {
		b := kafka(t)
		test(t, Secure{Hosts: []string{b.secure}, CA: b.cert.file(t), Admin: []string{b.plain}})
	})
}

func fakeSecure(t *testing.T) Secure {
	t.Helper()
	cert, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert.pem, cert.key)
	if err != nil {
		t.Fatal(err)
	}
	opts := []kfake.Opt{kfake.EnableSASL(), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}})}
	for _, m := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		opts = append(opts, kfake.Superuser(m, User, Password))
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(cert.pem)
	hosts := Fake(t, opts...).ListenAddrs()
	return Secure{Hosts: hosts, CA: cert.file(t), Admin: hosts, Opts: []kgo.Opt{
		kgo.DialTLSConfig(&tls.Config{RootCAs: trust}), kgo.SASL(scram.Auth{User: User, Pass: Password}.AsSha256Mechanism()),
	}}
}

// certificate is one for 127.0.0.1 that signs itself, in PEM.
type certificate struct{ pem, key []byte }

func newCertificate() (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	is := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kafkatest"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, is, is, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &certificate{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}, nil
}

// file writes the certificate to a file.
func (c *certificate) file(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(name, c.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
