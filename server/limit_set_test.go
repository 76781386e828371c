package server_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestSetLimit: SetLimit works alone and in a batch, by each protocol, once for each request id. What is
// out of range, or without a reason, is refused and sets nothing.
func TestSetLimit(t *testing.T) {
	f := start(t, server.Options{})
	const forever = kujiv1.LimitPeriod_LIMIT_PERIOD_FOREVER
	for _, c := range clients(t, f.url) {
		player := "player of " + c.name
		may := func(want kujiv1.Status) {
			t.Helper()
			if resp, err := c.reward.Draw(t.Context(), &kujiv1.DrawRequest{Player: player, Pool: "once"}); err != nil || resp.GetResult().GetStatus() != want {
				t.Errorf("%s: a draw is %v, %v, want %v", c.name, resp, err, want)
			}
		}
		alone := func(req *kujiv1.SetLimitRequest) (*kujiv1.Result, error) {
			req.Player, req.Pool = player, "once"
			resp, err := c.admin.SetLimit(t.Context(), req)
			return resp.GetResult(), err
		}
		batch := func(cmd *kujiv1.Command) *kujiv1.BatchResult {
			t.Helper()
			resp, err := c.reward.Batch(t.Context(), &kujiv1.BatchRequest{Commands: []*kujiv1.Command{cmd}})
			if err != nil {
				t.Fatal(err)
			}
			return resp.GetResults()[0]
		}
		in := func(used uint64) *kujiv1.Command_SetLimit {
			return &kujiv1.Command_SetLimit{SetLimit: &kujiv1.SetLimit{Player: player, Pool: "once", Per: forever, Used: used}}
		}
		may(kujiv1.Status_STATUS_OK)
		may(kujiv1.Status_STATUS_LIMIT_REACHED)
		for again := range 2 {
			res, err := alone(&kujiv1.SetLimitRequest{RequestId: "alone " + c.name, Per: forever, Reason: "sorry", Metadata: "ticket"})
			if err != nil || res.GetStatus() != kujiv1.Status_STATUS_OK || res.GetReplayed() != (again == 1) {
				t.Errorf("%s: %v, %v", c.name, res, err)
			}
		}
		may(kujiv1.Status_STATUS_OK)
		// The same request id in a batch is the same request.
		if res := batch(&kujiv1.Command{RequestId: "alone " + c.name, Command: in(0), Reason: "sorry", Metadata: "ticket"}); !res.GetReplayed() {
			t.Errorf("%s: again in a batch: %v", c.name, res)
		}
		may(kujiv1.Status_STATUS_LIMIT_REACHED)
		if res := batch(&kujiv1.Command{Command: in(0)}); res.GetStatus() != kujiv1.Status_STATUS_REFUSED || !strings.Contains(res.GetError().String(), "reason") {
			t.Errorf("%s: a batch without a reason: %v", c.name, res)
		}
		may(kujiv1.Status_STATUS_LIMIT_REACHED)
		if res := batch(&kujiv1.Command{Command: in(0), Reason: "sorry"}); res.GetStatus() != kujiv1.Status_STATUS_OK {
			t.Errorf("%s: in a batch: %v", c.name, res)
		}
		may(kujiv1.Status_STATUS_OK)
		for field, req := range map[string]*kujiv1.SetLimitRequest{
			"reason": {Per: forever}, "per": {Reason: "x"}, "window_ms": {Per: forever, WindowMs: 1, Reason: "x"},
			"used": {Per: forever, Used: 1 << 53, Reason: "x"},
		} {
			if _, err := alone(req); connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %v: %v", c.name, req, err)
			}
		}
		for _, per := range []kujiv1.LimitPeriod{257, 1 << 30, -255} { // not taken for 1
			if _, err := alone(&kujiv1.SetLimitRequest{Per: per, Reason: "x"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("%s: a limit per %d: %v", c.name, per, err)
			}
		}
		may(kujiv1.Status_STATUS_LIMIT_REACHED)
	}
}
