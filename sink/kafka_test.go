package sink

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
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
	for _, bad := range []string{"kafka://", "kafka:///t", "kafka://b", "kafka://b/", "kafka://b,/t", "kafka://user:word@b/t", "kafka://b/t/u", "kafka://b/t?x=y"} {
		if _, err := NewKafka(Kafka{URL: bad, Log: quiet}); kuji.CodeOf(err) != kuji.CodeInvalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
