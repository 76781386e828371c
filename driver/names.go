package driver

import (
	"fmt"
	"strings"
)

// Limits of names, in bytes.
const (
	MaxRealmName = 64
	MaxFileName  = 128
)

const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

// CheckRealm returns an error if name cannot be a realm's: see [Driver].
func CheckRealm(name string) error {
	if name == "" || len(name) > MaxRealmName || name[0] == '-' || name[0] == '_' || strings.Trim(name, letters+"-_") != "" {
		return fmt.Errorf("realm name %.80q: want 1 to %d of a-z, 0-9, '-' and '_', the first a letter or digit", name, MaxRealmName)
	}
	return nil
}

// CheckFile returns an error if name cannot be a file's: see [FileWriter].
func CheckFile(name string) error {
	if name == "" || len(name) > MaxFileName || name[0] == '.' || strings.Trim(name, letters+"-_.") != "" {
		return fmt.Errorf("file name %.150q: want 1 to %d of a-z, 0-9, '-', '_' and '.', the first no '.'", name, MaxFileName)
	}
	return nil
}
