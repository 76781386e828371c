package cli

import (
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
)

// versionJSON is what a binary says of itself. Everything in it was stamped by the Go tool, nothing by hand.
type versionJSON struct {
	Version   string `json:"version"`             // v1.2.3, a pseudo-version, or one of the two below
	Commit    string `json:"commit,omitempty"`    // of the checkout it was built from
	Committed string `json:"committed,omitempty"` // when, RFC 3339
	Modified  bool   `json:"modified,omitempty"`  // the checkout had changes that no commit has
	Go        string `json:"go"`
	Platform  string `json:"platform"`
}

func (b versionJSON) String() string { return "kuji " + b.Version + ", " + b.Go + ", " + b.Platform }

func thisBuild() versionJSON {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

// buildOf says which build these stamps are of. The version is
//
//   - that of the module, for go install MODULE@VERSION,
//   - the tag of the commit, or a pseudo-version with its time and hash if it has none, for a build from
//     a checkout, with "+dirty" if files differ from the commit,
//   - "(devel)" for a build from files without git, or with -buildvcs=false,
//   - "(unknown)" for one without any stamp.
func buildOf(info *debug.BuildInfo) versionJSON {
	b := versionJSON{Version: info.Main.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version == "" {
		b.Version = "(unknown)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Committed = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// date is the day of the commit, the zero time if no stamp says it.
func (b versionJSON) date() time.Time {
	t, err := time.Parse(time.RFC3339, b.Committed)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			out := thisBuild()
			return a.print(out, func(w io.Writer) { fprintf(w, "kuji %s %s %s\n", out.Version, out.Go, out.Platform) })
		},
	}
}

// version is what the Go tool stamped into the binary: see buildOf.
func version() string { return thisBuild().Version }
