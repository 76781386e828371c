//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestStartWithoutPasswords: the line that names the settings hides passwords.
func TestStartWithoutPasswords(t *testing.T) {
	var flags pflag.FlagSet
	flags.String("history", "", "")
	flags.StringSlice("nats", nil, "")
	for name, value := range map[string]string{
		"history": "postgres://ann:s3cret@db/kuji",
		"nats":    "nats://bob:s3cret@n1,tls://s3cret@n2",
	} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	beginLife(slog.New(slog.NewJSONHandler(&said, nil)), "data", &flags)
	for _, want := range []string{"postgres://ann:xxxxx@db/kuji", "nats://bob:xxxxx@n1", "tls://xxxxx@n2"} {
		if !strings.Contains(said.String(), want) || strings.Contains(said.String(), "s3cret") {
			t.Errorf("it says %s, want %s and no password", said.String(), want)
		}
	}
	if got, err := flags.GetStringSlice("nats"); err != nil || got[0] != "nats://bob:s3cret@n1" {
		t.Errorf("the setting itself is now %q, %v", got, err)
	}
}

// TestServerLog: the log says how a server starts, with which settings, and why it stops.
func TestServerLog(t *testing.T) {
	data := t.TempDir()
	s := serveHere(t, map[string]string{"KUJI_SYNC": "none", "KUJI_SLOW_REQUESTS": "2s"}, "--data", data, "--max-in-flight", "77")
	if code := s.stop(); code != exitOK {
		t.Fatalf("exit code %d: %v", code, s.log)
	}
	var said []string
	for line := range strings.Lines(s.log.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		said = append(said, one["msg"].(string))
		switch one["msg"] {
		case "starting":
			settings := one["settings"].(map[string]any)
			if one["version"] != version() || one["data"] != data || settings["sync"] != "none" || settings["slow-requests"] != "2s" || settings["max-in-flight"] != "77" {
				t.Errorf("starting: %v", one)
			}
		case "realms are open":
			if one["number"] != 1.0 || one["realms"].([]any)[0] != "default" {
				t.Errorf("realms: %v", one)
			}
		case "serving":
			if one["address"] != s.ready.Address || one["start_seconds"].(float64) <= 0 {
				t.Errorf("serving: %v", one)
			}
		case "stopping", "stopped":
			if one["why"] != "standard input has ended" || one["msg"] == "stopped" && one["stop_seconds"].(float64) <= 0 {
				t.Errorf("the end: %v", one)
			}
		}
	}
	if got := strings.Join(said, ", "); got != "starting, realms are open, serving, stopping, stopped" {
		t.Errorf("the log says %s", got)
	}
}

// TestLogFlags: level and format are what the flags say, whatever the format of results.
func TestLogFlags(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--log-format json", `"level":"INFO","msg":"starting"`},
		{"--log-format text", "level=INFO msg=starting"},
		{"--log-level warn", ""},
		{"--log-level error", ""},
	} {
		s := serveHere(t, nil, append(strings.Fields(tt.args), "--data", t.TempDir())...)
		if code := s.stop(); code != exitOK {
			t.Errorf("%s: exit code %d", tt.args, code)
		}
		if got := s.log.String(); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: the log is %q, want %q", tt.args, got, tt.want)
		}
	}
	for _, args := range []string{"--log-format xml", "--log-level loud", "--slow-requests -1s", "--access-log /nonexistent/x", "--otlp-endpoint localhost:4318",
		"--otlp-endpoint ftp://localhost/?key=s3cret", "--otlp-endpoint http://localhost:4318/?key=s3cret", "--otlp-endpoint http://s3cret@localhost:4318"} {
		var said bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &said, stderr: &said, getenv: func(string) string { return "" }}
		if code := a.run(t.Context(), append(strings.Fields("serve --listen 127.0.0.1:0 --data "+t.TempDir()), strings.Fields(args)...)); code != exitUsage || !strings.Contains(said.String(), strings.Fields(args)[0]) || strings.Contains(said.String(), "s3cret") {
			t.Errorf("%s: exit code %d: %s", args, code, said.String())
		}
	}
}

// TestAccessLogFile: each call has a line in the file; SIGHUP goes on with a new one after it was moved.
func TestAccessLogFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "access.log")
	l := &logFlags{access: name}
	_, reopen, closeLog, err := l.openAccess(&app{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &logFile{name: filepath.Join(dir, "file")}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(text string) {
		t.Helper()
		_, err := f.Write([]byte(text))
		must(err)
	}
	must(f.reopen())
	put("one\n")
	must(os.Rename(f.name, f.name+".1"))
	put("two\n")
	must(f.reopen())
	put("three\n")
	must(f.close())
	for name, want := range map[string]string{f.name + ".1": "one\ntwo\n", f.name: "three\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	must(os.Rename(name, name+".1"))
	must(reopen())
	must(closeLog())
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the access log: %v, %v; want one that only its owner reads", info, err)
	}
}

// TestAccessLogOnStdout: with "-", calls follow the line that says ready.
func TestAccessLogOnStdout(t *testing.T) {
	s := serveHere(t, nil, "--data", t.TempDir(), "--access-log", "-")
	if code := s.post(t, "/kuji.v1.AdminService/ListRealms", "{}"); code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	line, err := s.out.ReadBytes('\n')
	var one struct {
		Time   time.Time
		Method string
	}
	if err != nil || json.Unmarshal(line, &one) != nil || one.Method != "kuji.v1.AdminService/ListRealms" || one.Time.IsZero() {
		t.Errorf("%s, %v", line, err)
	}
}
