package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (a *app) codesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "codes",
		Short: "Import codes that rewards give or players send, show what is left, export who got them",
		Long: `Codes are texts in named lists: coupons, gift cards and keys that rewards give,
each once, or texts that players send to pay for draws. In a catalog, "reward: {code: ten-percent}" gives the next code of the list
ten-percent, and "redeem: {code: bottles}" lets codes of the list bottles pay for
draws from a pool.`,
		GroupID: "client",
		Args:    cobra.NoArgs,
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.codesImportCommand(), a.codesShowCommand(), a.codesExportCommand())
	return cmd
}

type codesJSON struct {
	List     string  `json:"list"`
	Codes    uint64  `json:"codes"` // imported so far
	Given    uint64  `json:"given"` // of them
	Left     uint64  `json:"left"`
	Redeemed uint64  `json:"redeemed"` // of them: used by a player at all
	Uses     uint64  `json:"uses"`     // how often players used them
	Position uint64  `json:"position"`
	Added    *uint64 `json:"added,omitempty"` // by this import
	Known    *uint64 `json:"known,omitempty"` // in the file, but in the list before or twice in the file
}

func newCodesJSON(l *kujiv1.CodeList) codesJSON {
	return codesJSON{List: l.GetList(), Codes: l.GetCodes(), Given: l.GetGiven(), Left: l.GetCodes() - l.GetGiven(), Redeemed: l.GetRedeemed(), Uses: l.GetUses(), Position: l.GetPosition()}
}

func printCodes(w io.Writer, c codesJSON) {
	fprintf(w, "list\t%s\n", c.List)
	if c.Added != nil {
		fprintf(w, "added\t%d\nknown\t%d\n", *c.Added, *c.Known)
	}
	fprintf(w, "codes\t%d\ngiven\t%d\nleft\t%d\nredeemed\t%d\nuses\t%d\nposition\t%d\n", c.Codes, c.Given, c.Left, c.Redeemed, c.Uses, c.Position)
}

func (a *app) codesImportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import LIST FILE",
		Short: "Add the codes of a file to a list",
		Long: `Import adds the codes of a CSV file to the end of a list: the first column of each
line. A first line whose first column is "code" is a heading. An apostrophe before
=, +, - or @ is not part of a code: see export. The whole file is checked before
anything is sent.

A code that the list has already is passed over. So the same file again changes
nothing, and an import that was interrupted is simply repeated.

At most 16 codes of a list may differ only in spaces, hyphens and case.`,
		Example: `  kuji codes import ten-percent codes.csv`,
		Args:    exactArgs("LIST", "FILE"),
	}
	conn := a.connection(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		total := uint64(0)
		if err := eachChunk(args[1], func(codes []string) error {
			total += uint64(len(codes))
			return nil
		}); err != nil {
			return usageError{err}
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		list, added, err := importCodes(cmd.Context(), c, args[0], args[1])
		if err != nil {
			return fmt.Errorf("the file is not imported as a whole; import it again to finish: %w", err)
		}
		out, known := newCodesJSON(list), total-added
		out.Added, out.Known = &added, &known
		return a.print(out, func(w io.Writer) { printCodes(w, out) })
	}
	return cmd
}

// importCodes sends the codes of a file, chunk by chunk.
func importCodes(ctx context.Context, c *client, list, file string) (after *kujiv1.CodeList, added uint64, err error) {
	err = eachChunk(file, func(codes []string) error {
		resp, err := call(ctx, c, "", c.admin.ImportCodes, &kujiv1.ImportCodesRequest{Realm: c.realm, List: list, Codes: codes})
		if err != nil {
			return err
		}
		after, added = resp.GetList(), added+resp.GetAdded()
		return nil
	})
	return after, added, err
}

// eachChunk reads the codes of a file and calls f with as many as one request can have. What is
// wrong with a file is said without repeating a code.
func eachChunk(file string, f func(codes []string) error) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() // read only: nothing to lose
	rows := csv.NewReader(bufio.NewReader(in))
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	var codes []string
	size, any := 0, false
	flush := func() error {
		if len(codes) == 0 {
			return nil
		}
		err := f(codes)
		codes, size = codes[:0], 0
		return err
	}
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		code := row[0]
		if first {
			code = strings.TrimPrefix(code, "\ufeff") // spreadsheets write it
			if strings.EqualFold(code, "code") {
				continue
			}
		}
		code = uncell(code)
		if wrong := kuji.CheckCode(code); wrong != "" {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("%s, line %d: the code is %s", file, line, wrong)
		}
		any = true
		if len(codes) == kuji.MaxImport || size+1+len(code) > kuji.MaxImportBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		codes, size = append(codes, code), size+1+len(code)
	}
	if !any {
		return fmt.Errorf("%s has no codes; want one a line, in the first column", file)
	}
	return flush()
}

func (a *app) codesShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show LIST",
		Short:   "Show how many codes of a list are left, and how many were redeemed",
		Example: `  kuji codes show ten-percent`,
		Args:    exactArgs("LIST"),
	}
	conn := a.connection(cmd.Flags())
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		resp, err := call(cmd.Context(), c, "", c.admin.GetCodes, &kujiv1.GetCodesRequest{Realm: c.realm, List: args[0]})
		if err != nil {
			return err
		}
		out := newCodesJSON(resp.GetList())
		return a.print(out, func(w io.Writer) { printCodes(w, out) })
	})
	return cmd
}

type givenCodeJSON struct {
	Code     string `json:"code"`
	Number   uint64 `json:"number"`
	Player   string `json:"player"`
	Position uint64 `json:"position"`
	Time     string `json:"time"`
}

func (a *app) codesExportCommand() *cobra.Command {
	var from uint64
	var redeemed bool
	cmd := &cobra.Command{
		Use:   "export LIST",
		Short: "Print the given or used codes of a list, with their players, as CSV",
		Long: `Export prints the given codes of a list as CSV, in the order in which they were
given: code, player, position in the log, time. With --redeemed it prints the codes
that players used, in the order of use. With --json it prints one object a line.

A spreadsheet takes what begins with =, +, - or @ for a formula. So in the CSV, such
codes and players have an apostrophe in front.
The key needs the command admin.`,
		Example: `  kuji codes export ten-percent > given.csv
  kuji codes export bottles --redeemed`,
		Args: exactArgs("LIST"),
	}
	conn := a.connection(cmd.Flags())
	cmd.Flags().Uint64Var(&from, "from", 0, "how many `lines` to skip: those of an earlier export")
	cmd.Flags().BoolVar(&redeemed, "redeemed", false, "print the codes that players used")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		return a.exportCodes(cmd.Context(), c, &kujiv1.ExportCodesRequest{Realm: c.realm, List: args[0], Offset: from, Redeemed: redeemed})
	})
	return cmd
}

func (a *app) exportCodes(ctx context.Context, c *client, req *kujiv1.ExportCodesRequest) (err error) {
	out := bufio.NewWriter(a.stdout)
	defer func() { err = errors.Join(err, out.Flush()) }()
	rows, objects := newCSV(out), newJSON(out)
	const page = 10_000
	req.Limit = page
	for first := true; ; first = false {
		resp, err := call(ctx, c, "", c.admin.ExportCodes, req)
		if err != nil {
			return err
		}
		a.printed = true
		if first && !a.json {
			err = rows.Write("code", "player", "position", "time")
		}
		for _, g := range resp.GetCodes() {
			one := givenCodeJSON{g.GetCode(), g.GetNumber(), g.GetPlayer(), g.GetPosition(), timeText(g.GetTimeUnixMs())}
			if a.json {
				err = errors.Join(err, objects.Encode(one))
			} else {
				err = errors.Join(err, rows.Write(one.Code, one.Player, strconv.FormatUint(one.Position, 10), one.Time))
			}
		}
		rows.Flush()
		if err := errors.Join(err, rows.Error()); err != nil {
			return fmt.Errorf("write to standard output: %w", err)
		}
		if req.Offset += uint64(len(resp.GetCodes())); len(resp.GetCodes()) < page {
			return nil
		}
	}
}
