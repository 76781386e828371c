package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// dedup is how long the server knows an append by its id. Later, log.refused finds the entry.
const dedup = 20 * time.Second

// names makes the names of a cluster's streams and subjects. Its value is the cluster's name.
type names string

func (c names) streams() string                { return "KUJI_" + string(c) + "_" }
func (c names) subjects() string               { return "kuji." + string(c) + "." }
func (c names) logStream(realm string) string  { return c.streams() + "LOG_" + realm }
func (c names) fileStream(realm string) string { return c.streams() + "FILES_" + realm }
func (c names) boardStream() string            { return c.streams() + "LEASES" }
func (c names) logSubject(realm string) string { return c.subjects() + "log." + realm }

// copySubject is for the log of a copy: see copy.go.
func (c names) copySubject(realm string) string { return c.subjects() + "copy." + realm }
func (c names) fileSubject(realm string) string { return c.subjects() + "file." + realm }
func (c names) leaseSubject(name string) string { return c.subjects() + "lease." + name }

// config returns a stream's configuration. Only the driver ever drops a message.
func (d *Driver) config(stream, subject string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:       stream,
		Subjects:   []string{subject},
		Storage:    jetstream.FileStorage,
		Replicas:   d.o.Replicas,
		Discard:    jetstream.DiscardNew,
		Duplicates: dedup,
	}
}

// logConfig is that of a realm's log.
func (d *Driver) logConfig(realm string) jetstream.StreamConfig {
	c := d.config(d.logStream(realm), d.logSubject(realm))
	c.DenyDelete = true
	return c
}

// fileConfig is that of a realm's files. A subject has one message: a chunk sent twice is there once.
func (d *Driver) fileConfig(realm string) jetstream.StreamConfig {
	c := d.config(d.fileStream(realm), d.fileSubject(realm)+".>")
	c.MaxMsgsPerSubject = 1
	return c
}

// isCopy reports whether a stream is the log of a copy.
func (d *Driver) isCopy(c jetstream.StreamConfig) bool {
	return len(c.Subjects) == 1 && strings.HasPrefix(c.Subjects[0], d.copySubject(""))
}

// errConfig is in the error of a stream that somebody configured differently.
var errConfig = errors.New("the stream is not set up as this driver needs it")

// checkConfig compares a stream's configuration with the one it needs. Other limits lose data,
// reads from replicas that lag break the order, and streams in memory are lost with their servers.
func checkConfig(got, want jetstream.StreamConfig) error {
	of := func(c jetstream.StreamConfig) string {
		return fmt.Sprintf("{Retention:%v Discard:%v MaxMsgs:%d MaxAge:%d MaxMsgsPerSubject:%d AllowDirect:%t Sealed:%t Subjects:%v}",
			c.Retention, c.Discard, max(0, c.MaxMsgs), c.MaxAge, max(0, c.MaxMsgsPerSubject), c.AllowDirect, c.Sealed, c.Subjects)
	}
	if got.Storage != want.Storage {
		return fmt.Errorf("stream %s: %w: it is in memory, not on disk", got.Name, errConfig)
	}
	if g, w := of(got), of(want); g != w {
		return fmt.Errorf("stream %s: %w: it has %s, want %s", got.Name, errConfig, g, w)
	}
	return nil
}

// stream returns a stream that exists. Its cached state may be old.
func (d *Driver) stream(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := d.js.Stream(ctx, want.Name)
	if err != nil {
		return nil, err
	}
	got := s.CachedInfo().Config
	if d.isCopy(got) && !slices.Equal(got.Subjects, want.Subjects) {
		return nil, fmt.Errorf("stream %s: it is being restored: %w", want.Name, driver.ErrLocked)
	}
	return s, checkConfig(got, want)
}

// create returns a stream. It creates a missing one.
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

// realm is a realm that is open. It implements [driver.Realm] and [driver.Copy].
type realm struct {
	*handle
	log
	files
}

// handle is what a realm's log and files share.
type handle struct {
	*Driver
	name     string
	readOnly bool

	// life ends with Close.
	life context.Context
	end  context.CancelFunc
}

var _ driver.Realm = (*realm)(nil)

// realm returns a realm without its streams: see find.
func (d *Driver) realm(name, subject string, readOnly bool) *realm {
	h := &handle{Driver: d, name: name, readOnly: readOnly}
	h.life, h.end = context.WithCancel(d.life)
	return &realm{handle: h, log: log{handle: h, subject: subject}, files: files{handle: h}}
}

// Open implements [driver.Driver].
func (d *Driver) Open(ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
	if err := driver.CheckRealm(name); err != nil {
		return nil, err
	}
	r := d.realm(name, d.logSubject(name), o.ReadOnly || o.Check)
	find := func(log jetstream.StreamConfig) error {
		return d.do(ctx, fmt.Sprintf("open realm %q", name), func(ctx context.Context) error { return r.find(ctx, log, o.MustExist || r.readOnly) })
	}
	err := find(d.logConfig(name))
	if errors.Is(err, driver.ErrLocked) && o.Check {
		err = find(d.copyConfig(name, 0))
	}
	return r.opened(err)
}

// opened returns the realm, or closes it after an error of find.
func (r *realm) opened(err error) (driver.Copy, error) {
	if err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// find finds the realm's streams. It creates those of a missing realm, the log's first: a log
// without files is a realm whose creation was interrupted, but files without a log have lost it.
func (r *realm) find(ctx context.Context, log jetstream.StreamConfig, mustExist bool) (err error) {
	files := r.fileConfig(r.name)
	r.log.msgs, err = r.stream(ctx, log)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = r.stream(ctx, files)
		switch {
		case err == nil:
			return &driver.CorruptError{Place: "stream " + log.Name, Err: errors.New("it is missing, but the realm's files are there")}
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return err
		case mustExist:
			return driver.ErrNotExist
		}
		r.log.msgs, err = r.create(ctx, log)
	}
	if err != nil {
		return err
	}
	if r.files.msgs, err = r.stream(ctx, files); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if r.log.msgs.CachedInfo().State.Msgs > 0 {
		return &driver.CorruptError{Place: "stream " + files.Name, Err: errors.New("it is missing, but the realm's log is there")}
	}
	r.files.msgs, err = r.create(ctx, files)
	return err
}

func (h *handle) Close() error {
	err := h.open()
	h.end()
	return err
}

// open returns ErrClosed after Close.
func (h *handle) open() error {
	if h.life.Err() != nil {
		return driver.ErrClosed
	}
	return nil
}

// mayWrite returns why nothing may be written, or nil.
func (h *handle) mayWrite() error {
	if h.readOnly {
		return errReadOnly
	}
	return h.open()
}

// errReadOnly is the error of a write to a realm that is open for reading.
var errReadOnly = errors.New("the realm is open for reading only")

// write is try for what changes the realm.
func (h *handle) write(ctx context.Context, op func(context.Context) error) error {
	if err := h.mayWrite(); err != nil {
		return err
	}
	return h.try(ctx, h.life, op)
}

// Streams returns the names of the streams of a realm.
func Streams(cluster, realm string) []string {
	c := names(cluster)
	return []string{c.logStream(realm), c.fileStream(realm)}
}

// ClusterOf returns the cluster of a stream; "": none. Names of clusters and realms have no capitals.
func ClusterOf(stream string) string {
	rest, ours := strings.CutPrefix(stream, "KUJI_")
	for _, kind := range []string{"_LOG_", "_FILES_", "_LEASES"} {
		if cluster, _, ok := strings.Cut(rest, kind); ours && ok {
			return cluster
		}
	}
	return ""
}
