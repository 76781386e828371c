package cli

import (
	"testing"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func exitOf(t *testing.T, err error) exitCode {
	t.Helper()
	if err == nil {
		return exitOK
	}
	return classify(t.Context(), err).Exit
}

func TestArgumentsFillTheRequest(t *testing.T) {
	const use = "transfer FROM TO ITEM=QUANTITY... --reason TEXT"
	req := &kujiv1.TransferRequest{}
	err := fill(req, use, []string{"ann", "bob", "gems=100", "ticket=1"})
	if err != nil || req.GetFrom() != "ann" || req.GetTo() != "bob" || len(req.GetItems()) != 2 || req.GetItems()[1].GetItem() != "ticket" || req.GetItems()[0].GetQuantity() != 100 {
		t.Errorf("got %v, %v", req, err)
	}
	for _, bad := range []string{"gems", "=3", "gems=", "gems=-1", "gems=1.5", "gems=99999999999999999999", "a=b=3"} {
		if err := fill(req, use, []string{"ann", "bob", bad}); exitOf(t, err) != exitUsage {
			t.Errorf("%q: %v, want a usage error", bad, err)
		}
	}
	if err := fill(&kujiv1.SetTrackRequest{}, "set PLAYER TRACK DRAWS", []string{"ann", "five-star", "-1"}); exitOf(t, err) != exitUsage {
		t.Errorf("-1 draws: %v, want a usage error", err)
	}
}
