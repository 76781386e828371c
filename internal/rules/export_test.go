package rules

// OfRealm is for tests.
var OfRealm = ofRealm

// Printable is for tests.
var Printable = printable

// OddsWithin computes odds with a smaller budget than that of all odds, and returns what they took of it.
func (s *Standing) OddsWithin(budget int) (took int, err error) {
	left := budget
	_, err = s.odds(&left, func() bool { return true })
	return budget - left, err
}
