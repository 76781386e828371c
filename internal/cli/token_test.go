package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestSigningKeyStaysSecret: no command prints a private key, and only its owner can read its file.
func TestSigningKeyStaysSecret(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "players.jwk")
	var printed bytes.Buffer
	run := func(want int, args ...string) {
		t.Helper()
		a := &app{stdin: strings.NewReader(""), stdout: &printed, stderr: &printed, getenv: os.Getenv, now: time.Now}
		if got := int(a.run(t.Context(), args)); got != want {
			t.Fatalf("kuji %v ends with %d, want %d:\n%s", args, got, want, printed.Bytes())
		}
	}
	run(0, "keys", "issuer", "players", "--out", dir)
	for _, more := range [][]string{nil, {"--json"}} {
		run(3, append([]string{"keys", "issuer", "players", "--out", dir}, more...)...)
		run(0, append([]string{"keys", "token", "ann", "--signing-key", file}, more...)...)
		run(2, append([]string{"keys", "token", "ann", "--for", "1000h", "--signing-key", file}, more...)...)
		run(0, append([]string{"keys", "issuer", "more" + strings.Join(more, ""), "--out", dir}, more...)...)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.jwk")
	for _, spoiled := range []string{
		strings.Replace(string(data), "OKP", "EC", 1), strings.Replace(string(data), "{", "", 1), strings.Replace(string(data), `"d": "`, `"d": "_`, 1),
	} {
		if err := os.WriteFile(bad, []byte(spoiled), 0o600); err != nil {
			t.Fatal(err)
		}
		run(2, "keys", "token", "ann", "--signing-key", bad)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jwk"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		var key struct{ D string }
		if data, err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(data, &key) == nil && key.D != "" && strings.Contains(printed.String(), strings.Trim(key.D, "_")) {
			t.Errorf("the private key of %s is printed", name)
		}
		if info, err := os.Stat(name); err != nil {
			t.Error(err)
		} else if mode := info.Mode().Perm(); mode != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("%s has mode %v, want 0600", name, mode)
		}
	}
}
