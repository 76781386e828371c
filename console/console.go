// Package console has Kuji's web pages for support staff, designers and operators. It serves only
// static files. The pages do everything through the public API, with a key that the user gives. So
// the files give nobody any rights.
//
// No answer of this package depends on a realm, a key or a request's body. The package imports nothing
// of the project but the example catalogs, which it serves as files. If a page needs something that the
// API lacks, the API gets an RPC.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/kuji-dev/kuji/examples"
)

// Path is where a server serves the console.
const Path = "/console/"

//go:embed index.html icon.svg *.css *.js pages lang vendor
var files embed.FS

// policy lets a page load what this package serves, and call the server that it comes from. Icons of
// items can be anywhere on the web. Nothing is inline, and no other page can frame these pages.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is a file as it is sent.
type file struct {
	kind    string
	tag     string
	data    []byte
	gzipped []byte // nil: it would not be smaller
}

// kinds are the types of files that are served. Licences and other notes are not.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".svg":  "image/svg+xml",
	".yaml": "application/yaml",
}

// Handler answers requests for Path and below. It takes GET and HEAD.
func Handler() http.Handler {
	h := handler{}
	h.add("", files)
	h.add("examples", examples.Files)
	return h
}

// add serves the files of from below a folder.
func (h handler) add(folder string, from embed.FS) {
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || kinds[path.Ext(name)] == "" {
			return err
		}
		data, err := from.ReadFile(name)
		if err != nil {
			return err
		}
		h[path.Join(folder, name)] = newFile(kinds[path.Ext(name)], data)
		return nil
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
}

func newFile(kind string, data []byte) *file {
	sum := sha256.Sum256(data)
	f := &file{kind: kind, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, data: data}
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write(data); err == nil && w.Close() == nil && small.Len() < len(data) {
		f.gzipped = small.Bytes()
	}
	return f
}

// handler has the files, by name below Path.
type handler map[string]*file

// ServeHTTP implements [http.Handler].
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Path)
	if name == "" {
		name = "index.html"
	}
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	f := h[name]
	if f == nil {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	// A browser asks each time whether its copy is current, so it sees an upgrade at once.
	head.Set("Cache-Control", "no-cache")
	head.Set("Vary", "Accept-Encoding")
	head.Set("ETag", f.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Type", f.kind)
	data := f.data
	if f.gzipped != nil && takesGzip(r.Header.Get("Accept-Encoding")) {
		head.Set("Content-Encoding", "gzip")
		data = f.gzipped
	}
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(data) // the client may be gone
}

// takesGzip reads the header Accept-Encoding as browsers write it.
func takesGzip(accepted string) bool {
	for part := range strings.SplitSeq(accepted, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.TrimSpace(weight) != "q=0" {
			return true
		}
	}
	return false
}
