package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/disclosure"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// publishOdds writes the odds of the catalog in force to files, in a language.
func publishOdds(ctx context.Context, a *app, c *api, html, table, language string) error {
	resp, err := c.ExportCatalog(ctx, &kujiv1.ExportCatalogRequest{Realm: c.realm})
	if err != nil {
		return err
	}
	cat, err := catalog.Parse(resp.GetYaml())
	if err != nil {
		return fmt.Errorf("the server's catalog: %w", err)
	}
	hash := cat.Hash()
	if !bytes.Equal(hash[:], resp.GetHash()) {
		return fmt.Errorf("the server's catalog has the hash %x, but is %x here: server and client are of different versions", resp.GetHash(), hash)
	}
	odds, err := kuji.DiscloseContext(ctx, cat, "")
	if err != nil {
		return err
	}
	out := disclosure.New(kuji.CatalogView{Version: resp.GetVersion(), Hash: hash, Catalog: cat}, odds, c.realm, language)
	if err := errors.Join(writeFile(html, out.Page), writeFile(table, func() ([]byte, error) { return tableCSV(out.Table()) })); err != nil {
		return err
	}
	return a.print(out, func(w io.Writer) {
		fprintf(w, "odds of %s of catalog version %d written\n", counted(len(out.Pools), "pool"), out.Version)
	})
}

func tableCSV(rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	w := newCSV(&b)
	var err error
	for _, row := range rows {
		err = errors.Join(err, w.Write(row...))
	}
	w.Flush()
	return b.Bytes(), errors.Join(err, w.Error())
}

func render(page *template.Template, data any) ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, data)
	return b.Bytes(), err
}
