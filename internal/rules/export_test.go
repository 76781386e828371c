package rules

// OfRealm is for tests.
var OfRealm = ofRealm

// Printable is for tests.
var Printable = printable
