// Package enginetest holds the tests that see the engine as those who embed it do: by the exported
// names of package kuji alone. Only tests live here.
package enginetest
