package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestClock: a realm whose time is not the machine's is in the metrics, the status and the log of
// the server, until an administrator sets its clock.
func TestClock(t *testing.T) {
	ahead := atomic.Int64{}
	ahead.Store(int64(20 * 24 * time.Hour))
	now := func() time.Time { return time.UnixMilli(1_800_000_000_000).Add(time.Duration(ahead.Load())) }
	var said bytes.Buffer
	f := startWith(t, kuji.Options{Sync: kuji.SyncNone, Now: now}, server.Options{Keys: keyFile(t), Logger: slog.New(slog.NewTextHandler(&said, nil))})
	c := newClient("", h1(t), f.url, withKey(adminKey))
	drift := func() string {
		t.Helper()
		_, text := get(t, h1(t), f.url+"/metrics", "Authorization", "Bearer "+readKey)
		return grep(text, "kuji_realm_clock")
	}
	status := func() *kujiv1.RealmStatus {
		t.Helper()
		st, err := c.admin.GetStatus(t.Context(), &kujiv1.GetStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return st.GetRealms()[0]
	}
	if text := drift(); !strings.Contains(text, `clock_drift_seconds{realm="default"} 0`) {
		t.Errorf("metrics: %s", text)
	}
	ahead.Store(0)
	if text := drift(); !strings.Contains(text, `clock_drift_seconds{realm="default"} -1.728e+06`) {
		t.Errorf("metrics: %s", text)
	}
	if st := status(); st.GetClockUnixMs() != now().UnixMilli() || st.GetTimeUnixMs() != now().Add(20*24*time.Hour).UnixMilli() || st.GetBackMs() != 0 {
		t.Errorf("status: %v", st)
	}
	f.server.CheckClocks()
	if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=WARN") || !strings.Contains(text, "realm=default") || !strings.Contains(text, "drift=-480h0m0s") {
		t.Errorf("the server says %q", text)
	}

	_, err := c.admin.SetClock(t.Context(), &kujiv1.SetClockRequest{TimeUnixMs: now().Add(time.Hour).UnixMilli(), Reason: "a guess"})
	d := detail(t, err)
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || d.GetReason() != kujiv1.Reason_REASON_CONFLICT || len(d.GetViolations()) != 1 || d.GetViolations()[0].GetField() != "time_unix_ms" {
		t.Errorf("a time that the machine does not show: %v, %v", err, d)
	}
	if _, err = c.admin.SetClock(t.Context(), &kujiv1.SetClockRequest{TimeUnixMs: now().UnixMilli()}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("without a reason: %v", err)
	}
	if _, err = c.admin.SetClock(t.Context(), &kujiv1.SetClockRequest{Realm: "nope", TimeUnixMs: now().UnixMilli(), Reason: "r"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("of no realm: %v", err)
	}
	set, err := c.admin.SetClock(t.Context(), &kujiv1.SetClockRequest{TimeUnixMs: now().UnixMilli(), Reason: "ntp"})
	if err != nil || set.GetToUnixMs() != now().UnixMilli() || set.GetFromUnixMs() != now().Add(20*24*time.Hour).UnixMilli() || set.GetPosition() == 0 {
		t.Fatalf("set: %v, %v", set, err)
	}
	if text := drift(); !strings.Contains(text, `clock_drift_seconds{realm="default"} 0`) || !strings.Contains(text, `clock_back_seconds{realm="default"} 1.728e+06`) {
		t.Errorf("metrics: %s", text)
	}
	if st := status(); st.GetTimeUnixMs() != now().UnixMilli() || st.GetBackMs() != (20*24*time.Hour).Milliseconds() {
		t.Errorf("status: %v", st)
	}
	if !strings.Contains(said.String(), `by=ops`) || !strings.Contains(said.String(), "reason=ntp") {
		t.Errorf("the server says %q", said.String())
	}
	said.Reset()
	f.server.CheckClocks()
	if said.Len() > 0 {
		t.Errorf("the server still says %q", said.String())
	}
}

// TestMovedClock: the clock of a server for tests goes where SetClock says, forward and back, and what is due then
// has happened when it answers. After an error it is where it was.
func TestMovedClock(t *testing.T) {
	clock := &kuji.TestClock{}
	f := startWith(t, kuji.Options{Sync: kuji.SyncNone, Now: clock.Now}, server.Options{TestClock: clock})
	applyTo(t, f, server.DefaultRealm, `{kuji: 1, items: {pass: {lasts: 30d}, gem: {kind: currency}},
pools: {shop: {limits: [{per: day, draws: 1}], entries: [{id: a, weight: 1, reward: {items: {gem: 1, pass: 1}}}]}}}`)
	c := newClient("", h1(t), f.url)
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	move := func(by time.Duration, reason string) error {
		t.Helper()
		at = at.Add(by)
		_, err := c.admin.SetClock(t.Context(), &kujiv1.SetClockRequest{TimeUnixMs: at.UnixMilli(), Reason: reason})
		return err
	}
	for _, step := range []struct {
		by     time.Duration
		status string
		holds  string
	}{
		{0, "STATUS_OK", "gem=1 pass=1"},
		{time.Hour, "STATUS_LIMIT_REACHED", "gem=1 pass=1"},
		{24 * time.Hour, "STATUS_OK", "gem=2 pass=2"},
		{-24 * time.Hour, "STATUS_LIMIT_REACHED", "gem=2 pass=2"}, // nobody gets a day twice
		{29 * 24 * time.Hour, "STATUS_OK", "gem=3 pass=2"},        // 30 days and an hour have passed: the first pass has gone
	} {
		if err := move(step.by, "a test"); err != nil {
			t.Fatal(err)
		}
		res, err := c.reward.Draw(t.Context(), &kujiv1.DrawRequest{Player: "ann", Pool: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		status := res.GetResult().GetStatus().String()
		v, err := c.reward.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		var holds []string
		for _, it := range v.GetPlayer().GetItems() {
			holds = append(holds, fmt.Sprintf("%s=%d", it.GetItem(), it.GetQuantity()))
		}
		slices.Sort(holds)
		if got := strings.Join(holds, " "); status != step.status || got != step.holds {
			t.Errorf("%v later: %v, and ann has %s; want %s and %s", step.by, status, got, step.status, step.holds)
		}
	}
	was := clock.Now()
	if err := move(time.Hour, ""); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("without a reason: %v", err)
	}
	if moved := clock.Now().Sub(was); moved > 30*time.Minute {
		t.Errorf("a refused request moved the clock by %v", moved)
	}
}
