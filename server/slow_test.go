package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// TestListSlow: a call is remembered with its key, realm and outcome.
func TestListSlow(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t)})
	reward := kujiv1connect.NewRewardServiceClient(direct{f.server}, "http://localhost", withKey(writeKey))
	if _, err := reward.Draw(t.Context(), &kujiv1.DrawRequest{Player: "ann", Pool: "nothing"}); err == nil {
		t.Fatal("a draw from no pool")
	}
	admin := kujiv1connect.NewAdminServiceClient(direct{f.server}, "http://localhost", withKey(readKey))
	res, err := admin.ListSlow(t.Context(), &kujiv1.ListSlowRequest{})
	if err != nil || len(res.GetCalls()) != 1 {
		t.Fatalf("%v, %v", res, err)
	}
	got := res.GetCalls()[0]
	if got.GetMethod() != kujiv1connect.RewardServiceDrawProcedure[1:] || got.GetKey() != "game-server-1" || got.GetRealm() != "default" ||
		got.GetCode() != "not_found" || got.GetRequestBytes() == 0 || got.GetTimeUnixMs() == 0 {
		t.Errorf("%v", got)
	}
}

// TestSlowest compares the calls that are remembered with a list of all, sorted.
func TestSlowest(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	s := server.NewSlowest()
	took := func(i int) time.Duration { return time.Duration(1+i*7919%1000) * time.Millisecond } // in no order
	var all []int64
	for i := range 1000 {
		s.Note(fmt.Sprint(i), start.Add(time.Duration(i)*time.Millisecond), took(i))
		all = append(all, took(i).Microseconds())
	}
	slices.Sort(all)
	slices.Reverse(all)
	of := func(calls []*kujiv1.SlowCall) (us []int64) {
		for _, c := range calls {
			us = append(us, c.GetTookUs())
		}
		return us
	}
	if got := of(s.List(start.Add(time.Minute))); !slices.Equal(got, all[:100]) {
		t.Errorf("%v, want %v", got, all[:100])
	}
	s.Note("later", start.Add(11*time.Minute), time.Microsecond)
	if got := of(s.List(start.Add(11 * time.Minute))); !slices.Equal(got, all[:100]) {
		t.Errorf("after 11 minutes: %v", got)
	}
	if got := of(s.List(start.Add(22 * time.Minute))); !slices.Equal(got, []int64{1}) {
		t.Errorf("after 22 minutes: %v, want the later one", got)
	}
	if got := of(s.List(start.Add(time.Hour))); len(got) != 0 {
		t.Errorf("after an hour: %v", got)
	}
}

// TestListSlowOfAnything: what a caller writes as a realm is cut, and what remains can be sent. One caller
// with a long name cannot hide all slow calls.
func TestListSlowOfAnything(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t)})
	reward := kujiv1connect.NewRewardServiceClient(direct{f.server}, "http://localhost", withKey(writeKey))
	if _, err := reward.Draw(t.Context(), &kujiv1.DrawRequest{Realm: "a" + strings.Repeat("籤", 200), Player: "ann", Pool: "splash"}); err == nil {
		t.Fatal("a draw in no realm")
	}
	admin := kujiv1connect.NewAdminServiceClient(direct{f.server}, "http://localhost", withKey(readKey))
	res, err := admin.ListSlow(t.Context(), &kujiv1.ListSlowRequest{})
	if err != nil || len(res.GetCalls()) != 1 || len(res.GetCalls()[0].GetRealm()) > 310 {
		t.Fatalf("%v, %v", res, err)
	}
}
