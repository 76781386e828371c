package jetstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
)

// oneServer is a server, a driver at it, and JetStream without the driver.
func oneServer(t *testing.T) (context.Context, *jetstream.Driver, natsjs.JetStream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Cluster: "test", Node: "n1", MaxStore: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if s.Clients() != "" {
		t.Errorf("the server listens for clients at %s, and nobody told it to", s.Clients())
	}
	d, err := jetstream.Connect(ctx, jetstream.Options{Connect: []nats.Option{s.Connect()}, Cluster: "c", Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	_, js := streamsOf(t, s)
	return ctx, d, js
}

func open(t *testing.T, d driver.Driver, o driver.Options) driver.Realm {
	t.Helper()
	r, err := d.Open(t.Context(), "main", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// A server refuses an append by a count that has in it what is on its way. If nothing stands behind
// the cursor, the writer is not deposed: nobody knows.
func TestRefusalWithoutAnEntryIsUnknown(t *testing.T) {
	ctx, d, _ := oneServer(t)
	r := open(t, d, driver.Options{})
	at, err := r.Append(ctx, 0, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Append(ctx, at+5, []byte("second"))
	if !errors.Is(err, driver.ErrUnknown) || errors.Is(err, driver.ErrDeposed) {
		t.Errorf("append behind a cursor that nobody has: %v, want ErrUnknown", err)
	}
}

// A second attempt gets the cursor of the first one, even when the server has forgotten its id.
func TestSameAppendAgain(t *testing.T) {
	ctx, d, js := oneServer(t)
	r := open(t, d, driver.Options{})
	// The first attempt, without an id.
	sum := crc32.Checksum([]byte("entry"), crc32.MakeTable(crc32.Castagnoli))
	msg := &nats.Msg{Subject: "kuji.c.log.main", Data: []byte("entry"), Header: nats.Header{"Kuji-Crc32c": []string{fmt.Sprintf("%08x", sum)}}}
	ack, err := js.PublishMsg(ctx, msg)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		at, err := r.Append(ctx, 0, []byte("entry"))
		if err != nil || uint64(at) != ack.Sequence {
			t.Fatalf("the same append again: %d, %v, want %d", at, err, ack.Sequence)
		}
	}
	if _, err := r.Append(ctx, 0, []byte("other")); !errors.Is(err, driver.ErrDeposed) {
		t.Errorf("another entry there: %v, want ErrDeposed", err)
	}
}

// A message that somebody else wrote, or that changed, is damage.
func TestForeignMessage(t *testing.T) {
	ctx, d, js := oneServer(t)
	r := open(t, d, driver.Options{})
	at, err := r.Append(ctx, 0, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "kuji.c.log.main", []byte("foreign")); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range r.Read(ctx, 0, at+1) {
		var corrupt *driver.CorruptError
		if n++; n == 1 && err != nil {
			t.Fatal(err)
		} else if n == 2 && (!errors.As(err, &corrupt) || corrupt.At != at+1 || !strings.Contains(corrupt.Place, "KUJI_c_LOG_main, message 2")) {
			t.Errorf("read of a foreign message: %v, want a CorruptError with its place", err)
		}
	}
	if n != 2 {
		t.Errorf("read yielded %d times, want an entry and an error", n)
	}
}

// A message that is gone from the middle is damage, not the end of the log and not a gap.
func TestMissingMessage(t *testing.T) {
	ctx, d, js := oneServer(t)
	open(t, d, driver.Options{}).Close()
	s, err := js.Stream(ctx, "KUJI_c_LOG_main")
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	if !c.DenyDelete {
		t.Error("messages of a log can be deleted one by one")
	}
	// A stream as the driver makes it, but for the protection.
	if err := js.DeleteStream(ctx, c.Name); err != nil {
		t.Fatal(err)
	}
	c.DenyDelete = false
	if err := js.DeleteStream(ctx, "KUJI_c_FILES_main"); err != nil {
		t.Fatal(err)
	}
	if s, err = js.CreateStream(ctx, c); err != nil {
		t.Fatal(err)
	}
	r := open(t, d, driver.Options{})
	at := driver.Cursor(0)
	for i := range 5 {
		if at, err = r.Append(ctx, at, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteMsg(ctx, 3); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range r.Read(ctx, 0, at) {
		var corrupt *driver.CorruptError
		if err != nil && (!errors.As(err, &corrupt) || corrupt.At != 3) {
			t.Fatalf("read over a hole: %v, want a CorruptError at 3", err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("read yielded %d times, want two entries and an error", n)
	}
}

// Streams that would drop messages or serve old ones are refused, and so are realms of which half
// is gone.
func TestStreamsThatCannotBeTrusted(t *testing.T) {
	ctx, d, js := oneServer(t)
	for i, c := range []natsjs.StreamConfig{
		{Discard: natsjs.DiscardOld},
		{Discard: natsjs.DiscardNew, MaxAge: time.Hour},
		{Discard: natsjs.DiscardNew, AllowDirect: true},
		{Discard: natsjs.DiscardNew, Storage: natsjs.MemoryStorage},
		{Discard: natsjs.DiscardNew, MaxMsgs: 1000},
	} {
		realm := fmt.Sprint("realm", i)
		c.Name, c.Subjects = "KUJI_c_LOG_"+realm, []string{"kuji.c.log." + realm}
		if _, err := js.CreateStream(ctx, c); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Open(ctx, realm, driver.Options{}); err == nil || !strings.Contains(err.Error(), "not set up as this driver needs it") {
			t.Errorf("a stream with %+v: error %v, want a refusal", c, err)
		}
	}

	r := open(t, d, driver.Options{})
	if _, err := r.Append(ctx, 0, []byte("first")); err != nil {
		t.Fatal(err)
	}
	r.Close()
	for _, lost := range []string{"KUJI_c_FILES_main", "KUJI_c_LOG_main"} {
		s, err := js.Stream(ctx, lost)
		if err != nil {
			t.Fatal(err)
		}
		c := s.CachedInfo().Config
		if err := js.DeleteStream(ctx, lost); err != nil {
			t.Fatal(err)
		}
		var corrupt *driver.CorruptError
		if _, err := d.Open(ctx, "main", driver.Options{}); !errors.As(err, &corrupt) {
			t.Errorf("without %s the realm opens with %v, want a CorruptError", lost, err)
		}
		if _, err := js.CreateStream(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
}

// Chunks that nobody named within a day are dropped; those of a file are kept for ever.
func TestAbandonedChunks(t *testing.T) {
	ctx, d, js := oneServer(t)
	r := open(t, d, driver.Options{})
	data := bytes.Repeat([]byte("0123456789"), 100_000)
	w, err := r.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(ctx, "file"); err != nil {
		t.Fatal(err)
	}
	files, err := js.Stream(ctx, "KUJI_c_FILES_main")
	if err != nil {
		t.Fatal(err)
	}
	subjects := func(filter string) (list []string) {
		info, err := files.Info(ctx, natsjs.WithSubjectFilter("kuji.c.file.main."+filter))
		if err != nil {
			t.Fatal(err)
		}
		for s := range info.State.Subjects {
			list = append(list, s)
		}
		slices.Sort(list)
		return list
	}
	// The file becomes one of long ago, with another upload next to it that was never named.
	old := fmt.Sprintf("%x-", time.Now().Add(-25*time.Hour).Unix())
	for _, subject := range subjects("chunk.>") {
		msg, err := files.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(subject, ".")
		for _, upload := range []string{old + "kept", old + "abandoned"} {
			parts[5] = upload
			if _, err := js.Publish(ctx, strings.Join(parts, "."), msg.Data); err != nil {
				t.Fatal(err)
			}
		}
	}
	name := subjects("name.>")[0]
	msg, err := files.GetLastMsgForSubject(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	var directory map[string]any
	if err := json.Unmarshal(msg.Data, &directory); err != nil {
		t.Fatal(err)
	}
	directory["upload"] = old + "kept"
	changed, err := json.Marshal(directory)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%08x", crc32.Checksum(changed, crc32.MakeTable(crc32.Castagnoli)))
	if _, err := js.PublishMsg(ctx, &nats.Msg{Subject: name, Data: changed, Header: nats.Header{"Kuji-Crc32c": []string{sum}}}); err != nil {
		t.Fatal(err)
	}

	r.Close()
	r = open(t, d, driver.Options{})
	if w, err = r.Create(ctx); err != nil { // it sweeps
		t.Fatal(err)
	}
	w.Abort()
	if left := subjects("chunk." + old + "abandoned.>"); len(left) > 0 {
		t.Errorf("abandoned chunks are left: %v", left)
	}
	f, err := r.OpenFile(ctx, "file")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("the file has %d bytes, error %v, want the %d that were written", len(got), err, len(data))
	}

	// A chunk that has changed is noticed.
	chunk := subjects("chunk." + old + "kept.>")[1]
	if _, err := js.Publish(ctx, chunk, []byte("changed")); err != nil {
		t.Fatal(err)
	}
	if f, err = r.OpenFile(ctx, "file"); err != nil {
		t.Fatal(err)
	}
	var corrupt *driver.CorruptError
	if _, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size())); !errors.As(err, &corrupt) {
		t.Errorf("read of a changed chunk: %v, want a CorruptError", err)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []jetstream.Options{
		{Cluster: ""},
		{Cluster: "a.b"},
		{Cluster: "c", Replicas: 2},
		{Cluster: "c", Replicas: -1},
		{Cluster: "c", Timeout: -1},
	} {
		if d, err := jetstream.Connect(t.Context(), o); err == nil {
			d.Close()
			t.Errorf("%+v was taken", o)
		}
	}
}

// TestBoard: the board is on disk: a server that comes back still has it. A stream of leases that an older
// build keeps in memory is refused, with its name and what is wrong with it.
func TestBoard(t *testing.T) {
	c := startCluster(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	connect := func(cluster string) *jetstream.Driver {
		d, err := jetstream.Connect(ctx, jetstream.Options{Connect: []nats.Option{c.servers[0].Connect()}, Cluster: cluster, Replicas: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	if err := connect("c").Update(ctx, func([]byte) ([]byte, error) { return []byte("content"), nil }); err != nil {
		t.Fatal(err)
	}
	c.restart(t, 0, func(string) {})
	var got []byte
	if err := connect("c").Update(ctx, func(old []byte) ([]byte, error) { got = bytes.Clone(old); return old, nil }); err != nil || string(got) != "content" {
		t.Errorf("after a restart the board is %q, %v, want %q", got, err, "content")
	}

	_, js := streamsOf(t, c.servers[0])
	if _, err := js.CreateStream(ctx, natsjs.StreamConfig{
		Name: "KUJI_old_LEASES", Subjects: []string{"kuji.old.lease.*"}, Storage: natsjs.MemoryStorage, Discard: natsjs.DiscardNew, MaxMsgsPerSubject: 1,
	}); err != nil {
		t.Fatal(err)
	}
	err := connect("old").Update(ctx, func([]byte) ([]byte, error) { return []byte("x"), nil })
	for _, want := range []string{"KUJI_old_LEASES", "in memory, not on disk"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("leases in memory: error %v, want one with %q", err, want)
		}
	}
}
