package sink

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// kafkaURL is what the URL of a topic says. Secrets are in files: a URL ends up in lists of processes.
type kafkaURL struct {
	brokers []string
	topic   string

	ca        string // file with the certificates of authorities; "": the system's
	cert, key string // files of the client's own certificate, if brokers ask for one
	tls       string // "true": the brokers speak it

	sasl         string // mechanism; "": none
	user         string
	passwordFile string
}

// The SASL mechanisms.
const (
	saslPlain    = "PLAIN"
	saslScram256 = "SCRAM-SHA-256"
	saslScram512 = "SCRAM-SHA-512"
)

// Limits of what a URL names.
const (
	maxBrokers  = 32
	maxUser     = 256     // bytes
	maxPassword = 4096    // bytes of a password's file
	maxPEM      = 1 << 20 // bytes of a file with certificates
)

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// parseKafka returns what a URL says.
func parseKafka(text string) (u kafkaURL, err error) {
	place, query, _ := strings.Cut(strings.TrimPrefix(text, "kafka://"), "?")
	hosts, topic, ok := strings.Cut(place, "/")
	u.brokers, u.topic = strings.Split(hosts, ","), topic
	ok = ok && topicName.MatchString(topic) && len(u.brokers) <= maxBrokers
	for _, b := range u.brokers {
		ok = ok && b != "" && !strings.ContainsAny(b, "@# ")
	}
	if !ok {
		return u, invalid("to", "not the URL of a topic: expected kafka://BROKER:PORT,…/TOPIC, and a password in a file")
	}
	settings, err := url.ParseQuery(query)
	if err != nil {
		return u, invalid("to", "the settings after the ? of the topic's URL cannot be read: expected NAME=VALUE&…")
	}
	texts := map[string]*string{"tls": &u.tls, "ca": &u.ca, "cert": &u.cert, "key": &u.key, "sasl": &u.sasl, "user": &u.user, "password-file": &u.passwordFile}
	for name, values := range settings {
		switch {
		case texts[name] == nil:
			return u, invalid("to", "%.40q in the topic's URL: expected tls, ca, cert, key, sasl, user or password-file", name)
		case len(values) != 1 || values[0] == "":
			return u, invalid("to", "%.40q in the topic's URL: expected one value", name)
		}
		*texts[name] = values[0]
	}
	return u, u.check()
}

// check checks which settings stand together.
func (u *kafkaURL) check() error {
	secure := u.tls == "true"
	switch {
	case !secure && u.tls != "" && u.tls != "false":
		return invalid("to", "tls in the topic's URL: expected true or false")
	case !secure && (u.ca != "" || u.cert != "" || u.key != ""):
		return invalid("to", "ca, cert and key in the topic's URL: expected tls=true with them")
	case (u.cert == "") != (u.key == ""):
		return invalid("to", "cert and key in the topic's URL: expected both or none")
	case u.sasl == "" && (u.user != "" || u.passwordFile != ""):
		return invalid("to", "user and password-file in the topic's URL: expected sasl with them")
	case u.sasl == "":
		return nil
	case !slices.Contains([]string{saslPlain, saslScram256, saslScram512}, u.sasl):
		return invalid("to", "sasl %.40q in the topic's URL: expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", u.sasl)
	case u.user == "" || len(u.user) > maxUser || u.passwordFile == "":
		return invalid("to", "sasl in the topic's URL: expected user, of at most %d bytes, and password-file with it", maxUser)
	case u.sasl == saslPlain && !secure:
		return invalid("to", "sasl=PLAIN in the topic's URL: expected tls=true with it, because anybody on the network can read the password")
	}
	return nil
}

// options reads the files, to find a bad one at once. Each connection reads the password again: it may change.
func (u *kafkaURL) options() ([]kgo.Opt, error) {
	all := []kgo.Opt{kgo.SeedBrokers(u.brokers...)}
	if u.tls == "true" {
		conf, err := u.tlsConfig()
		if err != nil {
			return nil, err
		}
		all = append(all, kgo.DialTLSConfig(conf))
	}
	if u.sasl != "" {
		if _, err := u.password(); err != nil {
			return nil, err
		}
		all = append(all, kgo.SASL(u.mechanism()))
	}
	return all, nil
}

func (u *kafkaURL) tlsConfig() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if u.ca != "" {
		pem, err := readBounded("ca", u.ca, maxPEM)
		if err != nil {
			return nil, err
		}
		if conf.RootCAs = x509.NewCertPool(); !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, invalid("to", "ca in the topic's URL: %s has no certificate in PEM", u.ca)
		}
	}
	if u.cert != "" {
		cert, err := readBounded("cert", u.cert, maxPEM)
		if err != nil {
			return nil, err
		}
		key, err := readBounded("key", u.key, maxPEM)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, invalid("to", "cert and key in the topic's URL: %v", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// password reads the password: the file but for the end of its line.
func (u *kafkaURL) password() (string, error) {
	data, err := readBounded("password-file", u.passwordFile, maxPassword)
	if err != nil {
		return "", err
	}
	data = bytes.TrimRight(data, "\r\n")
	if len(data) == 0 {
		return "", invalid("to", "password-file in the topic's URL: %s is empty", u.passwordFile)
	}
	return string(data), nil
}

func (u *kafkaURL) mechanism() sasl.Mechanism {
	if u.sasl == saslPlain {
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			word, err := u.password()
			return plain.Auth{User: u.user, Pass: word}, err
		})
	}
	by := scram.Sha512
	if u.sasl == saslScram256 {
		by = scram.Sha256
	}
	return by(func(context.Context) (scram.Auth, error) {
		word, err := u.password()
		return scram.Auth{User: u.user, Pass: word}, err
	})
}

// readBounded reads a file that a setting names.
func readBounded(setting, name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, invalid("to", "%s in the topic's URL: %v", setting, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, invalid("to", "%s in the topic's URL: %v", setting, err)
	}
	if int64(len(data)) > most {
		return nil, invalid("to", "%s in the topic's URL: %s has more than %d bytes", setting, name, most)
	}
	return data, nil
}
