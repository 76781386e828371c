package rules

// OfRealm is for tests.
var OfRealm = ofRealm
