package cli

import (
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionJSON struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (b versionJSON) String() string { return "kuji " + b.Version + ", " + b.Go + ", " + b.Platform }

func thisBuild() versionJSON {
	return versionJSON{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
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

// version is what the Go tool stamped into the binary: a module version, or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
