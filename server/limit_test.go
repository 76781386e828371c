package server_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestLimitViews: players, pools and results say the same of a limit, in every protocol.
func TestLimitViews(t *testing.T) {
	ctx := t.Context()
	f := start(t, server.Options{})
	once := func(left uint64) *kujiv1.Limit {
		return &kujiv1.Limit{Per: kujiv1.LimitPeriod_LIMIT_PERIOD_FOREVER, Draws: 1, Left: left}
	}
	for _, c := range clients(t, f.url) {
		player := "player of " + c.name
		pool := func(want *kujiv1.Limit) {
			t.Helper()
			got, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "once", Player: player})
			if err != nil || len(got.GetPlayerLimits()) != 1 || !proto.Equal(got.GetPlayerLimits()[0], want) {
				t.Errorf("%s: %v, %v, want %v", c.name, got.GetPlayerLimits(), err, want)
			}
		}
		draw := func() *kujiv1.Result {
			t.Helper()
			got, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{Player: player, Pool: "once"})
			if err != nil {
				t.Fatal(err)
			}
			return got.GetResult()
		}
		pool(once(1))
		draw()
		pool(once(0))
		if got := draw().GetLimit(); !proto.Equal(got, once(0)) {
			t.Errorf("%s: refused with %v, want %v", c.name, got, once(0))
		}
		got, err := c.reward.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: player})
		want := once(0)
		want.Pool = "once"
		if err != nil || len(got.GetPlayer().GetLimits()) != 1 || !proto.Equal(got.GetPlayer().GetLimits()[0], want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, want)
		}
		if got, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "once"}); err != nil || got.GetPlayerLimits() != nil {
			t.Errorf("%s: limits of nobody: %v, %v", c.name, got, err)
		}
	}
}
