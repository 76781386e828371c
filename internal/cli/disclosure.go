package cli

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/verify"
)

// disclosure is what is published of a catalog's odds.
type disclosure struct {
	Name    string           `json:"name,omitempty"`
	Realm   string           `json:"realm"`
	Version uint64           `json:"version"`
	Hash    verify.Hash      `json:"hash"` // of the catalog
	Pools   []disclosurePool `json:"pools"`
}

type disclosurePool struct {
	Pool    string           `json:"pool"`
	Name    string           `json:"name,omitempty"`
	Prices  []string         `json:"prices"`
	Pity    []string         `json:"pity"` // in words, as the next three
	Within  []string         `json:"guarantees,omitempty"`
	Moments []string         `json:"moments,omitempty"`
	Budgets []string         `json:"budgets,omitempty"`
	Error   string           `json:"error,omitempty"`
	LongRun string           `json:"long_run,omitempty"` // why it is not known
	Lines   []disclosureLine `json:"outcomes"`
	Counts  []int            `json:"request_draws,omitempty"` // of the requests in Lines
	NoOdds  []string         `json:"request_errors,omitempty"`
}

type disclosureLine struct {
	Pool     string `json:"pool"`
	Entry    string `json:"entry"`
	Chance   string `json:"chance"`   // decimal, of the first draw
	Expected string `json:"expected"` // decimal, times in the first draw
	LongRun  string `json:"long_run"` // decimal, times a draw; empty: not known
	Exact    string `json:"exact"`    // the chance as a fraction
	// What a request for as many draws as a guarantee needs gives.
	Requests []disclosureRequest `json:"requests,omitempty"`
	// As the catalog writes them, of the entry and of the pool that it is in; empty: none.
	Moments string `json:"moments,omitempty"`
	Budget  string `json:"budget,omitempty"`
}

type disclosureRequest struct {
	Draws    int    `json:"draws"`
	Expected string `json:"expected"` // decimal, times in the request
	PerDraw  string `json:"per_draw"` // decimal, divided by the draws
}

// publishOdds writes the odds of the catalog in force to files.
func publishOdds(ctx context.Context, a *app, c *api, html, table string) error {
	resp, err := c.ExportCatalog(ctx, &kujiv1.ExportCatalogRequest{Realm: c.realm})
	if err != nil {
		return err
	}
	cat, err := catalog.Parse(resp.GetYaml())
	if err != nil {
		return fmt.Errorf("the server's catalog: %w", err)
	}
	if hash := cat.Hash(); !bytes.Equal(hash[:], resp.GetHash()) {
		return fmt.Errorf("the server's catalog has the hash %x, but is %x here: server and client are of different versions", resp.GetHash(), hash)
	}
	out, err := newDisclosure(cat, c.realm, resp.GetVersion())
	if err != nil {
		return err
	}
	if err := errors.Join(writeFile(html, out.html), writeFile(table, out.csv)); err != nil {
		return err
	}
	return a.print(out, func(w io.Writer) {
		fprintf(w, "odds of %s of catalog version %d written\n", counted(len(out.Pools), "pool"), out.Version)
	})
}

func newDisclosure(c *catalog.Catalog, realm string, version uint64) (*disclosure, error) {
	out := &disclosure{Name: c.Name, Realm: realm, Version: version, Hash: c.Hash(), Pools: []disclosurePool{}}
	all, err := kuji.Disclose(c)
	pools := map[string]*catalog.Pool{}
	for i := range c.Pools {
		pools[c.Pools[i].ID] = &c.Pools[i]
	}
	for i := range all {
		out.Pools = append(out.Pools, newDisclosurePool(&all[i], pools, c))
	}
	return out, err
}

func newDisclosurePool(d *kuji.Disclosed, pools map[string]*catalog.Pool, c *catalog.Catalog) disclosurePool {
	p := disclosurePool{Pool: d.Pool.ID, Name: d.Pool.Name, LongRun: d.Why, Prices: each(d.Pool.Price, stacksText)}
	if d.Err != nil {
		p.Error, p.LongRun = d.Err.Error(), ""
	}
	for _, t := range d.Odds.Pity {
		for k := range pools[t.Pool].Tracks {
			if track := &pools[t.Pool].Tracks[k]; track.Name == t.Track {
				p.Pity = append(p.Pity, trackText(pools[t.Pool], k, track))
			}
		}
	}
	p.guarantees(d)
	for k, e := range d.Odds.Outcomes {
		pool := pools[e.Pool]
		if k == 0 || d.Odds.Outcomes[k-1].Pool != e.Pool {
			p.campaign(pool, c)
		}
		entry := slices.IndexFunc(pool.Entries, func(one catalog.Entry) bool { return one.ID == e.Entry })
		line := disclosureLine{Pool: e.Pool, Entry: e.Entry, Chance: decimal(e.Chance), Expected: decimal(e.Expected), Exact: e.Chance.RatString(),
			Moments: setting(pool.EntrySettings(entry), "moments"), Budget: setting(pool.Settings(), "budget")}
		if len(line.Exact) > 200 {
			line.Exact = ""
		}
		if d.LongRun != nil {
			line.LongRun = decimal(d.LongRun[k])
		}
		for _, q := range d.Requests {
			if q.Err == nil {
				one := new(big.Rat).Quo(q.Expected[k], big.NewRat(int64(q.Count), 1))
				line.Requests = append(line.Requests, disclosureRequest{q.Count, decimal(q.Expected[k]), decimal(one)})
			}
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}

func stacksText(all []catalog.Stack) string {
	return strings.Join(each(all, func(s catalog.Stack) string { return fmt.Sprintf("%s=%d", s.Item, s.Quantity) }), " ")
}

// trackText says in words what follows from a track.
func trackText(pool *catalog.Pool, i int, t *catalog.Track) string {
	text := fmt.Sprintf("%s: a draw that takes %s is counted as a hit", pool.ID, strings.Join(t.Of, " or "))
	if r := &t.Rising; r.From != 0 {
		text += fmt.Sprintf("; from draw %d after the last hit on, the chance rises", r.From)
		if !r.Table {
			text += fmt.Sprintf(" by %s percentage points a draw", decimalText(r.By[0], r.Scale))
		}
	}
	if t.Certain != 0 {
		text += fmt.Sprintf("; draw %d after the last hit is certain to hit, if it is in stock", t.Certain)
		if before := pool.FirstOf(i); len(before) > 0 {
			text += fmt.Sprintf(", unless %s comes: then the next draw is", strings.Join(before, " or "))
		}
	}
	return text
}

// guarantees says what is guaranteed within a request, and for which requests there are odds.
func (p *disclosurePool) guarantees(d *kuji.Disclosed) {
	for i := range d.Pool.Guarantees {
		g := &d.Pool.Guarantees[i]
		p.Within = append(p.Within, fmt.Sprintf("of each %d draws in one request, at least %d takes %s, if it is in stock", g.Draws, g.AtLeast, strings.Join(g.Of, " or ")))
	}
	for _, q := range d.Requests {
		if q.Err != nil {
			p.NoOdds = append(p.NoOdds, fmt.Sprintf("requests for %d draws: %v", q.Count, q.Err))
			continue
		}
		p.Counts = append(p.Counts, q.Count)
	}
}

// campaign adds the moments and the budgets of a pool.
func (p *disclosurePool) campaign(of *catalog.Pool, c *catalog.Catalog) {
	zone := cmp.Or(c.Zone.Name, "UTC")
	for i := range of.Entries {
		if e := &of.Entries[i]; e.Moments.Count > 0 {
			p.Moments = append(p.Moments, fmt.Sprintf("%s/%s: the first draw after each of %d moments takes it, whatever the odds. They lie between %s and %s: %s, in the time zone %s. "+
				"The odds are those between moments", of.ID, e.ID, e.Moments.Count, timeText(of.StartsAt), timeText(of.EndsAt), setting(of.EntrySettings(i), "moments"), zone))
		}
	}
	if len(of.Budgets) > 0 {
		if c.Day != (catalog.Day{}) {
			zone += fmt.Sprintf(", where days begin at %s and weeks on %v", c.Day.Time(), c.Day.Week)
		}
		p.Budgets = append(p.Budgets, fmt.Sprintf("%s: all players together are given no more than this: %s, in the time zone %s. "+
			"An entry that could give more than is left is out of stock. The odds are those before", of.ID, setting(of.Settings(), "budget"), zone))
	}
}

// setting returns a setting as catalogs write it, empty if it is left out.
func setting(all []catalog.Setting, name string) string {
	if i := slices.IndexFunc(all, func(s catalog.Setting) bool { return s.Key == name }); i >= 0 {
		return all[i].Value
	}
	return ""
}

// decimal writes a number with twelve digits at most.
func decimal(x *big.Rat) string {
	v, _ := x.Float64()
	if v != 0 && v < 1e-12 {
		return strconv.FormatFloat(v, 'g', 12, 64)
	}
	text := strconv.FormatFloat(v, 'f', 15, 64)
	if len(text) > 17 {
		text = strconv.FormatFloat(v, 'f', 12, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func (d *disclosure) csv() ([]byte, error) {
	var b bytes.Buffer
	w := newCSV(&b)
	head := []string{"catalog_version", "catalog_hash", "pool", "taken_from", "entry", "chance", "chance_exact", "times_a_draw", "times_a_draw_long_run", "moments", "budget"}
	within := slices.ContainsFunc(d.Pools, func(p disclosurePool) bool { return len(p.Counts) > 0 })
	if within {
		head = append(head, "request_draws", "times_in_request", "times_a_draw_in_request")
	}
	err := w.Write(head...)
	for i := range d.Pools {
		for _, l := range d.Pools[i].Lines {
			row := []string{whole(d.Version), hex.EncodeToString(d.Hash[:]), d.Pools[i].Pool, l.Pool, l.Entry, l.Chance, l.Exact, l.Expected, l.LongRun, l.Moments, l.Budget}
			if within {
				var draws, times, perDraw []string // of most pools none or one
				for _, q := range l.Requests {
					draws, times, perDraw = append(draws, strconv.Itoa(q.Draws)), append(times, q.Expected), append(perDraw, q.PerDraw)
				}
				row = append(row, strings.Join(draws, ";"), strings.Join(times, ";"), strings.Join(perDraw, ";"))
			}
			err = errors.Join(err, w.Write(row...))
		}
	}
	w.Flush()
	return b.Bytes(), errors.Join(err, w.Error())
}

//go:embed disclosure.html
var disclosureHTML string

var disclosurePage = template.Must(template.New("disclosure").Funcs(template.FuncMap{"percent": func(s string) string {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return "–"
	}
	return strconv.FormatFloat(100*v, 'g', 6, 64) + " %"
}}).Parse(disclosureHTML))

// html makes one page that needs no other file.
func (d *disclosure) html() ([]byte, error) { return render(disclosurePage, d) }

func render(page *template.Template, data any) ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, data)
	return b.Bytes(), err
}
