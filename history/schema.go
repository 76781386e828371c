package history

import "strings"

// format is the version of the schema. Another one is refused: a history can be built again.
const format = 2

// schema is the tables, for both databases: INT and NAME are types, CLUSTERED is said of a table
// whose rows stand in the order of its key. docs/history.md explains them.
const schema = `
CREATE TABLE IF NOT EXISTS players (id INT PRIMARY KEY, name NAME NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS items (id INT PRIMARY KEY, name NAME NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS pools (id INT PRIMARY KEY, name NAME NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS events (seq INT PRIMARY KEY, time INT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL,
	player INT, pool INT, request TEXT, detail TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pool_events (pool INT NOT NULL, seq INT NOT NULL, PRIMARY KEY (pool, seq)) CLUSTERED;
CREATE TABLE IF NOT EXISTS item_events (item INT NOT NULL, seq INT NOT NULL, PRIMARY KEY (item, seq)) CLUSTERED;
CREATE TABLE IF NOT EXISTS changes (player INT NOT NULL, seq INT NOT NULL, item INT NOT NULL, delta INT NOT NULL, balance INT,
	PRIMARY KEY (player, seq, item)) CLUSTERED;
CREATE TABLE IF NOT EXISTS holdings (item INT NOT NULL, player INT NOT NULL, quantity INT NOT NULL,
	PRIMARY KEY (item, player)) CLUSTERED;
CREATE TABLE IF NOT EXISTS progress (id INT PRIMARY KEY, format INT NOT NULL, realm TEXT NOT NULL,
	position INT NOT NULL, event INT NOT NULL, last INT NOT NULL, complete_from INT NOT NULL, kept_from INT NOT NULL, kept_time INT NOT NULL)`

// statements returns the schema in the words of a database.
func statements(integer, name, clustered string) []string {
	sql := strings.NewReplacer(" INT", " "+integer, " NAME", " "+name, " CLUSTERED", clustered).Replace(schema)
	return strings.Split(strings.TrimSpace(sql), ";\n")
}
