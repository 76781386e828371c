package cli

import "testing"

func exitOf(t *testing.T, err error) exitCode {
	t.Helper()
	if err == nil {
		return exitOK
	}
	return classify(t.Context(), err).Exit
}

func TestParseItems(t *testing.T) {
	got, err := parseItems([]string{"gems=100", "a=b=3"})
	if err == nil {
		t.Errorf("got %v, want an error for the second", got)
	}
	got, err = parseItems([]string{"gems=100", "ticket=1"})
	if err != nil || len(got) != 2 || got[0].GetItem() != "gems" || got[0].GetQuantity() != 100 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"gems", "=3", "gems=", "gems=-1", "gems=1.5", "gems=99999999999999999999"} {
		if _, err := parseItems([]string{bad}); exitOf(t, err) != exitUsage {
			t.Errorf("%q: %v, want a usage error", bad, err)
		}
	}
}
