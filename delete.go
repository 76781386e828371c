package kuji

import (
	"context"
	"errors"

	"github.com/kuji-dev/kuji/driver"
)

// DeleteRealm closes a realm and deletes its log and its files. It cannot be undone. confirm must be the name once more.
// After a crash the realm is there whole, or not at all. A later realm of that name begins empty.
//
// CodeInvalid: confirm differs. CodeNotFound: there is no such realm. CodeConflict: the engine follows, or what keeps its
// realms cannot delete any. CodeFailed: it could not be deleted, or not yet all of it: then opening it goes on.
func (e *Engine) DeleteRealm(ctx context.Context, name, confirm string) error {
	if err := CheckRealm(name); err != nil {
		return err
	}
	deleter, can := e.world.driver.(driver.Deleter)
	switch {
	case confirm != name:
		return errf(CodeInvalid, "confirm", "%q; deleting realm %q needs its name once more: it cannot be undone", confirm, name)
	case e.o.Follow || !can:
		return errf(CodeConflict, "realm", "realm %q cannot be deleted here: other nodes have it too, or what keeps it deletes nothing", name)
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return errf(CodeClosed, "", "the engine is closed")
	}
	was, now := e.realms[name], &opening{done: make(chan struct{}), err: errf(CodeClosed, "", "realm %q was being deleted", name)}
	e.realms[name] = now
	e.mu.Unlock()
	defer close(now.done)
	defer e.forget(name, now)
	var closing error
	if was != nil {
		if <-was.done; was.err == nil {
			closing = closeRealm(was.realm) // however it ends, the log is closed
		}
	}
	err := deleter.Delete(ctx, name)
	if errors.Is(err, driver.ErrNotExist) {
		return errf(CodeNotFound, "realm", "there is no realm %q", name)
	}
	if err != nil {
		return &Error{Code: CodeFailed, Message: "deleting realm " + name, Err: errors.Join(err, closing)}
	}
	e.world.levels.of.Delete(name)
	return nil
}
