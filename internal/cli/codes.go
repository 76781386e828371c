package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func codesCommand(a *app) *cobra.Command {
	return group("codes", "Import codes that rewards give or players send, show what is left, export who got them",
		codesImportCommand(a), codesShowCommand(a), codesExportCommand(a))
}

func printCodes(w io.Writer, l *kujiv1.CodeList, more string) {
	fprintf(w, "list\t%s\n%scodes\t%d\ngiven\t%d\nleft\t%d\n", l.GetList(), markup(more), l.GetCodes(), l.GetGiven(), l.GetCodes()-l.GetGiven())
	fprintf(w, "redeemed\t%d\nuses\t%d\nposition\t%d\n", l.GetRedeemed(), l.GetUses(), l.GetPosition())
}

func codesImportCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "import LIST FILE", Short: "Add the codes of a file to a list"}
	return a.online(cmd, func(ctx context.Context, c *api, args []string) error {
		total := 0
		if err := eachChunk(args[1], func(codes []string) error { total += len(codes); return nil }); err != nil {
			return usageError{err}
		}
		out := &kujiv1.ImportCodesResponse{}
		if err := eachChunk(args[1], func(codes []string) error {
			resp, err := c.ImportCodes(ctx, &kujiv1.ImportCodesRequest{Realm: c.realm, List: args[0], Codes: codes})
			out.List, out.Added = resp.GetList(), out.GetAdded()+resp.GetAdded()
			return err
		}); err != nil {
			return fmt.Errorf("not all of the file is imported; import it again to finish: %w", err)
		}
		return a.print(out, func(w io.Writer) {
			printCodes(w, out.GetList(), fmt.Sprintf("added\t%d\nknown\t%d\n", out.GetAdded(), uint64(total)-out.GetAdded()))
		})
	})
}

// eachChunk calls f with the codes of a file, as many as a request can have. Its errors repeat no code.
func eachChunk(file string, f func(codes []string) error) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() // read only: nothing to lose
	rows := csv.NewReader(bufio.NewReader(in))
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	var codes []string
	size := 0
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
		if len(codes) == kuji.MaxImport || size+1+len(code) > kuji.MaxImportBytes {
			if err := f(codes); err != nil {
				return err
			}
			codes, size = codes[:0], 0
		}
		codes, size = append(codes, code), size+1+len(code)
	}
	if len(codes) == 0 { // a chunk that is sent makes room for a code
		return fmt.Errorf("%s has no codes; want one a line, in the first column", file)
	}
	return f(codes)
}

func codesShowCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "show LIST", Short: "Show how many codes of a list are left, and how many were redeemed"}
	return read(a, cmd, &kujiv1.GetCodesRequest{}, (*api).GetCodes,
		func(w io.Writer, resp *kujiv1.GetCodesResponse) { printCodes(w, resp.GetList(), "") })
}

func codesExportCommand(a *app) *cobra.Command {
	var from uint64
	var redeemed bool
	cmd := &cobra.Command{Use: "export LIST", Short: "Print the given or used codes of a list, with their players, as CSV"}
	cmd.Flags().Uint64Var(&from, "from", 0, "how many `lines` to skip: those of an earlier export")
	cmd.Flags().BoolVar(&redeemed, "redeemed", false, "print the codes that players used")
	return a.online(cmd, func(ctx context.Context, c *api, args []string) error {
		return exportCodes(ctx, a, c, &kujiv1.ExportCodesRequest{Realm: c.realm, List: args[0], Offset: from, Redeemed: redeemed})
	})
}

func exportCodes(ctx context.Context, a *app, c *api, req *kujiv1.ExportCodesRequest) (err error) {
	out := bufio.NewWriter(output{a})
	defer func() { err = errors.Join(err, out.Flush()) }()
	rows := newCSV(out)
	req.Limit = 10_000
	for first := true; ; first = false {
		resp, err := c.ExportCodes(ctx, req)
		if err != nil {
			return err
		}
		if first && !a.json {
			err = rows.Write("code", "player", "position", "time")
		}
		for _, g := range resp.GetCodes() {
			if a.json {
				err = errors.Join(err, encodeJSON(out, g))
			} else {
				err = errors.Join(err, rows.Write(g.GetCode(), g.GetPlayer(), whole(g.GetPosition()), timeText(g.GetTimeUnixMs())))
			}
		}
		rows.Flush()
		req.Offset += uint64(len(resp.GetCodes()))
		if err := errors.Join(err, rows.Error()); err != nil || len(resp.GetCodes()) < int(req.GetLimit()) {
			return err
		}
	}
}
