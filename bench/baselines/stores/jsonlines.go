package stores

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// JSONLines is Locked with a log: a line of JSON for each draw, written
// through a buffer. A failed write is kept and returned by Sync and Close.
type JSONLines struct {
	mu    sync.Mutex
	state *Locked
	file  *os.File
	buf   *bufio.Writer
	lines *json.Encoder
	err   error
	bytes int64
}

type line struct {
	ID     string `json:"id,omitempty"`
	Player string `json:"player"`
	Entry  int    `json:"entry"`
}

// OpenJSONLines returns a store that draws by weights, which must not be empty. It logs to a file,
// and first reads it if it exists.
func OpenJSONLines(file string, weights []uint64) (*JSONLines, error) {
	f, err := os.OpenFile(filepath.Clean(file), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &JSONLines{state: NewLocked(weights), file: f, buf: bufio.NewWriterSize(f, 64<<10)}
	if err := j.replay(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	j.lines = json.NewEncoder(counted{j})
	return j, nil
}

func (j *JSONLines) replay() error {
	in := json.NewDecoder(bufio.NewReaderSize(j.file, 1<<20))
	for n := 1; in.More(); n++ {
		var l line
		if err := in.Decode(&l); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if j.state.players[l.Player] == nil {
			j.state.players[l.Player] = make(map[int]int)
		}
		j.state.players[l.Player][l.Entry]++
		if l.ID != "" {
			j.state.ids[l.ID] = l.Entry
		}
	}
	return nil
}

// counted counts the bytes that go to the log.
type counted struct{ *JSONLines }

func (c counted) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return c.buf.Write(p)
}

// Draw implements Store. It is not durable before Sync.
func (j *JSONLines) Draw(id, player string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := len(j.state.ids)
	entry := j.state.draw(id, player)
	if id != "" && len(j.state.ids) == before { // answered before
		return entry
	}
	j.err = errors.Join(j.err, j.lines.Encode(line{id, player, entry}))
	return entry
}

// Sync makes every draw so far durable.
func (j *JSONLines) Sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = errors.Join(j.err, j.buf.Flush(), j.file.Sync())
	return j.err
}

// Bytes returns how many bytes were logged since the store was opened.
func (j *JSONLines) Bytes() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes
}

// Held implements Store.
func (j *JSONLines) Held(player string, entry int) int { return j.state.Held(player, entry) }

// Close implements Store.
func (j *JSONLines) Close() error { return errors.Join(j.Sync(), j.file.Close()) }
