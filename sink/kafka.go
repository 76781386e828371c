package sink

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/step"
)

// Where a topic stands:
//
//	a batch is sent when all replicas in sync have acknowledged the records of the one before
//	every record says in its headers where its batch begins
//	a batch without events is one record of kind progress, which says where the next one begins. So a feed
//	              of few events does not begin far back, perhaps before what the log still has
//	at the start: of the last records of all partitions, the one whose batch begins last is of the last
//	              batch. Everything before that batch is there: the feed goes on with it
//
// It does not matter which of its records arrived, nor in which partitions: they all come again.

// kindProgress is the kind of a record without an event, and its key. No event has the kind. Its value
// says in next before which place everything is there.
const kindProgress = "kuji-progress"

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
)

// Kafka says to which topic events go.
type Kafka struct {
	// URL is kafka://BROKER[:PORT],…/TOPIC. Settings follow a ?, as NAME=VALUE with & between them: tls=true,
	// with files ca, cert and key if need be; sasl=PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, with user and
	// password-file.
	URL  string
	Feed Feed
	Log  *slog.Logger
}

// KafkaTopic is a topic of Kafka as a target. Close it.
type KafkaTopic struct {
	topic   string
	feed    Feed
	connect []kgo.Opt // how brokers are reached
	client  *kgo.Client
}

// NewKafka returns a target that sends events to an existing topic. An error is a *kuji.Error of CodeInvalid.
func NewKafka(o Kafka) (*KafkaTopic, error) {
	u, err := parseKafka(o.URL)
	if err != nil {
		return nil, err
	}
	connect, err := u.options()
	if err != nil {
		return nil, err
	}
	connect = append(connect, kgo.WithLogger(kafkaLog{o.Log}))
	client, err := kgo.NewClient(append(slices.Clone(connect), // idempotent, and acknowledged by all replicas in sync, by default
		kgo.DefaultProduceTopic(u.topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
	)...)
	if err != nil {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "to", Message: "not the URL of a topic", Err: err}
	}
	return &KafkaTopic{u.topic, o.Feed, connect, client}, nil
}

// Close closes the connections.
func (k *KafkaTopic) Close() { k.client.Close() }

// kafkaLog is a kgo.Logger that passes on what the client warns of.
type kafkaLog struct{ log *slog.Logger }

func (kafkaLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

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
	starts, errStarts := admin.ListStartOffsets(ctx, k.topic)
	ends, errEnds := admin.ListEndOffsets(ctx, k.topic)
	if err := errors.Join(errStarts, starts.Error(), errEnds, ends.Error()); err != nil {
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
	reader, err := kgo.NewClient(append(slices.Clone(k.connect), kgo.KeepControlRecords(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{k.topic: at}))...)
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

// records returns a batch as records.
func (k *KafkaTopic) records(b *Batch) ([]*kgo.Record, error) {
	feed, err := json.Marshal(k.feed)
	if err != nil {
		return nil, err
	}
	headers := []kgo.RecordHeader{{Key: headerFrom, Value: fmt.Append(nil, b.From)}, {Key: headerFeed, Value: feed}}
	if len(b.Events) == 0 {
		headers[0].Value = fmt.Append(nil, b.To)
		value, err := json.Marshal(map[string]any{"kind": kindProgress, "next": b.To})
		return []*kgo.Record{{Key: []byte(kindProgress), Value: value, Headers: headers}}, err
	}
	records := make([]*kgo.Record, len(b.Events))
	for i := range b.Events {
		e := &b.Events[i]
		place := kgo.RecordHeader{Key: headerPlace, Value: fmt.Append(nil, placeOf(e))}
		r := &kgo.Record{Key: []byte(cmp.Or(e.Player, k.feed.Realm)), Headers: append([]kgo.RecordHeader{place}, headers...)}
		if r.Value, err = json.Marshal(e); err != nil {
			return nil, err
		}
		records[i] = r
	}
	return records, nil
}

// Deliver implements Target.
func (k *KafkaTopic) Deliver(ctx context.Context, b *Batch) error {
	records, err := k.records(b)
	if err != nil {
		return err
	}
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		step.Pause(sending, closeTimeout)
		cancel()
	})()
	if err := k.client.ProduceSync(sending, records...).FirstErr(); err != nil {
		return k.failed("writing", err)
	}
	return nil
}
