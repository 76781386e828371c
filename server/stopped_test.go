package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// locked is a log that a test reads while others write it.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestStoppedRealm: when a realm has stopped, clients learn that and its name, and read what is
// durable. Files, and what the system said of them, are in the server's log only.
func TestStoppedRealm(t *testing.T) {
	dir := t.TempDir()
	engine, err := kuji.Open(dir, kuji.Options{SegmentSize: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close() // which says that the realm had stopped
	realm, err := engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(testCatalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	log := &locked{}
	f := startEngine(t, engine, server.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	all := clients(t, f.url)
	draw := func(c client, player string) error {
		_, err := c.reward.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: player, Player: player, Pool: "free"})
		return err
	}
	if err := draw(all[0], "ann"); err != nil {
		t.Fatal(err)
	}
	logs := filepath.Join(dir, "realms", server.DefaultRealm, "log") // where the next segment cannot be made
	if err := os.Rename(logs, logs+"2"); err != nil {
		t.Fatal(err)
	}
	last, failed := "", error(nil)
	for i := 0; failed == nil; i++ {
		last = fmt.Sprintf("p%d", i)
		failed = draw(all[0], last)
	}
	if detail(t, failed).GetReason() != kujiv1.Reason_REASON_UNKNOWN_OUTCOME {
		t.Errorf("the draw that was not written: %v", failed)
	}
	errs := []error{failed}
	for _, c := range all {
		err := draw(c, "eve")
		if connect.CodeOf(err) != connect.CodeUnavailable || detail(t, err).GetReason() != kujiv1.Reason_REASON_FAILED {
			t.Errorf("%s: a draw: %v", c.name, err)
		}
		errs = append(errs, err)
		_, err = c.reward.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: last})
		if connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("%s: a player whose only change is not durable: %v", c.name, err)
		}
		errs = append(errs, err)
		if _, err := c.reward.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: "ann"}); err != nil {
			t.Errorf("%s: a player who is durable: %v", c.name, err)
		}
		_, err = c.admin.ApplyCatalog(t.Context(), &kujiv1.ApplyCatalogRequest{Yaml: []byte(testCatalog + "\n")})
		errs = append(errs, err)
	}
	st, err := all[0].admin.GetStatus(t.Context(), &kujiv1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	said := []string{st.GetRealms()[0].GetError()}
	for _, err := range errs {
		if err == nil {
			t.Error("carried out in a realm that has stopped")
			continue
		}
		said = append(said, err.Error(), detail(t, err).String())
	}
	for i, text := range said {
		if strings.Contains(text, dir) || strings.Contains(text, ".wal") || strings.Contains(text, syscall.ENOENT.Error()) {
			t.Errorf("clients are told %q", text)
		}
		if i%2 == 1 && !strings.Contains(text, `"default"`) {
			t.Errorf("%q does not name the realm", text)
		}
	}
	if !strings.Contains(log.String(), dir) || !strings.Contains(log.String(), syscall.ENOENT.Error()) {
		t.Errorf("the log does not say which file failed: %s", log)
	}
}
