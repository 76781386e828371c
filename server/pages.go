package server

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/proto"
)

// ConsolePath is where the pages of Options.Console are.
const ConsolePath = "/console/"

// OpenAPIPath is where the contract is, as OpenAPI.
const OpenAPIPath = "/openapi.json"

// pages are for people, and anybody may read them: what they show of a realm, they ask the API for.
type pages struct {
	console http.Handler // nil: there are none
}

// has reports whether a path is one of theirs.
func (p pages) has(path string) bool {
	return path == "/" || path == OpenAPIPath || p.console != nil && strings.HasPrefix(path+"/", ConsolePath)
}

// serve answers a GET or HEAD of such a path.
func (p pages) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == OpenAPIPath:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Access-Control-Allow-Origin", "*") // it is the same everywhere, and no secret
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(proto.OpenAPI))
	case p.console == nil:
		http.Error(w, "This is a server of Kuji. It has no pages, only its API.", http.StatusOK)
	case !strings.HasPrefix(r.URL.Path, ConsolePath):
		http.Redirect(w, r, ConsolePath, http.StatusFound)
	default:
		w.Header().Del("Cache-Control") // it has its own
		p.console.ServeHTTP(w, r)
	}
}
