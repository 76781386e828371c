package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type planJSON struct {
	DryRun    bool         `json:"dry_run"`
	Applied   bool         `json:"applied"`
	Unchanged bool         `json:"unchanged"`
	Version   uint64       `json:"version"`
	Position  uint64       `json:"position,omitempty"` // of the catalog in the log, once applied
	Changes   []changeJSON `json:"changes"`
	Kept      uint32       `json:"kept"` // entries that stay as they are
}

type changeJSON struct {
	Kind   string          `json:"kind"`
	ID     string          `json:"id"`
	Entry  string          `json:"entry,omitempty"`
	Drawn  uint64          `json:"drawn"`
	Before *entryStockJSON `json:"before,omitempty"`
	After  *entryStockJSON `json:"after,omitempty"`
	// What differs: "odds of POOL/ENTRY" and "ITEM per draw" are of a newcomer's next draw.
	Settings []kuji.Setting `json:"settings,omitempty"`
	Warning  string         `json:"warning,omitempty"`
	Text     string         `json:"text"`
}

type entryStockJSON struct {
	Unlimited bool   `json:"unlimited"`
	Stock     uint64 `json:"stock"`
	Left      uint64 `json:"left"`
}

func (a *app) applyCommand() *cobra.Command {
	var dryRun, create, yes bool
	var expect, from uint64
	cmd := &cobra.Command{
		Use:   "apply FILE | --from-version VERSION",
		Short: "Put a catalog in force, or show what that would change",
		Long: `Apply puts a catalog in force in a realm. First it asks the server for the changes
and shows them: settings before and after, the stock that is left, and what the
next draw of a new player gives, through inner pools. It counts what stays the
same. Some changes need a second look, such as more drawn already than the new
stock, odds that move more than threefold, or an item that nobody can get. Apply
makes them only with --yes. With --dry-run it changes nothing.

Apply puts in force exactly what it has shown. It fails if somebody else applies
a catalog in between. With --expect it also fails unless the catalog in force is
that version ("kuji status" shows it; 0 means none).

With --from-version it puts an older catalog in force again: see "kuji catalog list".`,
		Example: `  kuji apply catalog.yaml --dry-run
  kuji apply catalog.yaml --yes
  kuji apply catalog.yaml --expect 7
  kuji apply catalog.yaml --realm summer --create
  kuji apply --from-version 7 --reason "version 8 had a wrong price"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("from-version") {
				return exactArgs()(cmd, args)
			}
			return exactArgs("FILE")(cmd, args)
		},
	}
	conn := a.clientCommand(cmd)
	why := newReasons(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change")
	cmd.Flags().BoolVar(&create, "create", false, "create the realm if it does not exist")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "apply despite the warnings of the plan")
	cmd.Flags().Uint64Var(&expect, "expect", 0, "`version` of the catalog that must be in force (default: any)")
	cmd.Flags().Uint64Var(&from, "from-version", 0, "`version` of the catalog to put in force again, instead of a file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		c, file, yaml, err := a.toApply(ctx, conn, from, args)
		if err != nil {
			return err
		}
		if create && !dryRun {
			if _, err := parseCatalog(file, yaml); err != nil { // no realm for a catalog that cannot be applied
				return err
			}
			if _, err := call(ctx, c, "", c.admin.CreateRealm, &kujiv1.CreateRealmRequest{Realm: c.realm}); err != nil {
				return err
			}
		}
		req := &kujiv1.ApplyCatalogRequest{Realm: c.realm, Yaml: yaml, DryRun: true, Reason: why.reason, Metadata: why.metadata}
		if cmd.Flags().Changed("expect") {
			req.ExpectedVersion = &expect
		}
		return a.planAndApply(ctx, c, file, req, dryRun, yes)
	}
	return cmd
}

// planAndApply shows what a catalog changes. Unless that is all, or needs a second look, it applies the
// catalog over what is in force then.
func (a *app) planAndApply(ctx context.Context, c *client, file string, req *kujiv1.ApplyCatalogRequest, dryRun, yes bool) error {
	resp, err := call(ctx, c, "", c.admin.ApplyCatalog, req)
	if err != nil {
		return placed(file, err)
	}
	plan := newPlanJSON(resp)
	plan.DryRun = dryRun
	warned := plan.warnings()
	if !dryRun && (warned == 0 || yes) {
		if !plan.Unchanged {
			over := plan.Version - 1
			req.ExpectedVersion = &over
		}
		req.DryRun = false
		resp, err = call(ctx, c, "", c.admin.ApplyCatalog, req)
		if err != nil {
			return err
		}
		plan = newPlanJSON(resp)
		plan.Applied = true
	}
	if err := a.print(plan, func(w io.Writer) { printPlan(w, plan) }); err != nil {
		return err
	}
	if !dryRun && !plan.Applied {
		return refusedError{fmt.Sprintf("not applied: %d of the changes deserve a second look. Repeat with --yes to apply them", warned)}
	}
	return nil
}

// toApply reads the catalog to apply, from a file or from the realm's older ones, and dials the server.
func (a *app) toApply(ctx context.Context, conn *connection, version uint64, args []string) (c *client, name string, yaml []byte, err error) {
	if len(args) > 0 {
		name = args[0]
		if yaml, err = a.readFile(name, catalog.MaxBytes); err != nil {
			return nil, "", nil, err
		}
	} else if version == 0 {
		return nil, "", nil, usageError{errors.New("--from-version 0: expected a version from 1 on")}
	}
	if c, err = conn.dial(); err != nil || len(args) > 0 {
		return c, name, yaml, err
	}
	yaml, err = c.catalogOf(ctx, version)
	return c, fmt.Sprint("version ", version), yaml, err
}

func newPlanJSON(resp *kujiv1.ApplyCatalogResponse) planJSON {
	p := resp.GetPlan()
	out := planJSON{
		Unchanged: p.GetUnchanged(), Version: p.GetVersion(), Position: resp.GetResult().GetReceipt().GetPosition(),
		Kept: p.GetKept(), Changes: make([]changeJSON, 0, len(p.GetChanges())),
	}
	for _, c := range p.GetChanges() {
		var settings []kuji.Setting
		for _, s := range c.GetSettings() {
			settings = append(settings, kuji.Setting{Name: s.GetName(), Before: s.GetBefore(), After: s.GetAfter()})
		}
		out.Changes = append(out.Changes, changeJSON{
			Kind: strings.ToLower(strings.TrimPrefix(c.GetKind().String(), "CHANGE_KIND_")), ID: c.GetId(), Entry: c.GetEntry(),
			Drawn: c.GetDrawn(), Before: newEntryStockJSON(c.GetBefore()), After: newEntryStockJSON(c.GetAfter()),
			Warning: c.GetWarning(), Text: c.GetText(), Settings: settings,
		})
	}
	return out
}

func newEntryStockJSON(s *kujiv1.EntryStock) *entryStockJSON {
	if s == nil {
		return nil
	}
	return &entryStockJSON{s.GetUnlimited(), s.GetStock(), s.GetLeft()}
}

func (p planJSON) warnings() int {
	n := 0
	for _, c := range p.Changes {
		if c.Warning != "" {
			n++
		}
	}
	return n
}

func printPlan(w io.Writer, p planJSON) {
	switch {
	case p.Unchanged:
		fprintf(w, "unchanged: version %d is this catalog\n", p.Version)
		return
	case p.Applied:
		fprintf(w, "applied as version %d at position %d\n", p.Version, p.Position)
	default:
		fprintf(w, "would become version %d\n", p.Version)
	}
	if len(p.Changes) > 0 {
		fprintf(w, "\n")
	}
	for _, c := range p.Changes {
		c.print(w)
	}
	if p.Kept > 0 {
		fprintf(w, "\nentries that stay as they are: %d\n", p.Kept)
	}
	if p.warnings() > 0 {
		fprintf(w, "\n")
	}
	for _, c := range p.Changes {
		if c.Warning != "" {
			fprintf(w, "warning: %s: %s\n", strings.TrimSuffix(c.ID+"/"+c.Entry, "/"), c.Warning)
		}
	}
}

// print writes a change with the settings that differ.
func (c changeJSON) print(w io.Writer) {
	what, how, _ := strings.Cut(c.Kind, "_")
	id := strings.TrimSuffix(c.ID+"/"+c.Entry, "/")
	mark := map[string]string{"added": "+", "removed": "-"}[how]
	switch {
	case what == "notice":
		return // it is a warning
	case mark == "":
		mark = "~"
	}
	fprintf(w, "%s %s %s", mark, what, id)
	switch {
	case c.Before != nil && c.After != nil:
		fprintf(w, ": %d drawn, %s left before, %s after", c.Drawn, c.Before.left(), c.After.left())
	case c.Before != nil:
		fprintf(w, ": %d drawn, %s left", c.Drawn, c.Before.left())
	case c.After != nil:
		fprintf(w, ": %d drawn, %s left", c.Drawn, c.After.left())
	}
	fprintf(w, "\n")
	for _, s := range c.Settings {
		switch {
		case mark == "+":
			fprintf(w, "    %s: %s\n", s.Name, s.After)
		case mark == "-":
			fprintf(w, "    %s: %s\n", s.Name, s.Before)
		default:
			fprintf(w, "    %s: %s -> %s\n", s.Name, cmp.Or(s.Before, "(not set)"), cmp.Or(s.After, "(not set)"))
		}
	}
}

func (s *entryStockJSON) left() string {
	if s.Unlimited {
		return "unlimited"
	}
	return fmt.Sprintf("%d of %d", s.Left, s.Stock)
}
