package demo

import (
	"errors"
	"testing"
)

func TestAddBoundsErrors(t *testing.T) {
	d := &demo{report: &Report{}}
	d.add("stock", "", make7Errors()...)
	if got := d.report.Checks[0].Errors; len(got) != maxReported+1 || got[maxReported] != "and 2 more" {
		t.Errorf("reported %q", got)
	}
}

func make7Errors() []error {
	errs := make([]error, 7)
	for i := range errs {
		errs[i] = errors.New("wrong")
	}
	return errs
}
