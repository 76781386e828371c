package jetstream_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
)

// Two of three disks are lost. The one that is left is read: what it has, and what it had received when the
// others went, which a majority may have had. The directory itself stays as it is.
func TestRescue(t *testing.T) {
	if testing.Short() {
		t.Skip("starts four servers")
	}
	c := startCluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	on := func(s *embedded.Server) *jetstream.Driver {
		d, err := jetstream.Connect(ctx, jetstream.Options{Connect: []nats.Option{s.Connect()}, Cluster: "c"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := on(c.servers[0])
	r, err := d.Open(ctx, "main", driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := driver.Cursor(0)
	for i := range 10 {
		if at, err = r.Append(ctx, at, fmt.Append(nil, "entry ", i)); err != nil {
			t.Fatal(err)
		}
	}
	waitForReplicas(ctx, t, c, "KUJI_c_LOG_main", uint64(at))
	last := slices.IndexFunc(c.servers, func(s *embedded.Server) bool { return s.NATS().JetStreamIsStreamLeader("$G", "KUJI_c_LOG_main") })
	if last < 0 {
		t.Fatal("nobody leads the log")
	}
	if err := errors.Join(r.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	d = on(c.servers[last])
	if r, err = d.Open(ctx, "main", driver.Options{}); err != nil {
		t.Fatal(err)
	}
	for i, s := range c.servers {
		if i != last {
			s.NATS().Shutdown()
		}
	}
	lost, giveUp := context.WithCancel(ctx)
	appended := make(chan error, 1)
	go func() {
		_, err := r.Append(lost, at, []byte("entry 10")) // received, and no majority has it
		appended <- err
	}()
	received := filepath.Join(c.options[last].Dir, "jetstream", "$SYS", "_js_", "*", "msgs", "*.blk")
	for !holds(t, received, "entry 10") {
		if ctx.Err() != nil {
			t.Fatal("the last server does not receive the entry")
		}
	}
	giveUp()
	if err := <-appended; !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("an append without a majority: %v", err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	from := embedded.RescueOptions{Dir: c.options[last].Dir, Copy: copied, Cluster: "test", Node: c.options[last].Node}
	if _, err := embedded.Rescue(ctx, from); !errors.Is(err, embedded.ErrInUse) {
		t.Fatalf("the node runs: %v, want ErrInUse", err)
	}
	if err := errors.Join(r.Close(), d.Close(), c.servers[last].Close()); err != nil {
		t.Fatal(err)
	}
	before := hashTree(t, c.options[last].Dir)
	s, err := embedded.Rescue(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"KUJI_c_FILES_main", "KUJI_c_LOG_main"}; !slices.Equal(s.Streams, want) {
		t.Errorf("the copy has %v, want %v", s.Streams, want)
	}
	d = on(s.Server)
	if r, err = d.Open(ctx, "main", driver.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	through, err := r.Last(ctx)
	if err != nil || through != at+1 {
		t.Fatalf("the copy ends at %d, %v, want %d", through, err, at+1)
	}
	i := 0
	for e, err := range r.Read(ctx, 0, through) {
		if want := fmt.Sprint("entry ", i); err != nil || string(e.Data) != want {
			t.Fatalf("read %q, %v, want %q", e.Data, err, want)
		}
		i++
	}
	if err := errors.Join(r.Close(), d.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(copied); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is still there: %v", err)
	}
	if after := hashTree(t, c.options[last].Dir); after != before {
		t.Error("the directory is another one than before")
	}
	soon, end := context.WithTimeout(ctx, time.Second)
	defer end()
	from.Dir = t.TempDir()
	if s, err := embedded.Rescue(soon, from); err == nil {
		s.Close()
		t.Error("an empty directory is rescued")
	}
}

// holds reports whether a file of a pattern has some text in it.
func holds(t *testing.T, pattern, text string) bool {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		data, err := os.ReadFile(name)
		return err == nil && bytes.Contains(data, []byte(text)) // a file may go meanwhile
	})
}

// hashTree returns a hash of all that is in a directory.
func hashTree(t *testing.T, dir string) [sha256.Size]byte {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d %s", path, len(data), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
