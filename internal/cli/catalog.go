package cli

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/client"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type catalogJSON struct {
	File     string  `json:"file"`
	Valid    bool    `json:"valid"`
	Name     string  `json:"name,omitempty"`
	Hash     string  `json:"hash,omitempty"` // hexadecimal, as the log has it
	Items    int     `json:"items"`
	Pools    int     `json:"pools"`
	Entries  int     `json:"entries"`
	Problems []plain `json:"problems,omitempty"` // violations
	Warnings []plain `json:"warnings,omitempty"` // changes, of which id, entry and warning are said
}

func catalogCommand(a *app) *cobra.Command {
	schema := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of catalogs, for editors",
		RunE: func(*cobra.Command, []string) error {
			_, err := output{a}.Write(catalog.Schema())
			return err
		},
	}
	return group("catalog", "Check, compare and propose catalogs, list and print those of a realm",
		append(proposalCommands(a), checkCommand(a), listCatalogsCommand(a), showCatalogCommand(a), namesCommand(a), diffCommand(a), schema, exportCommand(a))...)
}

// checkCommand is the command that judges a catalog as a server would.
func checkCommand(a *app) *cobra.Command {
	var against string
	var yes bool
	cmd := &cobra.Command{Use: "check FILE", Short: "Check a catalog as a server would, without one"}
	conn := a.connection(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&against, "against", "", "`URL` of a server: judge the catalog as a change of its --realm")
	flags.BoolVarP(&yes, "yes", "y", false, "end with 0 despite warnings")
	flags.Lookup("server").Hidden = true // it is --against here
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		yaml, err := a.readFile(args[0], catalog.MaxBytes)
		if err != nil {
			return err
		}
		c, err := parseCatalog(args[0], yaml)
		if err != nil || against == "" {
			return checkCatalog(cmd.Context(), a, args[0], c, err, yes)
		}
		if err := flags.Set("server", against); err != nil {
			return err
		}
		return checkAgainst(cmd.Context(), a, conn, args[0], yaml, yes)
	}
	return cmd
}

// checkAgainst judges a catalog as a change of a server's realm.
func checkAgainst(ctx context.Context, a *app, conn *connection, file string, yaml []byte, yes bool) error {
	c, err := conn.dial()
	if err != nil {
		return err
	}
	resp, err := c.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: c.realm, Yaml: yaml, DryRun: true})
	if err != nil {
		return placed(file, err)
	}
	return cmp.Or(a.print(resp, func(w io.Writer) { printPlan(w, resp) }), secondLook(file, countWarnings(resp.GetPlan()), yes))
}

// secondLook refuses a catalog with warnings.
func secondLook(file string, warnings int, yes bool) error {
	if warnings == 0 || yes {
		return nil
	}
	return refusedError{fmt.Sprintf("%s: %d of the changes deserve a second look. \"kuji apply\" makes them only with --yes, \"kuji serve\" with --accept-warnings", file, warnings)}
}

func exportCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "export", Short: "Print the catalog in force as YAML"}
	return a.online(cmd, func(ctx context.Context, c *api, _ []string) error { return exportCatalog(ctx, a, c, 0) })
}

// exportCatalog prints a version of the catalog, or, for 0, the one in force.
func exportCatalog(ctx context.Context, a *app, c *api, version uint64) error {
	resp, err := c.ExportCatalog(ctx, &kujiv1.ExportCatalogRequest{Realm: c.realm, Version: version})
	if err != nil {
		return err
	}
	if a.json {
		return encodeJSON(output{a}, exportJSON{resp.GetVersion(), hex.EncodeToString(resp.GetHash()), string(resp.GetYaml())})
	}
	_, err = output{a}.Write(resp.GetYaml())
	return err
}

type exportJSON struct {
	Version uint64 `json:"version"`
	Hash    string `json:"hash"` // hexadecimal
	YAML    string `json:"yaml"`
}

// checkCatalog says what is wrong with a catalog, read with err, or what deserves a second look.
func checkCatalog(ctx context.Context, a *app, file string, c *catalog.Catalog, err error, yes bool) error {
	out := catalogJSON{File: file, Valid: err == nil}
	if problems, ok := errors.AsType[*catalog.Errors](err); ok && a.json {
		for _, p := range problems.List {
			out.Problems = append(out.Problems, plain{Message: &kujiv1.Violation{
				Field: p.Path, Description: p.Message, Line: uint32(p.Line), Column: uint32(p.Column)}})
		}
		return cmp.Or(encodeJSON(output{a}, out), err)
	}
	if err != nil {
		return err
	}
	plan, err := planOver(ctx, a.now, nil, c)
	if err != nil {
		return err
	}
	hash := c.Hash()
	out.Name, out.Hash, out.Items, out.Pools = c.Name, hex.EncodeToString(hash[:]), len(c.Items), len(c.Pools)
	for _, p := range c.Pools {
		out.Entries += len(p.Entries)
	}
	changes := planMessage(&plan)
	for _, c := range changes.GetChanges() {
		if c.GetWarning() != "" {
			out.Warnings = append(out.Warnings, plain{Message: &kujiv1.Change{Id: c.GetId(), Entry: c.GetEntry(), Warning: c.GetWarning()}})
		}
	}
	verdict := choose(len(out.Warnings) > 0, "can be read", "good")
	return cmp.Or(a.print(out, func(w io.Writer) {
		fprintf(w, "%s: %s: %s, %s, %s\n", file, verdict, counted(out.Items, "item"), counted(out.Pools, "pool"), counted(out.Entries, "entry"))
		printWarnings(w, changes)
	}), secondLook(file, len(out.Warnings), yes))
}

// planOver plans a catalog over another one, or as the first one, for a realm in which nothing was drawn.
func planOver(ctx context.Context, now func() time.Time, before, c *catalog.Catalog) (_ kuji.Plan, err error) {
	engine, err := kuji.OpenMemory([32]byte{}, kuji.Options{Now: now})
	if err != nil {
		return kuji.Plan{}, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	realm, err := engine.Realm("catalog")
	if err != nil {
		return kuji.Plan{}, err
	}
	if before != nil {
		if _, err := realm.Apply(ctx, before); err != nil {
			return kuji.Plan{}, err
		}
	}
	return realm.Catalogs().Plan(ctx, c)
}

func loadCatalog(a *app, file string) (*catalog.Catalog, error) {
	yaml, err := a.readFile(file, catalog.MaxBytes)
	if err != nil {
		return nil, err
	}
	return parseCatalog(file, yaml)
}

func parseCatalog(file string, yaml []byte) (*catalog.Catalog, error) {
	c, err := catalog.Parse(yaml)
	if err != nil {
		return nil, catalogError{file, err, err.Error()}
	}
	return c, nil
}

// catalogError is an error about places in a catalog. Each line begins with the file, for editors to jump to.
type catalogError struct {
	file string
	err  error
	text string
}

func (e catalogError) Unwrap() error { return e.err }
func (e catalogError) Error() string {
	text := "bad catalog"
	for line := range strings.SplitSeq(e.text, "\n") {
		text += "\n" + e.file + ":" + strings.TrimPrefix(line, "catalog: ")
	}
	return text
}

// placed turns a server's error about places in a catalog into one about places in its file.
func placed(file string, err error) error {
	var lines []string
	known := false
	for _, v := range client.Detail(err).GetViolations() {
		known = known || v.GetLine() > 0
		lines = append(lines, (&catalog.Error{Line: int(v.GetLine()), Column: int(v.GetColumn()), Path: v.GetField(), Message: v.GetDescription()}).Error())
	}
	if !known {
		return err
	}
	return catalogError{file, err, strings.Join(lines, "\n")}
}
