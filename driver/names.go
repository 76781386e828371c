package driver

import "fmt"

// Limits of names, in bytes.
const (
	MaxRealmName = 64
	MaxFileName  = 128
)

// CheckRealm returns an error if name cannot be a realm's: see [Driver].
func CheckRealm(name string) error {
	if name == "" || len(name) > MaxRealmName || name[0] == '-' || name[0] == '_' || !made(name, "-_") {
		return fmt.Errorf("realm name %.80q: want 1 to %d of a-z, 0-9, '-' and '_', the first a letter or digit", name, MaxRealmName)
	}
	return nil
}

// CheckFile returns an error if name cannot be a file's: see [FileWriter].
func CheckFile(name string) error {
	if name == "" || len(name) > MaxFileName || name[0] == '.' || !made(name, "-_.") {
		return fmt.Errorf("file name %.150q: want 1 to %d of a-z, 0-9, '-', '_' and '.', the first no '.'", name, MaxFileName)
	}
	return nil
}

// made reports whether s is made of a-z, 0-9 and what else may be in it.
func made(s, others string) bool {
	for i := range len(s) {
		c := s[i]
		ok := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		for j := range len(others) {
			ok = ok || c == others[j]
		}
		if !ok {
			return false
		}
	}
	return true
}
