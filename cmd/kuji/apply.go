package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

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
}

type changeJSON struct {
	Kind    string          `json:"kind"`
	ID      string          `json:"id"`
	Entry   string          `json:"entry,omitempty"`
	Drawn   uint64          `json:"drawn"`
	Before  *entryStockJSON `json:"before,omitempty"`
	After   *entryStockJSON `json:"after,omitempty"`
	Warning string          `json:"warning,omitempty"`
	Text    string          `json:"text"`
}

type entryStockJSON struct {
	Unlimited bool   `json:"unlimited"`
	Stock     uint64 `json:"stock"`
	Left      uint64 `json:"left"`
}

func (a *app) applyCommand() *cobra.Command {
	var dryRun, create, yes bool
	var expect uint64
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Put a catalog in force, or show what that would change",
		Long: `Apply puts a catalog in force in a realm. First it asks the server what would
change, and shows it. Some changes deserve a second look: more was drawn already
than the new stock, or players hold an item that is removed. Apply makes them
only with --yes. With --dry-run it changes nothing.

Apply puts in force exactly what it has shown. If somebody else applies a catalog
in between, it is refused. With --expect it is also refused unless the catalog in
force is that version ("kuji status" shows it; 0 means none).`,
		Example: `  kuji apply catalog.yaml --dry-run
  kuji apply catalog.yaml --yes
  kuji apply catalog.yaml --expect 7
  kuji apply catalog.yaml --realm summer --create`,
		Args: exactArgs("FILE"),
	}
	conn := a.clientCommand(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change")
	cmd.Flags().BoolVar(&create, "create", false, "create the realm if it does not exist")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "apply despite the warnings of the plan")
	cmd.Flags().Uint64Var(&expect, "expect", 0, "`version` of the catalog that must be in force (default: any)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		yaml, err := a.readFile(args[0], catalog.MaxBytes)
		if err != nil {
			return err
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		if create && !dryRun {
			if _, err := parseCatalog(args[0], yaml); err != nil { // no realm for a catalog that cannot be applied
				return err
			}
			if _, err := call(ctx, c, "", c.admin.CreateRealm, &kujiv1.CreateRealmRequest{Realm: c.realm}); err != nil {
				return err
			}
		}
		req := &kujiv1.ApplyCatalogRequest{Realm: c.realm, Yaml: yaml, DryRun: true}
		if cmd.Flags().Changed("expect") {
			req.ExpectedVersion = &expect
		}
		resp, err := call(ctx, c, "", c.admin.ApplyCatalog, req)
		if err != nil {
			return placed(args[0], err)
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
	return cmd
}

func newPlanJSON(resp *kujiv1.ApplyCatalogResponse) planJSON {
	p := resp.GetPlan()
	out := planJSON{
		Unchanged: p.GetUnchanged(), Version: p.GetVersion(), Position: resp.GetResult().GetReceipt().GetPosition(),
		Changes: make([]changeJSON, 0, len(p.GetChanges())),
	}
	for _, c := range p.GetChanges() {
		out.Changes = append(out.Changes, changeJSON{
			Kind: strings.ToLower(strings.TrimPrefix(c.GetKind().String(), "CHANGE_KIND_")), ID: c.GetId(), Entry: c.GetEntry(),
			Drawn: c.GetDrawn(), Before: newEntryStockJSON(c.GetBefore()), After: newEntryStockJSON(c.GetAfter()),
			Warning: c.GetWarning(), Text: c.GetText(),
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
		fprintf(w, "\nCHANGE\tPOOL OR ITEM\tENTRY\tDRAWN\tLEFT BEFORE\tLEFT AFTER\n")
	}
	for _, c := range p.Changes {
		fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Kind, c.ID, dash(c.Entry), c.drawnText(), c.Before.left(), c.After.left())
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

func (c changeJSON) drawnText() string {
	if c.Entry == "" {
		return "-"
	}
	return strconv.FormatUint(c.Drawn, 10)
}

func (s *entryStockJSON) left() string {
	switch {
	case s == nil:
		return "-"
	case s.Unlimited:
		return "unlimited"
	}
	return fmt.Sprintf("%d of %d", s.Left, s.Stock)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
