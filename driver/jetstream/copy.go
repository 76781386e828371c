package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// A copy under way has its log under kuji.CLUSTER.copy.REALM. Nobody finds or opens it there,
// except for offline verification. The last step gives the stream the subject of a log. Its
// messages keep the old one, which nothing reads.

var _ driver.Copier = (*Driver)(nil)

// copyConfig is logConfig for a copy, whose log begins at first.
func (d *Driver) copyConfig(realm string, first driver.Cursor) jetstream.StreamConfig {
	c := d.logConfig(realm)
	c.Subjects, c.FirstSeq = []string{d.copySubject(realm)}, uint64(first)
	return c
}

// copied returns the log of a copy, or nil if there is none.
func (d *Driver) copied(ctx context.Context, realm string) (s jetstream.Stream, err error) {
	if err := driver.CheckRealm(realm); err != nil {
		return nil, err
	}
	err = d.do(ctx, fmt.Sprintf("realm %q", realm), func(ctx context.Context) (err error) {
		s, err = d.stream(ctx, d.copyConfig(realm, 0))
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			s = nil
			return nil
		case errors.Is(err, errConfig):
			return driver.ErrExist
		}
		return err
	})
	return s, err
}

// CopyBegun implements [driver.Copier]. If its answer is old, entries are sent again, and found there.
func (d *Driver) CopyBegun(ctx context.Context, realm string) (bool, error) {
	s, err := d.copied(ctx, realm)
	return s != nil && s.CachedInfo().State.Msgs > 0, err
}

// CopyFiles implements [driver.Copier].
func (d *Driver) CopyFiles(ctx context.Context, realm string, first driver.Cursor) (driver.Files, error) {
	return d.OpenCopy(ctx, realm, first)
}

// OpenCopy implements [driver.Copier].
func (d *Driver) OpenCopy(ctx context.Context, name string, first driver.Cursor) (driver.Copy, error) {
	s, err := d.copied(ctx, name)
	if err != nil {
		return nil, err
	}
	r := d.realm(name, d.copySubject(name), false)
	return r.opened(d.do(ctx, fmt.Sprintf("copy to realm %q", name), func(ctx context.Context) error {
		if s != nil && s.CachedInfo().State.Msgs == 0 && max(1, s.CachedInfo().Config.FirstSeq) != uint64(first) {
			if err := d.forget(ctx, name); err != nil {
				return err
			}
		}
		return r.find(ctx, d.copyConfig(name, first), false)
	}))
}

// forget removes a copy of another backup, whose log has no entries yet and begins elsewhere. The
// files go first: files without a log count as damage.
func (d *Driver) forget(ctx context.Context, realm string) error {
	for _, stream := range []string{d.fileStream(realm), d.logStream(realm)} {
		if err := d.js.DeleteStream(ctx, stream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	return nil
}

func (h *handle) Drop() error { return h.Close() }

// FinishCopy makes a copy a realm, which is then found like any other.
func (d *Driver) FinishCopy(ctx context.Context, realm string) error {
	return d.do(ctx, fmt.Sprintf("realm %q", realm), func(ctx context.Context) error {
		s, err := d.js.Stream(ctx, d.logStream(realm))
		if err != nil {
			return err
		}
		c := s.CachedInfo().Config
		if checkConfig(c, d.logConfig(realm)) == nil {
			return nil // by an earlier attempt
		}
		if err := checkConfig(c, d.copyConfig(realm, 0)); err != nil {
			return err
		}
		c.Subjects = d.logConfig(realm).Subjects
		_, err = d.js.UpdateStream(ctx, c)
		return err
	})
}
