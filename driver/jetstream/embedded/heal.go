package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The files of a stream's Raft group can be damaged. Then the server takes no part in the stream:
//
//	jetstream/$G/streams/STREAM        its messages
//	jetstream/$SYS/_js_/GROUP          Raft's log and snapshots; meta.inf says of which stream
//	                          tav.idx, peers.idx: for whom it voted, and who votes
//
// Heal removes both, except the votes, and the server fetches them as after the loss of a disk.
// Since it started, this server has acknowledged nothing for the stream. If all others have what
// the stream's leader has, a majority has it without this server, and nothing is lost.

// answerTime bounds one question to a stream's leader.
const answerTime = 2 * time.Second

// Heal removes copies of streams that the server cannot use, restarts it to fetch them again, and
// returns their names. If the others may lack something of one, it changes nothing and says why.
func (s *Server) Heal() (healed []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	damaged := s.damaged()
	if len(damaged) == 0 || s.closed {
		return nil, nil
	}
	kept := stored(s.o.Dir)
	groups, err := kept.groups()
	if err != nil {
		return nil, err
	}
	for _, stream := range damaged {
		if groups[stream] == "" {
			return nil, fmt.Errorf("this node's copy of stream %s is damaged, and no file in %s says where its votes are", stream, s.o.Dir)
		}
	}
	if err := s.spare(damaged); err != nil {
		return nil, err
	}
	s.stop()
	for _, stream := range damaged {
		err = errors.Join(err, kept.forget(stream, groups[stream]))
	}
	s.unhealed = errors.Join(err, s.start())
	return damaged, s.unhealed
}

// damaged returns the streams whose Raft files the server cannot read.
//
// The server's health says why it takes no part in a stream until the stream's assignment is
// updated. Then it says only that the group is missing, as it does while it opens the group, which
// takes long on a slow disk. So the group counts as damaged only if the server logged that it is.
func (s *Server) damaged() (streams []string) {
	for _, e := range s.health().Errors {
		_, why, _ := strings.Cut(e.Error, " is not current: ")
		_, logged := s.said.damaged.Load(e.Stream)
		unread := strings.Contains(why, "assignment error") && strings.Contains(why, corrupt) ||
			why == "group node missing" && logged
		if e.Type == server.HealthzErrorStream && e.Stream != "" && unread {
			streams = append(streams, e.Stream)
		}
	}
	slices.Sort(streams)
	return streams
}

// stored is a server's directory.
type stored string

// streamsDir is where the streams are.
func (dir stored) streamsDir() string {
	return filepath.Join(string(dir), server.JetStreamStoreDir, server.DEFAULT_GLOBAL_ACCOUNT, "streams")
}

// groups returns the directories of the streams' groups.
func (dir stored) groups() (byStream map[string]string, err error) {
	byStream = map[string]string{}
	raft := filepath.Join(string(dir), server.JetStreamStoreDir, server.DEFAULT_SYSTEM_ACCOUNT, "_js_")
	dirs, err := os.ReadDir(raft)
	if err != nil {
		return nil, err
	}
	for _, group := range dirs {
		path := filepath.Join(raft, group.Name())
		data, err := os.ReadFile(filepath.Join(path, server.JetStreamMetaFile))
		var about server.StreamConfig
		if err != nil || json.Unmarshal(data, &about) != nil || about.Metadata["type"] != "stream" {
			continue // not a stream's, or damaged too
		}
		byStream[about.Metadata["stream"]] = path
	}
	return byStream, nil
}

// spare returns nil if all other servers have all of the streams.
func (s *Server) spare(streams []string) error {
	conn, err := nats.Connect("", s.Connect())
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(answerTime))
	if err != nil {
		return err
	}
	for _, stream := range streams {
		not := func(why string, args ...any) error {
			return fmt.Errorf("this node's copy of stream %s is damaged, and is not fetched again "+why, append([]any{stream}, args...)...)
		}
		one, err := js.Stream(context.Background(), stream)
		if err != nil {
			return not("while no server says what the others have: %w", err)
		}
		group := one.CachedInfo().Cluster
		if group == nil || group.Leader == "" || group.Leader == s.o.Node {
			return not("while no other node leads it")
		}
		for _, p := range group.Replicas {
			if p.Name != s.o.Node && (p.Offline || !p.Current || p.Lag > 0) {
				return not("before node %s has caught up", p.Name)
			}
		}
	}
	return nil
}

// forget removes a stream and what Raft has of it, but for the votes.
func (dir stored) forget(stream, group string) error {
	entries, err := os.ReadDir(group)
	if err != nil {
		return err
	}
	errs := []error{os.RemoveAll(filepath.Join(dir.streamsDir(), stream))}
	for _, e := range entries {
		if e.Name() != "tav.idx" && e.Name() != "peers.idx" {
			errs = append(errs, os.RemoveAll(filepath.Join(group, e.Name())))
		}
	}
	return errors.Join(errs...)
}
