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

// dedup is how long a repeated append gets its first cursor by its id. Later, reading finds its entry.
const dedup = 20 * time.Second

// names are the names of a cluster's streams and subjects. The value is the cluster's own.
type names string

func (c names) streams() string                { return "KUJI_" + string(c) + "_" }
func (c names) subjects() string               { return "kuji." + string(c) + "." }
func (c names) logStream(realm string) string  { return c.streams() + "LOG_" + realm }
func (c names) fileStream(realm string) string { return c.streams() + "FILES_" + realm }
func (c names) boardStream() string            { return c.streams() + "LEASES" }
func (c names) logSubject(realm string) string { return c.subjects() + "log." + realm }

// copySubject is that of a log which is being copied here: see copy.go.
func (c names) copySubject(realm string) string { return c.subjects() + "copy." + realm }
func (c names) fileSubject(realm string) string { return c.subjects() + "file." + realm }
func (c names) leaseSubject(name string) string { return c.subjects() + "lease." + name }

// config is how a stream is kept: nothing ever drops a message but the driver.
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

// logConfig is how a realm's log is kept.
func (d *Driver) logConfig(realm string) jetstream.StreamConfig {
	c := d.config(d.logStream(realm), d.logSubject(realm))
	c.DenyDelete = true
	return c
}

// fileConfig is how a realm's files are kept. A subject has one message: a chunk sent twice is there once.
func (d *Driver) fileConfig(realm string) jetstream.StreamConfig {
	c := d.config(d.fileStream(realm), d.fileSubject(realm)+".>")
	c.MaxMsgsPerSubject = 1
	return c
}

// isCopy reports whether a stream is a log that is being copied here.
func (d *Driver) isCopy(c jetstream.StreamConfig) bool {
	return len(c.Subjects) == 1 && strings.HasPrefix(c.Subjects[0], d.copySubject(""))
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
	if d.isCopy(got) && !slices.Equal(got.Subjects, want.Subjects) {
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

// realm is a realm that is open. It implements [driver.Realm] and [driver.Copy].
type realm struct {
	*handle
	log
	files
}

// handle is what a realm's log and files have in common.
type handle struct {
	*Driver
	name     string
	readOnly bool

	// life ends with Close.
	life context.Context
	end  context.CancelFunc
}

var _ driver.Realm = (*realm)(nil)

// realm returns a realm whose streams are still to be found.
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

// opened returns a realm whose streams were found.
func (r *realm) opened(err error) (driver.Copy, error) {
	if err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// find finds the realm's streams. Of a realm that is not there it creates them, the log's first: a
// log without files is one whose creation was interrupted, but files without a log have lost it.
func (r *realm) find(ctx context.Context, log jetstream.StreamConfig, mustExist bool) (err error) {
	files := r.fileConfig(r.name)
	r.log.msgs, err = r.stream(ctx, log)
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
		if r.log.msgs, err = r.create(ctx, log); err != nil {
			return err
		}
	}
	if r.files.msgs, err = r.stream(ctx, files); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if r.log.msgs.CachedInfo().State.Msgs > 0 {
		return &driver.CorruptError{Place: "stream " + files.Name, Err: errors.New("it is gone, and the realm's log is not")}
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

// mayWrite returns why nothing can be written.
func (h *handle) mayWrite() error {
	if h.readOnly {
		return errReadOnly
	}
	return h.open()
}

// errReadOnly is the error of a write to a realm that was opened to be read.
var errReadOnly = errors.New("the realm is open for reading only")

// write is try for what changes the realm.
func (h *handle) write(ctx context.Context, op func(context.Context) error) error {
	if err := h.mayWrite(); err != nil {
		return err
	}
	return h.try(ctx, h.life, op)
}

// read is try for what does not.
func (h *handle) read(ctx context.Context, op func(context.Context) error) error {
	return h.try(ctx, h.life, op)
}

// Streams returns the names of the streams that keep a realm of a cluster.
func Streams(cluster, realm string) []string {
	c := names(cluster)
	return []string{c.logStream(realm), c.fileStream(realm)}
}

// ClusterOf returns the cluster that a stream belongs to; "": none. Clusters and realms have no capitals.
func ClusterOf(stream string) string {
	rest, ours := strings.CutPrefix(stream, "KUJI_")
	for _, kind := range []string{"_LOG_", "_FILES_", "_LEASES"} {
		if cluster, _, ok := strings.Cut(rest, kind); ours && ok {
			return cluster
		}
	}
	return ""
}
