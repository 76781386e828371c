package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// dedup is how long a server knows the ids of messages. The same append again gets the cursor of
// the first one within it, and later finds its entry by reading.
const dedup = 20 * time.Second

func (d *Driver) logStream(realm string) string   { return "KUJI_" + d.o.Cluster + "_LOG_" + realm }
func (d *Driver) fileStream(realm string) string  { return "KUJI_" + d.o.Cluster + "_FILES_" + realm }
func (d *Driver) leaseStream() string             { return "KUJI_" + d.o.Cluster + "_LEASES" }
func (d *Driver) logSubject(realm string) string  { return "kuji." + d.o.Cluster + ".log." + realm }
func (d *Driver) fileSubject(realm string) string { return "kuji." + d.o.Cluster + ".file." + realm }
func (d *Driver) leaseSubject(realm string) string {
	return "kuji." + d.o.Cluster + ".lease." + realm
}

// logConfig is how a realm's log is kept: nothing ever drops a message but Trim.
func (d *Driver) logConfig(realm string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:       d.logStream(realm),
		Subjects:   []string{d.logSubject(realm)},
		Storage:    jetstream.FileStorage,
		Replicas:   d.o.Replicas,
		Discard:    jetstream.DiscardNew,
		Duplicates: dedup,
		DenyDelete: true,
	}
}

// fileConfig is how a realm's files are kept. A subject has one message, so that a chunk sent
// twice is there once.
func (d *Driver) fileConfig(realm string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              d.fileStream(realm),
		Subjects:          []string{d.fileSubject(realm) + ".>"},
		Storage:           jetstream.FileStorage,
		Replicas:          d.o.Replicas,
		Discard:           jetstream.DiscardNew,
		Duplicates:        dedup,
		MaxMsgsPerSubject: 1,
	}
}

// leaseConfig is how leases are kept: on disk, though they are only a hint. A stream in memory is
// empty on a server that comes back, so servers that restart one after another can lose it, or leave
// it without a leader for ever.
func (d *Driver) leaseConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              d.leaseStream(),
		Subjects:          []string{d.leaseSubject("*")},
		Storage:           jetstream.FileStorage,
		Replicas:          d.o.Replicas,
		Discard:           jetstream.DiscardNew,
		Duplicates:        dedup,
		MaxMsgsPerSubject: 1,
	}
}

// errConfig is in the error of a stream that somebody set up otherwise.
var errConfig = errors.New("the stream is not set up as this driver needs it")

// checkConfig compares a stream with how it should be kept. More limits lose data, reads from
// replicas that lag break the order, and what is in memory is gone when its servers restart.
func checkConfig(got, want jetstream.StreamConfig) error {
	type rules struct {
		Retention         jetstream.RetentionPolicy
		Discard           jetstream.DiscardPolicy
		MaxMsgs, MaxAge   int64
		MaxMsgsPerSubject int64
		AllowDirect       bool
		Sealed            bool
		Subjects          string
	}
	of := func(c jetstream.StreamConfig) rules {
		return rules{c.Retention, c.Discard, max(0, c.MaxMsgs), int64(c.MaxAge), max(0, c.MaxMsgsPerSubject),
			c.AllowDirect, c.Sealed, fmt.Sprint(c.Subjects)}
	}
	if got.Storage != want.Storage {
		return fmt.Errorf("stream %s: %w: it is in memory, not on disk", got.Name, errConfig)
	}
	if g, w := of(got), of(want); g != w {
		return fmt.Errorf("stream %s: %w: it has %+v, want %+v", got.Name, errConfig, g, w)
	}
	return nil
}

// stream returns a stream that exists, with what is known of its state, which may be old.
func (d *Driver) stream(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := d.js.Stream(ctx, want.Name)
	if err != nil {
		return nil, err
	}
	got := s.CachedInfo().Config
	if copied := "kuji." + d.o.Cluster + ".copy."; len(got.Subjects) == 1 && strings.HasPrefix(got.Subjects[0], copied) && !slices.Equal(got.Subjects, want.Subjects) {
		return nil, fmt.Errorf("stream %s: it is being restored: %w", want.Name, driver.ErrLocked)
	}
	return s, checkConfig(got, want)
}

// create returns a stream, which it creates unless it exists.
func (d *Driver) create(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := d.stream(ctx, want)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return s, err
	}
	s, err = d.js.CreateStream(ctx, want)
	if codeOf(err) == codeNoPeers && want.Replicas > someReplicas { // one of five is away: see Widen
		want.Replicas = someReplicas
		s, err = d.js.CreateStream(ctx, want)
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return d.stream(ctx, want) // another node was first
	}
	return s, err
}

// realm is a realm that is open. It implements [driver.Realm].
type realm struct {
	*Driver
	name     string
	subject  string // of the log's messages
	readOnly bool
	log      jetstream.Stream
	files    jetstream.Stream
	durable  atomic.Uint64 // the last cursor that is known to be acknowledged
	swept    atomic.Bool   // chunks that nobody needs were looked for

	// life ends with Close.
	life context.Context
	end  context.CancelFunc
}

var _ driver.Realm = (*realm)(nil)

// Open implements [driver.Driver].
func (d *Driver) Open(ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
	if err := driver.CheckRealm(name); err != nil {
		return nil, err
	}
	r := &realm{Driver: d, name: name, subject: d.logSubject(name), readOnly: o.ReadOnly || o.Check}
	log := d.logConfig(name)
	err := d.try(ctx, d.life, func(ctx context.Context) error { return r.find(ctx, log, o.MustExist || r.readOnly) })
	if errors.Is(err, driver.ErrLocked) && o.Check {
		log = d.copyConfig(name, 0)
		err = d.try(ctx, d.life, func(ctx context.Context) error { return r.find(ctx, log, true) })
	}
	if err != nil {
		return nil, fmt.Errorf("open realm %q: %w", name, known(err))
	}
	r.life, r.end = context.WithCancel(d.life)
	return r, nil
}

// find finds the realm's streams. Of a realm that is not there it creates them, the log's first: a
// log without files is one whose creation was interrupted, but files without a log have lost it.
func (r *realm) find(ctx context.Context, log jetstream.StreamConfig, mustExist bool) (err error) {
	files := r.fileConfig(r.name)
	r.log, err = r.stream(ctx, log)
	missing := errors.Is(err, jetstream.ErrStreamNotFound)
	if err != nil && !missing {
		return err
	}
	if missing {
		_, err := r.stream(ctx, files)
		switch {
		case err == nil:
			return &driver.CorruptError{Place: "stream " + log.Name, Err: errors.New("it is gone, and the realm's files are not")}
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return err
		case mustExist:
			return driver.ErrNotExist
		}
		if r.log, err = r.create(ctx, log); err != nil {
			return err
		}
	}
	if r.files, err = r.stream(ctx, files); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if r.log.CachedInfo().State.Msgs > 0 {
		return &driver.CorruptError{Place: "stream " + files.Name, Err: errors.New("it is gone, and the realm's log is not")}
	}
	r.files, err = r.create(ctx, files)
	return err
}

// findLeases finds the stream of leases, which all realms share.
func (d *Driver) findLeases(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leases != nil {
		return nil
	}
	s, err := d.create(ctx, d.leaseConfig())
	if err == nil {
		d.leases = s
	}
	return err
}

// Close implements [driver.Realm].
func (r *realm) Close() error {
	if r.life.Err() != nil {
		return driver.ErrClosed
	}
	r.end()
	return nil
}

// errReadOnly is the error of a write to a realm that was opened to be read.
var errReadOnly = errors.New("the realm is open for reading only")

// write is try for what changes the realm.
func (r *realm) write(ctx context.Context, op func(context.Context) error) error {
	if r.readOnly {
		return errReadOnly
	}
	return known(r.try(ctx, r.life, op))
}

// read is try for what does not.
func (r *realm) read(ctx context.Context, op func(context.Context) error) error {
	return r.try(ctx, r.life, op)
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// Streams returns the names of the streams that keep a realm of a cluster.
func Streams(cluster, realm string) []string {
	d := &Driver{o: Options{Cluster: cluster}}
	return []string{d.logStream(realm), d.fileStream(realm)}
}

// ClusterOf returns the cluster of which a stream keeps something, or "" if it is none of Kuji's. Names of
// clusters and realms have no capitals.
func ClusterOf(stream string) string {
	rest, ok := strings.CutPrefix(stream, "KUJI_")
	if !ok {
		return ""
	}
	for _, kind := range []string{"_LOG_", "_FILES_", "_LEASES"} {
		if cluster, _, ok := strings.Cut(rest, kind); ok {
			return cluster
		}
	}
	return ""
}
