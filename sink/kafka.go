package sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kuji-dev/kuji"
)

// Where a topic stands, in short:
//
//	a batch is sent when all records of the one before are acknowledged by all replicas in sync
//	every record says in its headers where its batch begins
//	at the start: of the last records of all partitions, the one whose batch begins last
//	              is of the last batch. Everything before that batch is there: go on with it
//
// So it does not matter which of its records arrived, nor in which partitions: they all come again.

// Headers of a record.
const (
	headerPlace = "kuji-place" // of the event: POSITION.INDEX
	headerFrom  = "kuji-from"  // where its batch begins: POSITION.INDEX
	headerFeed  = "kuji-feed"  // a Feed as JSON
)

// Limits of Kafka.
const (
	askTimeout   = 30 * time.Second // to find out where a topic stands
	closeTimeout = 30 * time.Second // for the batch in flight when ctx ends
	maxBrokers   = 32
)

// Kafka says to which topic events go.
type Kafka struct {
	URL  string // kafka://BROKER[:PORT],…/TOPIC
	Feed Feed
	Log  *slog.Logger
}

// KafkaTopic is a topic of Kafka as a target. Close it.
type KafkaTopic struct {
	brokers []string
	topic   string
	feed    Feed
	client  *kgo.Client
}

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// parseKafka returns what a URL names.
func parseKafka(url string) (brokers []string, topic string, err error) {
	hosts, topic, ok := strings.Cut(strings.TrimPrefix(url, "kafka://"), "/")
	brokers = strings.Split(hosts, ",")
	ok = ok && topicName.MatchString(topic) && len(brokers) <= maxBrokers
	for _, b := range brokers {
		ok = ok && b != "" && !strings.ContainsAny(b, "@?# ")
	}
	if !ok {
		return nil, "", invalid("to", "not the URL of a topic: expected kafka://BROKER:PORT,…/TOPIC")
	}
	return brokers, topic, nil
}

// NewKafka returns a target that sends events to a topic, which must exist. An error is a *kuji.Error
// of CodeInvalid.
func NewKafka(o Kafka) (*KafkaTopic, error) {
	brokers, topic, err := parseKafka(o.URL)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient( // idempotent, and acknowledged by all replicas in sync, by default
		kgo.SeedBrokers(brokers...),
		kgo.DefaultProduceTopic(topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.WithLogger(kafkaLog{o.Log}),
	)
	if err != nil {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "to", Message: "not the URL of a topic", Err: err}
	}
	return &KafkaTopic{brokers, topic, o.Feed, client}, nil
}

// Close closes the connections.
func (k *KafkaTopic) Close() { k.client.Close() }

// kafkaLog passes on what the client warns of.
type kafkaLog struct{ log *slog.Logger }

// Level implements kgo.Logger.
func (kafkaLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log implements kgo.Logger.
func (l kafkaLog) Log(_ kgo.LogLevel, msg string, keyvals ...any) {
	l.log.Warn("kafka: "+msg, keyvals...)
}

func (k *KafkaTopic) failed(doing string, err error) error {
	return &kuji.Error{Code: kuji.CodeFailed, Message: fmt.Sprintf("%s the topic %s", doing, k.topic), Err: err}
}

// Place implements Target.
func (k *KafkaTopic) Place(ctx context.Context) (Place, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	admin := kadm.NewClient(k.client)
	starts, err := admin.ListStartOffsets(ctx, k.topic)
	if err = errors.Join(err, starts.Error()); err != nil {
		return Place{}, k.failed("asking about", err)
	}
	ends, err := admin.ListEndOffsets(ctx, k.topic)
	if err = errors.Join(err, ends.Error()); err != nil {
		return Place{}, k.failed("asking about", err)
	}
	last, had := map[int32]kgo.Offset{}, false
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(k.topic, end.Partition)
		had = had || end.Offset > 0
		if end.Offset > start.Offset {
			last[end.Partition] = kgo.NewOffset().At(end.Offset - 1)
		}
	})
	if had && len(last) == 0 {
		return Place{}, &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("the topic %s has lost all its records to its retention, and with them where it stood: take a new topic, and --from", k.topic)}
	}
	return k.latest(ctx, last)
}

// latest reads one record of each partition, and returns where the last batch begins.
func (k *KafkaTopic) latest(ctx context.Context, at map[int32]kgo.Offset) (latest Place, err error) {
	if len(at) == 0 {
		return Place{}, nil
	}
	// What ended a transaction of somebody else's counts as a record, too.
	reader, err := kgo.NewClient(kgo.SeedBrokers(k.brokers...), kgo.KeepControlRecords(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{k.topic: at}))
	if err != nil {
		return Place{}, k.failed("reading", err)
	}
	defer reader.Close()
	for read := map[int32]bool{}; len(read) < len(at); {
		got := reader.PollFetches(ctx)
		if err := got.Err(); err != nil {
			return Place{}, k.failed("reading", err)
		}
		for r := range got.RecordsAll() {
			if read[r.Partition] {
				continue // somebody else writes
			}
			read[r.Partition] = true
			from, err := k.fromOf(r)
			if err != nil {
				return Place{}, err
			}
			if latest.before(from) {
				latest = from
			}
		}
	}
	return latest, nil
}

// fromOf returns where the batch of a record begins.
func (k *KafkaTopic) fromOf(r *kgo.Record) (from Place, err error) {
	where := fmt.Sprintf("record %d of partition %d of the topic %s", r.Offset, r.Partition, k.topic)
	var feed Feed
	var ok bool
	for _, h := range r.Headers {
		switch h.Key {
		case headerFeed:
			err = json.Unmarshal(h.Value, &feed)
		case headerFrom:
			n, err := fmt.Sscanf(string(h.Value), "%d.%d", &from.Position, &from.Index)
			ok = err == nil && n == 2 && from.Position > 0
		}
	}
	if !ok || err != nil {
		return Place{}, &kuji.Error{Code: kuji.CodeConflict, Message: where + " is not of a feed: a feed needs a topic of its own", Err: err}
	}
	return from, k.feed.check(feed, where)
}

// Deliver implements Target.
func (k *KafkaTopic) Deliver(ctx context.Context, b *Batch) error {
	feed, err := json.Marshal(k.feed)
	if err != nil {
		return err
	}
	from := fmt.Appendf(nil, "%d.%d", b.From.Position, b.From.Index)
	records := make([]*kgo.Record, len(b.Events))
	for i := range b.Events {
		e := &b.Events[i]
		r := &kgo.Record{Key: []byte(e.Player), Headers: []kgo.RecordHeader{
			{Key: headerPlace, Value: fmt.Appendf(nil, "%d.%d", e.Position, e.Index)}, {Key: headerFrom, Value: from}, {Key: headerFeed, Value: feed},
		}}
		if e.Player == "" {
			r.Key = []byte(k.feed.Realm)
		}
		if r.Value, err = json.Marshal(e); err != nil {
			return err
		}
		records[i] = r
	}
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		pause(sending, closeTimeout)
		cancel()
	})()
	if err := k.client.ProduceSync(sending, records...).FirstErr(); err != nil {
		return k.failed("writing", err)
	}
	return nil
}
