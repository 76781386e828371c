package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type catalogJSON struct {
	File     string             `json:"file"`
	Valid    bool               `json:"valid"`
	Name     string             `json:"name,omitempty"`
	Hash     string             `json:"hash,omitempty"` // hexadecimal, as the log has it
	Items    int                `json:"items"`
	Pools    int                `json:"pools"`
	Entries  int                `json:"entries"`
	Problems []catalogErrorJSON `json:"problems,omitempty"`
}

type catalogErrorJSON struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

func (a *app) catalogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "catalog",
		Short:   "Check and export catalogs, and print their schema for editors",
		GroupID: "offline",
		Args:    cobra.NoArgs,
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "check FILE",
		Short: "Check a catalog; report every error with line, column and what was expected",
		Example: `  kuji catalog check catalog.yaml
  cat catalog.yaml | kuji catalog check -`,
		Args: exactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error { return a.checkCatalog(args[0]) },
	}, &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of catalogs, for editors",
		Example: `  kuji catalog schema > catalog.schema.json

  and as first line of a catalog, for editors that use yaml-language-server:
  # yaml-language-server: $schema=catalog.schema.json`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error { return a.write(catalog.Schema()) },
	}, a.exportCommand())
	return cmd
}

func (a *app) exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the catalog in force as YAML",
		Long: `Export prints the catalog in force in a realm as YAML. The layout is new and the
comments are gone, but it is the same catalog with the same hash. If you apply it,
nothing changes.`,
		Example: "  kuji catalog export --realm summer > summer.yaml",
		Args:    exactArgs(),
	}
	conn := a.connection(cmd.Flags())
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		resp, err := call(cmd.Context(), c, "", c.rewards.ExportCatalog, &kujiv1.ExportCatalogRequest{Realm: c.realm})
		if err != nil {
			return err
		}
		if a.json {
			return a.writeJSON(exportJSON{resp.GetVersion(), hex.EncodeToString(resp.GetHash()), string(resp.GetYaml())})
		}
		return a.write(resp.GetYaml())
	})
	return cmd
}

type exportJSON struct {
	Version uint64 `json:"version"`
	Hash    string `json:"hash"` // hexadecimal
	YAML    string `json:"yaml"`
}

func (a *app) checkCatalog(file string) error {
	c, err := a.loadCatalog(file)
	out := catalogJSON{File: file, Valid: err == nil}
	var problems *catalog.Errors
	switch {
	case errors.As(err, &problems):
		for _, p := range problems.List {
			out.Problems = append(out.Problems, catalogErrorJSON{p.Line, p.Column, p.Path, p.Message})
		}
		if a.json {
			if werr := a.writeJSON(out); werr != nil {
				return werr
			}
		}
		return err
	case err != nil:
		return err
	}
	hash := c.Hash()
	out.Name, out.Hash, out.Items, out.Pools = c.Name, hex.EncodeToString(hash[:]), len(c.Items), len(c.Pools)
	for _, p := range c.Pools {
		out.Entries += len(p.Entries)
	}
	return a.print(out, func(w io.Writer) {
		fprintf(w, "%s: good: %d items, %d pools, %d entries\n", file, out.Items, out.Pools, out.Entries)
	})
}

// loadCatalog reads and checks a catalog.
func (a *app) loadCatalog(file string) (*catalog.Catalog, error) {
	yaml, err := a.readFile(file, catalog.MaxBytes)
	if err != nil {
		return nil, err
	}
	return parseCatalog(file, yaml)
}

// parseCatalog checks a catalog; each line of its error begins with the file's
// name, so that editors and terminals can jump to the place.
func parseCatalog(file string, yaml []byte) (*catalog.Catalog, error) {
	c, err := catalog.Parse(yaml)
	if err != nil {
		return nil, catalogError{file, err}
	}
	return c, nil
}

// catalogError is a usage error that needs no hint at --help.
type catalogError struct {
	file string
	err  error
}

func (e catalogError) Unwrap() error { return e.err }
func (e catalogError) Error() string {
	lines := strings.Split(e.err.Error(), "\n")
	for i := range lines {
		lines[i] = e.file + ":" + strings.TrimPrefix(lines[i], "catalog: ")
	}
	return "bad catalog\n" + strings.Join(lines, "\n")
}

// placedError is the server's error about a catalog, in the form that
// loadCatalog gives it.
type placedError struct {
	file string
	err  *connect.Error
}

func (e placedError) Unwrap() error { return e.err }
func (e placedError) Error() string {
	text := "bad catalog"
	for _, v := range errorDetail(e.err).GetViolations() {
		text += "\n" + (&catalog.Error{
			Line: int(v.GetLine()), Column: int(v.GetColumn()), Path: v.GetField(), Message: v.GetDescription(),
		}).Error()
	}
	return strings.ReplaceAll(text, "\n", "\n"+e.file+":")
}

// placed turns a server's error about places in a catalog into one about places
// in its file.
func placed(file string, err error) error {
	rpc, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	for _, v := range errorDetail(rpc).GetViolations() {
		if v.GetLine() > 0 {
			return placedError{file, rpc}
		}
	}
	return err
}

// needsSubcommand is the action of a command that only groups others.
func needsSubcommand(cmd *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return usageError{fmt.Errorf("missing command after %q: expected %s", cmd.CommandPath(), strings.Join(names, ", "))}
}
