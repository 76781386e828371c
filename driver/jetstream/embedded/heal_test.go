package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Only what the server says is damaged counts as damaged. A group that is merely missing may be one that a
// slow machine is still opening.
func TestOnlyDamageIsDamage(t *testing.T) {
	corrupted, full := errors.New("raft: snapshot corrupt"), errors.New("no space left on device")
	const missing, refused = "group node missing", "stream assignment error: "
	for _, test := range []struct {
		name, stream string
		logged       error // when the server started
		restarted    bool  // since then
		health       string
		damaged      bool
	}{
		{"as it started", "KUJI_c_LOG_main", corrupted, false, refused + corrupted.Error(), true},
		{"after an update", "KUJI_c_LOG_main", corrupted, false, missing, true},
		{"still being opened", "KUJI_c_LOG_main", nil, false, missing, false},
		{"opened again", "KUJI_c_LOG_main", corrupted, true, missing, false},
		{"repaired by an update", "KUJI_c_LOG_main", corrupted, false, "stream catching up", false},
		{"a full disk", "KUJI_c_LOG_main", full, false, refused + full.Error(), false},
		{"a full disk, and an update", "KUJI_c_LOG_main", full, false, missing, false},
		{"a name", "KUJI_c_LOG_corrupt", full, false, refused + full.Error(), false},
		{"a name, and an update", "KUJI_c_LOG_corrupt", full, false, missing, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &Server{said: &logger{slog: slog.New(slog.DiscardHandler)}}
			if test.logged != nil {
				s.said.Warnf("Stream create failed for '%s > %s': %v", "$G", test.stream, test.logged)
			}
			if test.restarted {
				s.said.damaged.Clear()
			}
			s.well.at, s.well.answer = time.Now().Add(time.Hour), &server.HealthStatus{Errors: []server.HealthzError{{
				Type: server.HealthzErrorStream, Account: "$G", Stream: test.stream,
				Error: fmt.Sprintf("JetStream stream '$G > %s' is not current: %s", test.stream, test.health),
			}}}
			if got := slices.Contains(s.damaged(), test.stream); got != test.damaged {
				t.Errorf("damaged: %v, want %v", got, test.damaged)
			}
		})
	}
}
