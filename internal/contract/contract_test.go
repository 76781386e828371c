package contract_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func TestPlain(t *testing.T) {
	result := &kujiv1.Result{
		Status: kujiv1.Status_STATUS_SOLD_OUT, Subject: `a "pool"`,
		Outcomes: []*kujiv1.Outcome{{Entry: "hat", Items: []*kujiv1.Stack{{Item: "hat", Quantity: 1}, {Item: "gem", Quantity: 1 << 60}}}},
		Limit:    &kujiv1.Limit{Per: kujiv1.LimitPeriod_LIMIT_PERIOD_DAY, Draws: 3, ResetsUnixMs: 1_795_258_800_000},
		Receipt:  &kujiv1.Receipt{Realm: "default", Position: 7, TimeUnixMs: 1, Commitment: []byte{0xab, 0x01}},
	}
	for _, c := range []struct {
		name string
		form contract.Form
		m    proto.Message
		want string
	}{
		{"bare", contract.Form{}, result,
			`{"status":"sold_out","subject":"a \"pool\"","outcomes":[{"entry":"hat","items":[{"item":"hat","quantity":1},{"item":"gem","quantity":1152921504606846976}]}],` +
				`"receipt":{"realm":"default","position":7,"time_unix_ms":1,"commitment":"ab01"},"limit":{"per":"day","draws":3,"resets_unix_ms":1795258800000}}`},
		{"stacks", contract.Form{Stacks: true}, result,
			`{"status":"sold_out","subject":"a \"pool\"","outcomes":[{"entry":"hat","items":{"hat":1,"gem":1152921504606846976}}],` +
				`"receipt":{"realm":"default","position":7,"time_unix_ms":1,"commitment":"ab01"},"limit":{"per":"day","draws":3,"resets_unix_ms":1795258800000}}`},
		{"nothing", contract.Form{}, &kujiv1.Result{}, `{}`},
		{"odds", contract.Form{}, &kujiv1.Fraction{Value: 0.25, Exact: "1/4"}, `{"exact":"1/4","value":0.25}`},
	} {
		if got := string(c.form.AppendJSON(nil, c.m)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestWord(t *testing.T) {
	if got := contract.Word(kujiv1.PoolMode_POOL_MODE_RAFFLE); got != "raffle" {
		t.Errorf("got %q, want raffle", got)
	}
	if got := contract.Word(kujiv1.Status(99)); got != "" {
		t.Errorf("a number without a name is %q, want nothing", got)
	}
}

// TestStandard compares the standard mapping with what docs/reference/api.md says of it.
func TestStandard(t *testing.T) {
	var m kujiv1.Receipt
	if err := contract.ReadJSON([]byte(`{"timeUnixMs":"5","catalog_version":3}`), &m); err != nil || m.GetTimeUnixMs() != 5 || m.GetCatalogVersion() != 3 {
		t.Errorf("got %v, error %v", &m, err)
	}
	if err := contract.ReadJSON([]byte(`{"tmie":1}`), &m); err == nil {
		t.Error("a field that is not in the contract is no error")
	}
	data, err := contract.AppendJSON([]byte("x"), &kujiv1.Receipt{Epoch: 9})
	if err != nil || string(data) != `x{"epoch":"9"}` {
		t.Errorf("got %s, error %v", data, err)
	}
}
