package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// The catalog of --catalog, in short:
//
//	no catalog is in force                    the file is applied
//	the file is what is in force              nothing
//	the file is what it was                   nothing, and the log says that another one is in force
//	the file was applied by hand since        nothing, as before
//	what is in force is the file as it was    the file is applied
//	both are others                           the server refuses to start
//
// What the file was, a file of the data directory says: DATA/catalogs/REALM has the version that it
// was, in decimal, a space, its hash in hexadecimal, and a newline. A restored directory has none. Then
// nobody knows what is newer, and what is in force stays. If the file has changed, and catalogs came in
// force since, the realm's log says whether one of them was the file. Only then a start reads the log.

// catalogStart is how a server starts with --catalog.
type catalogStart struct {
	*app
	f   *serveFlags
	c   *catalog.Catalog // nil: there is no --catalog
	log *slog.Logger
}

// seenFile is a catalog's file as a server saw it last.
type seenFile struct {
	version uint64 // of the catalog in force that it was; 0: it was another one
	hash    [32]byte
}

// before refuses a first catalog that deserves a second look, before it makes a realm for it.
func (s *catalogStart) before(ctx context.Context) error {
	if s.c == nil || s.f.mustExist {
		return nil
	}
	if _, err := os.Stat(filepath.Join(s.f.data, "realms", s.f.realm)); !errors.Is(err, fs.ErrNotExist) {
		return nil // also errors: who opens the directory meets them again
	}
	plan, err := planAlone(ctx, s.now, s.c)
	if err != nil {
		return fmt.Errorf("plan catalog %s: %w", s.f.catalog, err)
	}
	if plan.Warnings() == 0 {
		return nil
	}
	return s.judge(&plan)
}

// apply puts the catalog in force, if it should be.
func (s *catalogStart) apply(ctx context.Context, engine *kuji.Engine) error {
	if s.c == nil {
		return nil
	}
	realm, err := engine.Realm(s.f.realm)
	if err != nil {
		return fmt.Errorf("open realm %s: %w", s.f.realm, err)
	}
	inForce, err := realm.Catalogs().InForce(ctx)
	if err != nil {
		return fmt.Errorf("read the catalog of realm %s: %w", s.f.realm, err)
	}
	now := seenFile{inForce.Version, s.c.Hash()}
	was, unread := s.seen()
	byHand := uint64(0) // the version in which somebody applied the file as it is now
	if was != nil && was.hash != now.hash && now.hash != inForce.Hash {
		if byHand, err = s.appliedSince(ctx, realm, was.version, inForce.Version); err != nil {
			return err
		}
	}
	switch {
	case inForce.Version == 0, s.f.catalogOver == inForce.Version && now.hash != inForce.Hash:
		return s.put(ctx, realm, inForce.Version)
	case now.hash == inForce.Hash:
		s.note(now)
	case was == nil:
		now.version = 0
		s.note(now)
		why := "no server has started with this directory and --catalog before"
		if unread != nil {
			why = s.place() + " cannot be read: " + unread.Error()
		}
		s.keeps(inForce.Version, "nobody knows which of the two is newer: "+why)
	case was.hash == now.hash:
		s.keeps(inForce.Version, "the file has not changed since a server saw it last, so the other one is newer")
	case byHand > 0:
		now.version = byHand
		s.note(now)
		s.keeps(inForce.Version, fmt.Sprintf("the file is version %d, so the other one is newer", byHand))
	case was.hash == inForce.Hash:
		return s.put(ctx, realm, inForce.Version)
	default:
		return s.bothChanged(&inForce, was)
	}
	return nil
}

// appliedSince returns the newest version after one that a server saw, in which the file as it is now
// came in force; 0: none. Somebody has applied the file then, and another catalog after it, perhaps the
// one from before. A version 0 says that the file was none when a server saw it: then nobody knows.
func (s *catalogStart) appliedSince(ctx context.Context, realm *kuji.Realm, seen, inForce uint64) (version uint64, err error) {
	if seen == 0 || seen == inForce {
		return 0, nil
	}
	all, err := realm.Catalogs().Versions(ctx)
	if err != nil {
		return 0, fmt.Errorf("list the catalogs of realm %s: %w", s.f.realm, err)
	}
	for i := range all {
		if all[i].Version > seen && all[i].Hash == s.c.Hash() {
			version = all[i].Version
		}
	}
	return version, nil
}

// keeps says that the catalog in force is not that of the file.
func (s *catalogStart) keeps(version uint64, why string) {
	s.log.Warn("the catalog in force is not that of the file, and stays: to apply the file, use \"kuji apply\"",
		"realm", s.f.realm, "version", version, "file", s.f.catalog, "why", why)
}

// bothChanged refuses to choose between the file and what is in force.
func (s *catalogStart) bothChanged(inForce *kuji.CatalogView, was *seenFile) error {
	since := "since a server saw it last"
	if was.version > 0 {
		since = fmt.Sprintf("since it was version %d", was.version)
	}
	return refusedError{fmt.Sprintf("catalog %s not applied and server not started: both have changed. The file has changed %s, and somebody has applied another catalog: "+
		"version %d is in force since %s. To put the file in force, start with --catalog-over %d. To keep version %d, start without --catalog, or put it in the file: \"kuji catalog export\"",
		s.f.catalog, since, inForce.Version, time.UnixMilli(inForce.Time).UTC().Format(time.RFC3339), inForce.Version, inForce.Version)}
}

// put says what the catalog changes, and applies it.
func (s *catalogStart) put(ctx context.Context, realm *kuji.Realm, over uint64) error {
	plan, err := realm.Catalogs().Plan(ctx, s.c)
	if err != nil {
		return fmt.Errorf("plan catalog %s: %w", s.f.catalog, err)
	}
	if err := s.judge(&plan); err != nil {
		return err
	}
	note := kuji.Note{Reason: "kuji serve --catalog"}
	res, err := realm.Catalogs().Apply(ctx, s.c, kuji.ApplyOptions{Over: &over, Note: note})
	if err != nil {
		return fmt.Errorf("apply catalog %s: %w", s.f.catalog, err)
	}
	s.log.Info("catalog applied", "realm", s.f.realm, "version", res.Receipt.CatalogVersion, "position", res.Receipt.Position,
		"changes", len(plan.Changes), "kept_entries", plan.Kept, "file", s.f.catalog)
	s.note(seenFile{res.Receipt.CatalogVersion, s.c.Hash()})
	return nil
}

// judge logs a plan, and refuses one that deserves a second look.
func (s *catalogStart) judge(plan *kuji.Plan) error {
	for i := range plan.Changes {
		c := &plan.Changes[i]
		if plan.Version > 1 && c.Kind != kuji.ChangeNotice {
			s.log.Info("the catalog changes something", "realm", s.f.realm, "change", c.Text)
		}
		if c.Warning != "" {
			s.log.Warn("the catalog deserves a second look", "realm", s.f.realm, "of", strings.TrimSuffix(c.ID+"/"+c.Entry, "/"), "warning", c.Warning)
		}
	}
	if n := plan.Warnings(); n > 0 && !s.f.acceptWarnings {
		return refusedError{fmt.Sprintf("catalog %s not applied and server not started: %d of the changes deserve a second look. Start with --accept-warnings to apply them", s.f.catalog, n)}
	}
	return nil
}

// place returns the file that says what the catalog's file was.
func (s *catalogStart) place() string { return filepath.Join(s.f.data, "catalogs", s.f.realm) }

// maxSeen bounds that file, in bytes.
const maxSeen = 200

// seen returns what the catalog's file was, nil if nobody knows. err says why it cannot be read.
func (s *catalogStart) seen() (was *seenFile, err error) {
	text, err := s.readFile(s.place(), maxSeen)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	was = &seenFile{}
	var hash []byte
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d %x\n", &was.version, &hash)
	}
	if err == nil && copy(was.hash[:], hash) != len(was.hash) {
		err = errors.New("expected a version and a hash of 64 hexadecimal digits")
	}
	if err != nil {
		return nil, err
	}
	return was, nil
}

// note notes what the catalog's file is. If that fails, the next start knows less, and applies nothing
// that it would not apply otherwise.
func (s *catalogStart) note(now seenFile) {
	if was, err := s.seen(); err == nil && was != nil && *was == now {
		return
	}
	place := s.place()
	err := os.MkdirAll(filepath.Dir(place), 0o700)
	if err == nil {
		err = replaceFile(place, fmt.Appendf(nil, "%d %s\n", now.version, hex.EncodeToString(now.hash[:])))
	}
	if err != nil {
		s.log.Warn("what the catalog's file is cannot be noted: the next start may ask which catalog is newer", "file", place, "error", err)
	}
}
