package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kuji-dev/kuji/driver"
)

// everyMinute is how often the settings are looked at, besides with each new connection.
const everyMinute = time.Minute

// promise is what the database's settings promise. They can change at any time.
type promise struct {
	mu  sync.Mutex
	now driver.Promise
}

// Promise implements [driver.Promiser].
func (d *Driver) Promise() driver.Promise {
	d.promise.mu.Lock()
	defer d.promise.mu.Unlock()
	return d.promise.now
}

// settings are those that a promise follows from.
type settings struct {
	commit   string // synchronous_commit
	fsync    string
	pages    string // full_page_writes
	standbys string // synchronous_standby_names
	delay    string // wal_writer_delay
}

// look asks a server for its settings. It is an error if the server is a standby.
func (p *promise) look(ctx context.Context, c *conn) error {
	var s settings
	var standby bool
	err := c.row(ctx, `SELECT pg_is_in_recovery(), current_setting('synchronous_commit'), current_setting('fsync'),
		current_setting('full_page_writes'), current_setting('synchronous_standby_names'), current_setting('wal_writer_delay')`).
		Scan(&standby, &s.commit, &s.fsync, &s.pages, &s.standbys, &s.delay)
	if err != nil {
		return err
	}
	if standby {
		return errors.New("the server is a standby: it takes no writes")
	}
	now := s.promise()
	p.mu.Lock()
	changed := p.now != now
	p.now = now
	p.mu.Unlock()
	if changed {
		level := slog.LevelInfo
		if now.Survives < driver.SurvivesCrash {
			level = slog.LevelWarn
		}
		c.d.o.Logger.Log(ctx, level, "PostgreSQL: what acknowledged entries survive", "survives", now.Survives.String(), "why", now.Why)
	}
	return nil
}

// promise says what follows from the settings.
func (s settings) promise() driver.Promise {
	why := fmt.Sprintf("synchronous_commit=%s, fsync=%s, synchronous_standby_names='%s'", s.commit, s.fsync, s.standbys)
	p := driver.Promise{Survives: driver.SurvivesCrash}
	switch {
	case s.fsync != "on":
		p.Survives = driver.SurvivesServer
		why += ": a crash of the database's machine may lose or damage everything"
	case s.commit == "off":
		p.Survives = driver.SurvivesServer
		why += fmt.Sprintf(": a crash of the database may lose what was acknowledged in the last 3 × wal_writer_delay, which is %s", s.delay)
	case s.standbys == "":
		why += ": no standby has to have an entry"
	case s.commit == "local":
		why += ": a commit does not wait for the standbys"
	case s.commit == "remote_write":
		p.Survives = driver.SurvivesMachine
		why += ": a crash of both machines at a time may lose what a standby has received and not yet on its disk"
	default:
		p.Survives = driver.SurvivesMachine
	}
	if s.pages != "on" {
		why += ", full_page_writes=" + s.pages + ": a crash may damage pages unless the file system writes them whole"
	}
	p.Why = why
	return p
}

// watch looks at the settings every minute, and closes connections that nobody needs.
func (d *database) watch() {
	for d.life.Err() == nil {
		pause(d.life, everyMinute)
		d.mu.Lock()
		d.dropIdle(maxIdle)
		d.mu.Unlock()
		if err := d.once(d.life, d.promise.look); err != nil && d.life.Err() == nil {
			d.o.Logger.Info("PostgreSQL: not available now", "error", err)
		}
	}
}
