package sink

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/kafkatest"
)

func TestMain(m *testing.M) {
	m.Run()
	kafkatest.Stop()
}

// topic makes a topic of 3 partitions, and returns its name and its URL.
func topic(t *testing.T, hosts []string) (name, url string) {
	name = kafkatest.Topic(t, hosts, 3)
	return name, "kafka://" + strings.Join(hosts, ",") + "/" + name
}

func kafkaTarget(t *testing.T, url string, feed Feed) *KafkaTopic {
	t.Helper()
	k, err := NewKafka(Kafka{URL: url, Feed: feed, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// lossy is a topic whose deliveries break off: some partitions have got their records, others not.
type lossy struct {
	*KafkaTopic
	rand *rand.Rand
}

var errLost = errors.New("the process died")

func (l *lossy) Deliver(ctx context.Context, b *Batch) error {
	if l.rand.IntN(3) > 0 {
		return l.KafkaTopic.Deliver(ctx, b)
	}
	some, dead := *b, map[string]bool{} // partitions go by keys: all records of some keys are lost
	some.Events = slices.DeleteFunc(slices.Clone(b.Events), func(e kuji.Record) bool {
		if _, ok := dead[e.Player]; !ok {
			dead[e.Player] = l.rand.IntN(2) == 0
		}
		return dead[e.Player]
	})
	if len(some.Events) == 0 {
		return errLost
	}
	return errors.Join(errLost, l.KafkaTopic.Deliver(ctx, &some))
}

// TestKafka: whichever records of a batch are lost with the process, the next one finds out from the
// topic where to go on. All events come, those of each player in order.
func TestKafka(t *testing.T) { kafkatest.Each(t, testKafka) }

func testKafka(t *testing.T, hosts []string) {
	name, url := topic(t, hosts)
	steps, all := feedOf(11, 120)
	feed := Feed{Realm: "default"}
	runs := 0
	for err := errLost; errors.Is(err, errLost); runs++ {
		l := &lossy{kafkaTarget(t, url, feed), rand.New(rand.NewPCG(uint64(runs), 0))}
		source := func(ctx context.Context, from uint64) iter.Seq2[Step, error] {
			return func(yield func(Step, error) bool) {
				n := 0
				for s, err := range sourceOf(steps)(ctx, from) {
					if n++; n > 12 && runs < 20 { // a short life each
						yield(Step{}, errLost)
						return
					}
					if !yield(s, err) {
						return
					}
				}
			}
		}
		_, err = Run(t.Context(), source, l, 1, quiet)
		if !errors.Is(err, errLost) && !errors.Is(err, errEnd) {
			t.Fatal(err)
		}
	}
	want, got := map[string][]string{}, map[string][]string{}
	for _, e := range all {
		want[e.Player] = append(want[e.Player], fmt.Sprintf("%d.%d", e.Position, e.Index))
	}
	repeats := 0
	for _, r := range kafkatest.Records(t, hosts, name) {
		key, place := string(r.Key), header(r, headerPlace)
		if key == kindProgress {
			continue
		}
		if slices.Contains(got[key], place) {
			repeats++
			continue
		}
		got[key] = append(got[key], place)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	t.Logf("%d events, %d repeats in %d runs", len(all), repeats, runs)
	if runs < 3 || repeats == 0 {
		t.Error("nothing was lost, so nothing was shown")
	}
}

// TestKafkaRetries: a broker that fails in between gets each record once all the same.
func TestKafkaRetries(t *testing.T) {
	c := kafkatest.Fake(t)
	name, url := topic(t, c.ListenAddrs())
	fails := 1
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		if fails--; fails >= 0 {
			c.KeepControl()
			return nil, errors.New("the connection is lost"), true
		}
		return nil, nil, false
	})
	steps, all := feedOf(12, 40)
	if _, err := Run(t.Context(), sourceOf(steps), kafkaTarget(t, url, Feed{Realm: "default"}), 1, quiet); !errors.Is(err, errEnd) {
		t.Fatal(err)
	}
	if got := kafkatest.Records(t, c.ListenAddrs(), name); len(got) != len(all) || fails >= 0 {
		t.Errorf("%d records, want %d; %d failures left", len(got), len(all), fails)
	}
}

// TestKafkaRefuses: topics that a feed cannot go on with.
func TestKafkaRefuses(t *testing.T) { kafkatest.Each(t, testKafkaRefuses) }

func testKafkaRefuses(t *testing.T, hosts []string) {
	name, url := topic(t, hosts)
	feed := Feed{Realm: "default"}
	deliver := func(feed Feed) error {
		return kafkaTarget(t, url, feed).Deliver(t.Context(), &Batch{Events: []kuji.Record{{Position: 7, Index: 2, Player: "ann"}}, From: Place{7, 2}, To: Place{8, 0}})
	}
	if at, err := kafkaTarget(t, url, feed).Place(t.Context()); at != (Place{}) || err != nil {
		t.Errorf("an empty topic: %v, %v", at, err)
	}
	if _, err := kafkaTarget(t, strings.Replace(url, name, "none", 1), feed).Place(t.Context()); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("no topic: %v", err)
	}
	if err := deliver(feed); err != nil {
		t.Fatal(err)
	}
	if at, err := kafkaTarget(t, url, feed).Place(t.Context()); at != (Place{7, 2}) || err != nil {
		t.Errorf("after one event: %v, %v", at, err)
	}
	if _, err := kafkaTarget(t, url, Feed{Realm: "default", Player: "ann"}).Place(t.Context()); kuji.CodeOf(err) != kuji.CodeConflict {
		t.Errorf("the topic of another feed: %v", err)
	}
	k := kafkaTarget(t, url, feed)
	if err := k.client.ProduceSync(t.Context(), kgo.StringRecord("hello")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Place(t.Context()); kuji.CodeOf(err) != kuji.CodeConflict || !strings.Contains(err.Error(), "a topic of its own") {
		t.Errorf("a topic of somebody else: %v", err)
	}
	admin := kadm.NewClient(k.client)
	ends, err := admin.ListEndOffsets(t.Context(), k.topic)
	if err == nil {
		_, err = admin.DeleteRecords(t.Context(), ends.Offsets())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Place(t.Context()); kuji.CodeOf(err) != kuji.CodeConflict || !strings.Contains(err.Error(), "retention") {
		t.Errorf("a topic whose records are gone: %v", err)
	}
	for _, bad := range []string{"kafka://", "kafka:///t", "kafka://b", "kafka://b/", "kafka://b,/t", "kafka://user:word@b/t", "kafka://b/t/u"} {
		if _, err := NewKafka(Kafka{URL: bad, Log: quiet}); kuji.CodeOf(err) != kuji.CodeInvalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestKafkaProgress: a feed whose events are few stands where it has looked, not where its last event was.
// The record that says so is of no event.
func TestKafkaProgress(t *testing.T) { kafkatest.Each(t, testKafkaProgress) }

func testKafkaProgress(t *testing.T, hosts []string) {
	name, url := topic(t, hosts)
	feed := Feed{Realm: "default", Player: "ann"}
	stands := func(want Place) {
		t.Helper()
		if at, err := kafkaTarget(t, url, feed).Place(t.Context()); at != want || err != nil {
			t.Fatalf("the topic stands at %v, %v, want %v", at, err, want)
		}
	}
	last := Place{}
	for _, steps := range [][]Step{
		{{Next: 70}}, // nothing about ann yet
		{{Events: []kuji.Record{{Position: 71, Player: "ann", Last: true}}, Next: 72}},
		{{Next: 500}},
	} {
		last = Place{Position: steps[0].Next}
		if _, err := Run(t.Context(), sourceOf(steps), kafkaTarget(t, url, feed), 1, quiet); !errors.Is(err, errEnd) {
			t.Fatal(err)
		}
		if len(steps[0].Events) > 0 {
			last = Place{Position: 70} // where the batch begins
		}
		stands(last)
	}
	var kinds []string
	for _, r := range kafkatest.Records(t, hosts, name) {
		var is struct {
			Kind     string `json:"kind"`
			Position uint64 `json:"position"`
		}
		if err := json.Unmarshal(r.Value, &is); err != nil {
			t.Fatal(err)
		}
		if progress := is.Kind == kindProgress; progress != (string(r.Key) == kindProgress) || progress != (header(r, headerPlace) == "") || progress != (is.Position == 0) {
			t.Errorf("a record with key %q, headers %v, value %s", r.Key, r.Headers, r.Value)
		}
		kinds = append(kinds, is.Kind)
	}
	if slices.Sort(kinds); !slices.Equal(kinds, []string{"", kindProgress, kindProgress}) {
		t.Errorf("records of the kinds %q", kinds)
	}
}

// secured returns the URL of a topic with settings.
func secured(s kafkatest.Secure, topic string, settings map[string]string) string {
	q := url.Values{}
	for name, value := range settings {
		q.Set(name, value)
	}
	return "kafka://" + strings.Join(s.Hosts, ",") + "/" + topic + "?" + q.Encode()
}

// TestKafkaSecure: brokers that want TLS and a password get both, by each mechanism, and their answers
// are believed only with the right certificate.
func TestKafkaSecure(t *testing.T) { kafkatest.EachSecure(t, testKafkaSecure) }

func testKafkaSecure(t *testing.T, s kafkatest.Secure) {
	word := filepath.Join(t.TempDir(), "word")
	if err := os.WriteFile(word, []byte(kafkatest.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	feed := Feed{Realm: "default"}
	for _, mechanism := range []string{saslPlain, saslScram256, saslScram512} {
		t.Run(mechanism, func(t *testing.T) {
			name := kafkatest.Topic(t, s.Admin, 1, s.Opts...)
			good := map[string]string{"tls": "true", "ca": s.CA, "sasl": mechanism, "user": kafkatest.User, "password-file": word}
			steps, all := feedOf(13, 20)
			if _, err := Run(t.Context(), sourceOf(steps), kafkaTarget(t, secured(s, name, good), feed), 1, quiet); !errors.Is(err, errEnd) {
				t.Fatal(err)
			}
			if got := kafkatest.Records(t, s.Admin, name, s.Opts...); len(got) < len(all) {
				t.Errorf("%d records, want %d", len(got), len(all))
			}
			if at, err := kafkaTarget(t, secured(s, name, good), feed).Place(t.Context()); at == (Place{}) || err != nil {
				t.Errorf("reading where it stands: %v, %v", at, err)
			}
		})
	}
	testKafkaDenied(t, s, word, feed)
}

// testKafkaDenied: whoever is not let in hears it at once.
func testKafkaDenied(t *testing.T, s kafkatest.Secure, word string, feed Feed) {
	name := kafkatest.Topic(t, s.Admin, 1, s.Opts...)
	good := map[string]string{"tls": "true", "ca": s.CA, "sasl": saslScram512, "user": kafkatest.User, "password-file": word}
	refused := func(what string, is func(error) bool, change func(map[string]string)) {
		t.Helper()
		bad := maps.Clone(good)
		change(bad)
		_, err := kafkaTarget(t, secured(s, name, bad), feed).Place(t.Context())
		if err == nil || errors.Is(err, context.DeadlineExceeded) || !is(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("nobody's certificate", func(err error) bool {
		_, ok := errors.AsType[*tls.CertificateVerificationError](err)
		return ok
	}, func(m map[string]string) { delete(m, "ca") })
	denied := func(err error) bool { // the brokers of this process only hang up
		return errors.Is(err, kerr.SaslAuthenticationFailed) || len(s.Opts) > 0 && errors.Is(err, io.EOF)
	}
	refused("another user", denied, func(m map[string]string) { m["user"] = "mallory" })
	if err := os.WriteFile(word, []byte("guess"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("another password", denied, func(map[string]string) {})
}

// TestKafkaURL: what a topic's URL may say. No message says a password.
func TestKafkaURL(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	word, empty := file("word", "secret"), file("empty", "\n")
	large := file("large", strings.Repeat("x", maxPassword+1))
	login := "sasl=SCRAM-SHA-512&user=kuji&password-file="
	for query, want := range map[string]string{
		"x=y":                                    "expected tls, ca, cert",
		"tls=true&tls=true":                      "expected one value",
		"tls":                                    "expected one value",
		"tls=yes":                                "expected true or false",
		"%zz":                                    "cannot be read",
		"ca=" + word:                             "expected tls=true",
		"tls=true&ca=" + word:                    "no certificate",
		"tls=true&ca=" + dir + "/none":           "no such file",
		"tls=true&cert=" + word:                  "expected both",
		"tls=true&cert=" + word + "&key=" + word: "cert and key",
		"user=kuji":                              "expected sasl",
		"sasl=GSSAPI&user=kuji&password-file=" + word: "expected PLAIN, SCRAM",
		"sasl=SCRAM-SHA-512&user=kuji":                "password-file",
		"sasl=SCRAM-SHA-512&password-file=" + word:    "expected user",
		"sasl=PLAIN&user=kuji&password-file=" + word:  "expected tls=true",
		login + empty:         "is empty",
		login + large:         "has more than 4096 bytes",
		login + dir + "/none": "no such file",
	} {
		_, err := NewKafka(Kafka{URL: "kafka://b/t?" + query, Log: quiet})
		if kuji.CodeOf(err) != kuji.CodeInvalid || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, query := range []string{"", "?tls=false", "?tls=true", "?" + login + word} {
		k, err := NewKafka(Kafka{URL: "kafka://b,c:9093/t" + query, Log: quiet})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		k.Close()
	}
	if _, err := NewKafka(Kafka{URL: "kafka://kuji:secret@b/t", Log: quiet}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a password in the URL: %v", err)
	}
}
