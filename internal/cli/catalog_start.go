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

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// What --catalog does at a start:
//
//	no catalog is in force                    the file is applied
//	the file is what is in force              nothing
//	the file is what it was                   nothing, and the log says that another one is in force
//	the file was applied by hand since        the same
//	what is in force is the file as it was    the file is applied
//	both are others                           the server refuses to start
//
// DATA/catalogs/REALM says what the file was: the version in decimal, a space, the hash in hexadecimal, a
// newline. A restored directory has no such file: nobody knows what is newer, and what is in force stays. If
// the file has changed, and catalogs came into force since, a start reads the log to see if one was the file.

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

// before refuses a first catalog that deserves a second look, before a realm is made for it.
func (s *catalogStart) before(ctx context.Context) error {
	if s.c == nil || s.f.mustExist {
		return nil
	}
	if _, err := os.Stat(filepath.Join(s.f.data, "realms", s.f.realm)); !errors.Is(err, fs.ErrNotExist) {
		return nil // opening the directory meets other errors again
	}
	plan, err := planOver(ctx, s.now, nil, s.c)
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
		s.note(seenFile{0, now.hash})
		why := "no server has started with this directory and --catalog before"
		if unread != nil {
			why = s.place() + " cannot be read: " + unread.Error()
		}
		s.keeps(inForce.Version, "nobody knows which of the two is newer: "+why)
	case was.hash == now.hash:
		s.keeps(inForce.Version, "the file has not changed since a server saw it last, so the other one is newer")
	case byHand > 0:
		s.note(seenFile{byHand, now.hash})
		s.keeps(inForce.Version, fmt.Sprintf("the file is version %d, so the other one is newer", byHand))
	case was.hash == inForce.Hash:
		return s.put(ctx, realm, inForce.Version)
	default:
		since := choose(was.version > 0, fmt.Sprintf("since it was version %d", was.version), "since a server saw it last")
		return refusedError{fmt.Sprintf("catalog %s not applied and server not started: both have changed. The file has changed %s, and somebody has applied another catalog: "+
			"version %d is in force since %s. To put the file in force, start with --catalog-over %d. To keep version %d, start without --catalog, or put it in the file: \"kuji catalog export\"",
			s.f.catalog, since, inForce.Version, utc(inForce.Time), inForce.Version, inForce.Version)}
	}
	return nil
}

// appliedSince returns the newest version after seen in which somebody applied the file as it is now; 0: none.
// seen is 0 if the file was not in force when a server saw it: then nobody knows.
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

// keeps logs that the catalog in force is not that of the file.
func (s *catalogStart) keeps(version uint64, why string) {
	s.log.Warn("the catalog in force is not that of the file, and stays: to apply the file, use \"kuji apply\"",
		"realm", s.f.realm, "version", version, "file", s.f.catalog, "why", why)
}

// put logs what the catalog changes, and applies it.
func (s *catalogStart) put(ctx context.Context, realm *kuji.Realm, over uint64) error {
	plan, err := realm.Catalogs().Plan(ctx, s.c)
	if err != nil {
		return fmt.Errorf("plan catalog %s: %w", s.f.catalog, err)
	}
	if err := s.judge(&plan); err != nil {
		return err
	}
	res, err := realm.Catalogs().Apply(ctx, s.c, kuji.ApplyOptions{Over: &over, Note: kuji.Note{Reason: "kuji serve --catalog"}})
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
	for _, c := range planMessage(plan).GetChanges() {
		if plan.Version > 1 && c.GetKind() != kujiv1.ChangeKind_CHANGE_KIND_NOTICE {
			s.log.Info("the catalog changes something", "realm", s.f.realm, "change", c.GetText())
		}
		if c.GetWarning() != "" {
			s.log.Warn("the catalog deserves a second look", "realm", s.f.realm, "of", changed(c), "warning", c.GetWarning())
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
func (s *catalogStart) seen() (*seenFile, error) {
	text, err := s.readFile(s.place(), maxSeen)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	was, hash := &seenFile{}, []byte(nil)
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

// note writes down what the catalog's file is. If that fails, the next start knows less, and applies no more.
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
		s.log.Warn("what the catalog's file is cannot be written down: the next start may ask which catalog is newer", "file", place, "error", err)
	}
}
