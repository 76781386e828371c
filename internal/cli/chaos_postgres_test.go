//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/internal/pgtest"
	"github.com/kuji-dev/kuji/internal/proxy"
	"github.com/kuji-dev/kuji/internal/step"
)

// postgresStore is a log in a PostgreSQL server with a synchronous standby.
type postgresStore struct {
	primary, standby *pgtest.Server
	at               int // which of each node's two proxies leads to the primary; the other one to the standby
	made             int // standbys so far
	small            bool
}

// smallDatabase is how much the disk of a database holds, in bytes.
const smallDatabase = 384 << 20

// chaosPassword is the database's, which no node may say.
const chaosPassword = "the-secret-of-the-database"

func (s *postgresStore) options() pgtest.Options {
	o := pgtest.Options{TCP: true, Password: chaosPassword}
	if s.small {
		o.Disk = smallDatabase
		o.Settings = map[string]string{"wal_keep_size": "64MB"}
	}
	return o
}

func (s *postgresStore) open(c *chaos) {
	c.t.Helper()
	var err error
	s.small = true
	if s.primary, err = pgtest.New(c.ctx, s.options()); errors.Is(err, pgtest.ErrNoDisk) {
		c.t.Log("the disk of the database is not filled: it has none of its own:", err)
		s.small = false
		s.primary, err = pgtest.New(c.ctx, s.options())
	}
	if errors.Is(err, pgtest.ErrNotInstalled) {
		c.t.Skip(err)
	} else if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("the database said:\n%s", wordsOf(s.primary))
		}
		if s.standby != nil {
			if err := s.standby.Close(); err != nil {
				c.t.Error(err)
			}
		}
		if err := s.primary.Close(); err != nil {
			c.t.Error(err)
		}
	})
	s.follow(c)
	c.secret = chaosPassword
	c.connectStore(func(addresses []string) string {
		return s.primary.URL(addresses...) + "&connect_timeout=2"
	}, s.primary.Address(), s.standby.Address())
}

// follow makes a standby that commits wait for.
func (s *postgresStore) follow(c *chaos) {
	c.t.Helper()
	s.made++
	name := fmt.Sprint("standby", s.made)
	var err error
	if s.standby, err = s.primary.NewStandby(c.ctx, name, s.options()); err == nil {
		if err = s.standby.Following(c.ctx); err == nil {
			err = s.primary.SetSync(c.ctx, name)
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// fails over to the standby when the primary is dead, and makes another standby.
func (s *postgresStore) failOver(c *chaos) {
	c.t.Helper()
	old := s.primary
	s.primary, s.at = s.standby, 1-s.at
	s.must(c, s.primary.Promote(c.ctx))
	s.must(c, old.Close())
	c.flows() // for now, commits wait for nobody
	s.follow(c)
	for _, name := range c.flags.Names() {
		c.toStore(name)[1-s.at].Target(s.standby.Address())
	}
}

func (*postgresStore) must(c *chaos, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// recovered waits until the primary lets people in, and starts it again if it has ended.
func (s *postgresStore) recovered(c *chaos) {
	c.t.Helper()
	for {
		select {
		case <-s.primary.Ended():
			s.must(c, s.primary.Start(c.ctx))
		default:
		}
		once, cancel := context.WithTimeout(c.ctx, time.Second)
		one, err := s.primary.Value(once, "SELECT 1")
		cancel()
		if err == nil && one == "1" {
			return
		}
		if c.ctx.Err() != nil {
			c.t.Fatal("the database does not come back: ", err)
		}
		step.Pause(c.ctx, 50*time.Millisecond)
	}
}

// each calls a function of the server on every connection of nodes: pg_terminate_backend or pg_cancel_backend.
func (s *postgresStore) each(c *chaos, function string) {
	c.t.Helper()
	s.must(c, s.primary.Exec(c.ctx, "SELECT "+function+"(pid) FROM pg_stat_activity WHERE application_name LIKE 'kuji%'"))
}

func (s *postgresStore) kept(c *chaos) []keptLog {
	return []keptLog{{"the database", c.openStore(c.ctx, s.primary.URL())}}
}

func (s *postgresStore) faults() []fault {
	database := []fault{
		{name: "kill-database", strike: func(c *chaos) {
			s.must(c, s.primary.Kill())
			step.Pause(c.ctx, time.Duration(c.rng.Int64N(int64(3*time.Second))))
			s.must(c, s.primary.Start(c.ctx))
		}},
		{name: "kill-database-and-leader", strike: func(c *chaos) {
			leader, _ := c.some()
			c.kill(leader)
			s.must(c, s.primary.Kill())
			s.must(c, s.primary.Start(c.ctx))
			c.flows()
			c.start(leader)
		}},
		{name: "kill-everything", strike: func(c *chaos) {
			s.must(c, s.primary.Kill())
			for _, name := range c.flags.Names() {
				c.kill(name)
			}
			for _, name := range c.flags.Names() {
				c.start(name)
			}
			s.must(c, s.primary.Start(c.ctx))
		}},
		{name: "backends-terminated", strike: func(c *chaos) {
			for range 10 {
				s.each(c, "pg_terminate_backend")
				step.Pause(c.ctx, time.Duration(c.rng.Int64N(int64(500*time.Millisecond))))
			}
		}},
		{name: "statements-cancelled", strike: func(c *chaos) {
			for range 200 {
				s.each(c, "pg_cancel_backend")
				step.Pause(c.ctx, time.Duration(c.rng.Int64N(int64(20*time.Millisecond))))
			}
		}},
		{name: "failover", strike: func(c *chaos) {
			s.must(c, s.primary.Kill())
			s.failOver(c)
		}},
		{name: "failover-frozen", strike: func(c *chaos) { // the old primary still stands when the standby takes over
			s.must(c, s.primary.Freeze(c.ctx))
			step.Pause(c.ctx, time.Duration(c.rng.Int64N(int64(3*time.Second))))
			s.failOver(c)
		}},
		{name: "failover-and-leader", strike: func(c *chaos) {
			leader, _ := c.some()
			c.kill(leader)
			s.must(c, s.primary.Kill())
			s.failOver(c)
			c.start(leader)
		}},
		// The rows whose commits nobody waits for any more are there, but not on the standby, which takes over.
		{name: "failover-cancelled", strike: func(c *chaos) {
			s.must(c, s.standby.Pause(c.ctx))
			for range 20 {
				s.each(c, oneOf(c, "pg_cancel_backend", "pg_terminate_backend"))
				step.Pause(c.ctx, time.Duration(c.rng.Int64N(int64(200*time.Millisecond))))
			}
			s.must(c, s.primary.Kill())
			s.must(c, s.standby.Resume())
			s.failOver(c)
		}},
		{name: "standby-gone", strike: func(c *chaos) { // commits wait meanwhile
			s.must(c, s.standby.Kill())
			c.lasts()
			s.must(c, s.standby.Start(c.ctx))
		}},
		{name: "database-frozen", strike: func(c *chaos) {
			s.must(c, s.primary.Freeze(c.ctx))
			c.lasts()
			s.must(c, s.primary.Thaw())
		}},
		{name: "read-only", strike: func(c *chaos) {
			s.must(c, s.primary.Set(c.ctx, map[string]string{"default_transaction_read_only": "on"}))
			c.lasts()
			s.must(c, s.primary.Set(c.ctx, map[string]string{"default_transaction_read_only": "off"}))
		}},
		{name: "slow-database", strike: func(c *chaos) {
			for _, name := range c.flags.Names() {
				late := time.Duration(c.rng.Int64N(int64(200 * time.Millisecond)))
				c.toStore(name).each(func(p *proxy.Proxy) { p.Delay(proxy.ToClient, late) })
			}
			c.flows()
			c.lasts()
		}},
	}
	if s.small {
		database = append(database, fault{name: "full-database", strike: func(c *chaos) {
			s.must(c, s.primary.Fill(0))
			c.lasts()
			s.must(c, s.primary.Free())
			s.recovered(c)
		}})
	}
	return external(database)
}

// wordsOf returns the end of what a server has said.
func wordsOf(s *pgtest.Server) string {
	log, err := s.Log()
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(lines[max(0, len(lines)-200):], "\n")
}
