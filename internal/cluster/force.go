package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/verify"
)

// Forced is what a new cluster has of an old one, or would have.
type Forced struct {
	Cluster string        `json:"cluster"` // the new one
	Of      string        `json:"of"`      // the old one
	Node    string        `json:"node"`    // the old one's node whose directory is used
	Lost    []LostNode    `json:"lost"`    // the old cluster's other nodes
	Realms  []ForcedRealm `json:"realms"`
	Missing []string      `json:"missing,omitempty"` // realms that other nodes kept
	Confirm string        `json:"confirm,omitempty"` // the word that says that a person saw this; absent once it is done
}

// LostNode is a node that does not answer.
type LostNode struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	Why     string `json:"why"`
}

// ForcedRealm is how far a realm has come in the directory.
type ForcedRealm struct {
	Realm    string `json:"realm"`
	Position uint64 `json:"position"`
	LastTime string `json:"last_time"` // of the last event; "": there is none
	LastID   string `json:"last_id,omitempty"`
	Epoch    uint64 `json:"epoch"` // the last one that began here
	Ended    bool   `json:"ended"` // its leader ended it in order here: it acknowledged nothing after that in this epoch
	Chain    string `json:"chain_hash"`
}

// Force makes a new cluster of what one node of an old one has kept.
type Force struct {
	Config         // of the new cluster
	From    string // data directory of the old cluster's node
	Data    string // data directory of the new cluster's node
	Former  Keys   // of the old cluster
	Confirm string // the word that a person confirmed
	Waits   func() // called before it waits for a majority of the new cluster's nodes
}

// Do changes nothing unless Confirm is the word for it. It fails with a RefusedError if the old cluster has
// nodes left, and with a [verify.Error] if the directory is damaged.
func (f *Force) Do(ctx context.Context) (out Forced, done bool, err error) {
	h, err := readHome(f.From)
	if err != nil {
		return out, false, err
	}
	if h.Cluster == f.Name {
		return out, false, refused("--cluster %s is the old cluster's name: expected another one, such as %s-2. Old nodes could join a cluster of their own name", h.Cluster, h.Cluster)
	}
	if h.Left != "" && h.Left != f.Name {
		return out, false, refused("--from %s: cluster %s was made of it already", f.From, h.Left)
	}
	out = Forced{Cluster: f.Name, Of: h.Cluster, Node: h.Node, Realms: []ForcedRealm{}}
	if out.Lost, err = knock(ctx, h); err != nil {
		return out, false, err
	}
	seal, older := f.Former.Seals(h.Cluster)
	sealed := append(older, seal)
	done, err = f.gather(ctx, sealed, &out)
	if err != nil || !done {
		return out, false, err
	}
	h.Left = f.Name
	if err := h.write(f.From); err != nil {
		return out, false, err
	}
	f.Waits()
	err = f.Offline(ctx, map[string]string{f.Node: f.Data}, func(d Log) error { return f.begin(ctx, d, sealed, out.Realms) })
	out.Confirm = ""
	return out, err == nil, err
}

// knockTime bounds how long a lost node may take to accept a connection.
const knockTime = 3 * time.Second

// knock returns the old cluster's other nodes. It refuses if one of them answers.
func knock(ctx context.Context, h *home) ([]LostNode, error) {
	lost, there := []LostNode{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(h.Peers)) {
		at, err := ParsePeer(h.Peers[name])
		switch {
		case name == h.Node:
			continue
		case err != nil:
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		conn, err := (&net.Dialer{Timeout: knockTime}).DialContext(ctx, "tcp", at.Requests())
		if err != nil {
			lost = append(lost, LostNode{name, at.Log(), err.Error()})
			continue
		}
		there = append(there, fmt.Sprintf("node %s at %s", name, at.Requests()))
		_ = conn.Close() // nothing was sent
	}
	if len(there) > 0 {
		return nil, refused("%s of cluster %s accepts connections: a cluster that has nodes left must not become two. If its disk is intact, start this node with \"kuji serve\" as ever. If it is lost, stop what listens there", strings.Join(there, ", "), h.Cluster)
	}
	return lost, nil
}

func (f *Force) backup() string { return filepath.ToSlash(filepath.Join(f.Data, "backup")) }

// gather notes what the new cluster would have. If that was confirmed, it backs it up.
func (f *Force) gather(ctx context.Context, sealed [][32]byte, out *Forced) (confirmed bool, err error) {
	c, err := OpenCopy(ctx, f.From)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s\n", out.Of, out.Cluster)
	for _, realm := range c.Realms {
		one := ForcedRealm{Realm: realm}
		report, err := verify.Driver(c.driver, realm, verify.Options{Keys: sealed, Seen: func(rec kuji.Record) {
			one.LastTime, one.LastID = time.UnixMilli(rec.Time).UTC().Format(time.RFC3339), cmp.Or(rec.ID, one.LastID)
		}})
		if _, wrong := errors.AsType[*verify.Error](err); wrong {
			err = fmt.Errorf("what node %s has kept is wrong: %w", c.Node, err)
		}
		if err != nil {
			return false, err
		}
		one.Position, one.Chain = report.Position, hex.EncodeToString(report.ChainHash[:])
		if n := len(report.Epochs); n > 0 {
			one.Epoch, one.Ended = report.Epochs[n-1].Epoch, report.Epochs[n-1].Revealed
		}
		out.Realms = append(out.Realms, one)
		fmt.Fprintf(hash, "%s %d %s\n", realm, one.Position, one.Chain)
	}
	out.Missing = c.Missing
	fmt.Fprintf(hash, "without %q\n", c.Missing)
	if out.Confirm = hex.EncodeToString(hash.Sum(nil)[:4]); f.Confirm != out.Confirm {
		return false, nil
	}
	for _, realm := range c.Realms {
		source, done, err := c.Backup(realm)
		if err != nil {
			return false, err
		}
		_, err = backup.Write(ctx, f.backup(), realm, source)
		if err = errors.Join(err, done()); err != nil {
			return false, err
		}
	}
	return true, nil
}

// begin restores the backup to the new cluster, and begins an epoch of each realm. The key that sealed the
// seed of the epoch before reveals it: nobody draws from it any more.
func (f *Force) begin(ctx context.Context, d Log, sealed [][32]byte, realms []ForcedRealm) error {
	key, old := f.Seals()
	old = append(old, sealed...)
	there, err := d.Realms(ctx)
	if err == nil && len(there) == 0 {
		_, err = backup.RestoreTo(ctx, f.backup(), d, key, old...)
	}
	if err != nil {
		return err
	}
	engine, err := kuji.Open("", kuji.Options{Driver: d, Key: key, OldKeys: old})
	if err != nil {
		return err
	}
	for _, r := range realms {
		if _, err := engine.Realm(r.Realm); err != nil {
			return errors.Join(err, engine.Close())
		}
	}
	return engine.Close()
}
