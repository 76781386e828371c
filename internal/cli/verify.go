package cli

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/verify"
)

// verifyJSON is what was verified, and the report on each realm.
type verifyJSON struct {
	Data    string          `json:"data,omitempty"`
	Cluster string          `json:"cluster,omitempty"`
	OK      bool            `json:"ok"`
	Realms  []verifiedRealm `json:"realms"`
	Node    string          `json:"node,omitempty"` // whose directory it is, and of which cluster: other nodes may have had more
	NodeOf  string          `json:"node_of,omitempty"`
	Missing []string        `json:"missing,omitempty"` // realms of that cluster which other nodes kept
	Strays  []string        `json:"strays,omitempty"`  // files among the realms, and folders whose names no realm can have
}

type verifiedRealm struct {
	OK            bool   `json:"ok"`
	Error         string `json:"error,omitempty"`
	WrongPosition uint64 `json:"wrong_position,omitempty"` // the first that is wrong; absent when the log itself cannot be read so far
	verify.Report        // up to there
}

func verifyCommand(a *app) *cobra.Command {
	var realm, since string
	var strict bool
	var what auditFlags
	cmd := &cobra.Command{Use: "verify --data DIR", Short: "Check a data directory or a cluster: every event, every choice, every sum"}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := what.check(); err != nil {
			return err
		}
		var realms []string
		if realm != "" {
			realms = []string{realm}
		}
		anchors, err := readAnchors(a, since)
		if err != nil {
			return err
		}
		if _, ok := anchors[realm]; realm != "" && since != "" && !ok {
			return usagef("--since %s: realm %q is not in it", since, realm)
		}
		from, err := openAudit(cmd.Context(), a, &what)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, from.end()) }()
		out, err := from.verify(cmd.Context(), realms, anchors, nil)
		if err != nil && len(out.Realms) == 0 {
			return err
		}
		if strict {
			err = out.beStrict(err)
		}
		return cmp.Or(a.print(out, func(w io.Writer) { printVerify(w, out) }), err)
	}
	what.add(cmd)
	cmd.Flags().StringVar(&realm, "realm", "", "`name` of the only realm to check (default: all)")
	cmd.Flags().StringVar(&since, "since", "", "`file` that verify --json wrote earlier; the logs must continue from there")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail, too, if an epoch was not decided again: its seed is lost, or its rules are those of another build")
	return cmd
}

// auditFlags say what is verified.
type auditFlags struct {
	data    string
	cluster clusterFlags
}

func (f *auditFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.data, "data", "", "data `directory`, unless there is --cluster or --store")
	f.cluster.member(cmd)
}

func (f *auditFlags) check() error {
	if err := f.cluster.settle(&f.data); err != nil {
		return err
	}
	clustered := f.cluster.Name != "" || len(f.cluster.peers) > 0 || f.cluster.External() || f.data == "" && f.cluster.keyFile != ""
	switch {
	case f.data == "" && !clustered:
		return usagef("missing flag --data: the directory to read; or --cluster, or --store")
	case f.data != "" && clustered:
		return usagef("--data with --cluster: expected one of them")
	case clustered:
		return f.cluster.checkMember()
	}
	return nil
}

// auditSource is what keeps realms that are verified.
type auditSource struct {
	verifyJSON // what the report says of it
	realms     func(ctx context.Context) (names, strays []string, err error)
	realm      func(name string, o verify.Options) (verify.Report, error)
	end        func() error
}

// inDirectory is a data directory.
func inDirectory(data string) *auditSource {
	return &auditSource{
		verifyJSON: verifyJSON{Data: data},
		realms:     func(context.Context) (names, strays []string, err error) { return realmsIn(data) },
		realm:      func(name string, o verify.Options) (verify.Report, error) { return verify.Dir(data, name, o) },
		end:        nothing,
	}
}

// inCopy is what one node of a cluster has kept.
func inCopy(c *cluster.Copy, data string, keys cluster.Keys) *auditSource {
	return &auditSource{
		verifyJSON: verifyJSON{Data: data, Node: c.Node, NodeOf: c.Cluster, Missing: c.Missing},
		realms:     func(context.Context) (names, strays []string, err error) { return c.Realms, nil, nil },
		realm: func(name string, o verify.Options) (verify.Report, error) {
			return c.Verify(keys, name, o.Through, o.Seen)
		},
		end: c.Close,
	}
}

// inCluster is what the driver of a cluster keeps.
func inCluster(ctx context.Context, c *cluster.Config, d cluster.Log) *auditSource {
	key, old := c.Seals()
	realms := func(ctx context.Context) (names, strays []string, err error) {
		names, err = d.Realms(ctx)
		return names, nil, err
	}
	realm := func(name string, o verify.Options) (verify.Report, error) {
		names, _, err := realms(ctx)
		if err == nil && !slices.Contains(names, name) {
			err = &kuji.Error{Code: kuji.CodeNotFound, Field: "realm", Message: fmt.Sprintf("there is no realm %q in cluster %s", name, c.Name)}
		}
		if err != nil {
			return verify.Report{}, err
		}
		o.Keys = append(slices.Clone(old), key)
		report, err := verify.Driver(d, name, o)
		_, trimmed := errors.AsType[*driver.TrimmedError](err)
		if trimmed || errors.Is(err, driver.ErrNotExist) || errors.Is(err, driver.ErrUnavailable) {
			err = connect.NewError(connect.CodeUnavailable, fmt.Errorf("realm %s: a node is lost, or the cluster has trimmed the log: try again: %v", name, err))
		}
		return report, err
	}
	return &auditSource{verifyJSON: verifyJSON{Cluster: c.Name}, realms: realms, realm: realm, end: d.Close}
}

// openAudit opens what the flags name. The caller ends it.
func openAudit(ctx context.Context, a *app, f *auditFlags) (*auditSource, error) {
	if f.data != "" && !cluster.IsNode(f.data) {
		return inDirectory(f.data), nil
	}
	keys, err := cluster.Keys{{}}, error(nil) // zero: it opens nothing
	if f.data == "" || f.cluster.keyFile != "" {
		if keys, err = a.readClusterKeys(f.cluster.keyFile); err != nil {
			return nil, err
		}
	}
	if f.data != "" {
		c, err := cluster.OpenCopy(ctx, f.data)
		if err != nil {
			return nil, err
		}
		return inCopy(c, f.data, keys), nil
	}
	f.cluster.Keys = keys
	d, err := f.cluster.OpenLog(ctx)
	if err != nil {
		return nil, err
	}
	return inCluster(ctx, &f.cluster.Config, d), nil
}

// maxReport bounds an earlier report, in bytes.
const maxReport = 64 << 20

// readAnchors reads from an earlier report where the realms' chains stood.
func readAnchors(a *app, file string) (map[string]verify.Anchor, error) {
	if file == "" {
		return nil, nil
	}
	data, err := a.readFile(file, maxReport)
	if err != nil {
		return nil, err
	}
	var report verifyJSON
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, usagef("--since %s: expected what kuji verify --json writes: %w", file, err)
	}
	anchors := map[string]verify.Anchor{}
	for _, r := range report.Realms {
		switch {
		case r.OK && r.Position == 0: // nothing was in its log
		case !r.OK || r.ChainHash == verify.Hash{}:
			return nil, usagef("--since %s: realm %q: expected a good report with a position and a chain hash", file, r.Realm)
		default:
			anchors[r.Realm] = verify.Anchor{Position: r.Position, Hash: r.ChainHash}
		}
	}
	if len(anchors) == 0 {
		return nil, usagef("--since %s: it names no realm", file)
	}
	return anchors, nil
}

// beStrict makes damage of what could not be proven.
func (v *verifyJSON) beStrict(err error) error {
	unproven := each(v.unproven(), errors.New)
	if len(unproven) == 0 {
		return err
	}
	v.OK = false
	return damageError{errors.Join(append([]error{err}, unproven...)...)}
}

// name says what was verified.
func (v *verifyJSON) name() string { return choose(v.Cluster != "", "cluster "+v.Cluster, v.Data) }

// unproven says which epochs cannot be proven, and which were not decided again.
func (v *verifyJSON) unproven() (texts []string) {
	key := choose(v.Cluster != "" || v.Node != "", "of the cluster", filepath.Join(v.Data, "key"))
	for _, r := range v.Realms {
		for _, e := range r.Epochs {
			at := fmt.Sprintf("realm %s: epoch %d, from position %d on,", r.Realm, e.Epoch, e.First)
			if e.Undecided != "" {
				texts = append(texts, at+" was not decided again: "+e.Undecided+"; verify it with the build that wrote it")
			}
			if e.Lost {
				texts = append(texts, at+" cannot be proven: its seed is sealed, and the key "+key+" is missing or another one")
			}
		}
	}
	return texts
}

// verify checks the named realms, or all. Damage is a damageError, with a result for every realm. A realm with
// an anchor must go through it, and must be there if all are checked.
func (s *auditSource) verify(ctx context.Context, realms []string, anchors map[string]verify.Anchor, seen func(realm string, rec kuji.Record)) (verifyJSON, error) {
	out := s.verifyJSON
	out.OK, out.Realms = true, []verifiedRealm{}
	there, strays, err := s.realms(ctx)
	if err != nil {
		return out, err
	}
	all := realms == nil
	if all {
		realms, out.Strays = there, strays
		if len(realms) == 0 && len(anchors) == 0 {
			return out, noRealm(out.name())
		}
	}
	var damage []error
	for _, name := range slices.Sorted(maps.Keys(anchors)) {
		if all && !slices.Contains(realms, name) {
			damage = append(damage, fmt.Errorf("realm %s is missing; the earlier report has it at position %d", name, anchors[name].Position))
		}
	}
	for _, name := range realms {
		var o verify.Options
		if anchor, ok := anchors[name]; ok {
			o.Through = &anchor
		}
		if seen != nil {
			o.Seen = func(rec kuji.Record) { seen(name, rec) }
		}
		report, err := s.verifyRealm(ctx, name, o)
		one := verifiedRealm{OK: err == nil, Report: report}
		wrong, damaged := errors.AsType[*verify.Error](err)
		switch {
		case damaged:
			damage = append(damage, err)
			one.Error, one.WrongPosition, one.StateHash = wrong.Err.Error(), wrong.Position, verify.Hash{} // damage has no state
		case all && kuji.CodeOf(err) == kuji.CodeInvalid: // an engine does not look at it either
			out.Strays = append(out.Strays, name)
			continue
		case err != nil:
			return s.verifyJSON, err
		}
		out.Realms = append(out.Realms, one)
	}
	if len(damage) > 0 {
		out.OK = false
		return out, damageError{errors.Join(damage...)}
	}
	return out, nil
}

// verifyRealm returns early if ctx ends. The check then runs on in the background, and writes nothing.
func (s *auditSource) verifyRealm(ctx context.Context, name string, o verify.Options) (report verify.Report, err error) {
	done := make(chan struct{})
	var checked verify.Report
	var failed error
	go func() {
		defer close(done)
		checked, failed = s.realm(name, o)
	}()
	select {
	case <-done:
		return checked, failed
	case <-ctx.Done():
		return report, ctx.Err()
	}
}

// realmsIn lists the realms of a data directory, and the names among them that are not directories.
func realmsIn(data string) (names, strays []string, err error) {
	entries, err := os.ReadDir(filepath.Join(data, "realms"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil, usagef("%s is not a data directory: it has no folder named realms", data)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		} else {
			strays = append(strays, e.Name())
		}
	}
	return names, strays, nil
}

// verdict says whether what was verified is right.
var verdict = map[bool]string{true: "good", false: "DAMAGED"}

func printVerify(w io.Writer, v verifyJSON) {
	if v.Node != "" {
		fprintf(w, "warning: this is what node %s of cluster %s has kept. What other nodes acknowledged without it is not here\n", v.Node, v.NodeOf)
	}
	for _, name := range v.Missing {
		fprintf(w, "warning: realm %s was kept by other nodes only\n", name)
	}
	for _, name := range v.Strays {
		fprintf(w, "warning: realms/%s is not a realm: Kuji neither reads nor removes it\n", name)
	}
	if len(v.Realms) == 0 {
		fprintf(w, "%s: it holds no realm\n", v.name())
		return
	}
	rows(w, "REALM\tRESULT\tFROM\tPOSITION\tEVENTS\tDRAWS\tPLAYERS\tCATALOG\tEPOCHS\tREVEALED\tSTATE HASH", v.Realms, func(r verifiedRealm) []any {
		hash := choose(r.OK, hex.EncodeToString(r.StateHash[:]), "-")
		revealed := 0
		for _, e := range r.Epochs {
			if e.Revealed && e.Undecided == "" {
				revealed++
			}
		}
		return []any{r.Realm, verdict[r.OK], r.From, r.Position, r.Events, r.Draws, r.Players, r.Catalog, len(r.Epochs), revealed, hash}
	})
	for _, text := range v.unproven() {
		fprintf(w, "warning: %s\n", text)
	}
	for _, r := range v.Realms {
		for _, name := range r.Strays {
			fprintf(w, "warning: realm %s: snapshots/%s is not a file of Kuji: Kuji neither reads nor removes it\n", r.Realm, name)
		}
	}
}
