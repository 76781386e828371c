package redis

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
)

// command is what the server knows of a command. Except EXEC, each has command, read or answer.
type command struct {
	name        string
	usage       string // its arguments
	summary     string
	least, most int                                            // arguments
	open        bool                                           // before AUTH, too
	command     *words                                         // for the engine
	member      bool                                           // the command can be between MULTI and EXEC
	read        func(realm string, a *arguments) proto.Message // a request of the API that reads
	answer      func(c *conn, a *arguments)                    // of a command about the connection
}

// commands is all commands. Those that change something are the contract's: see words.go.
func commands() []*command {
	return append(engineCommands(), []*command{
		{name: "MULTI", summary: "Begin a group: what follows waits for EXEC.", answer: answerMulti},
		{name: "EXEC", summary: "Carry out the group, whole or not at all."},
		{name: "DISCARD", summary: "Forget the group.", answer: answerDiscard},
		{name: "PLAYER", usage: "player", summary: "What a player holds.", least: 1, most: 1, read: readPlayer},
		{name: "QUESTS", usage: "player", summary: "Quests, and how far a player is in them.", least: 1, most: 1, read: readQuests},
		{name: "RANKS", usage: "counter [AROUND player] [FROM n] [LIMIT n] [ENDED]", summary: "Who stands where in a counter that ranks players.", least: 1, most: 8, read: readRanks},
		{name: "ROUND", usage: "number [OFFSET n] [LIMIT n]", summary: "A round, and who has joined it.", least: 1, most: 5, read: readRound},
		{name: "ROUNDS", usage: "[OFFSET n] [LIMIT n]", summary: "The rounds that are open.", most: 4, read: readRounds},
		{name: "POOL", usage: "pool [OFFSET n] [LIMIT n]", summary: "A pool and its stock.", least: 1, most: 5, read: readPool},
		{name: "ODDS", usage: "pool [PLAYER player]", summary: "The exact odds of the next draw.", least: 1, most: 3, read: readOdds},
		{name: "REALM", usage: "[realm]", summary: "Choose the realm of the commands that follow, or tell which it is.", most: 1, answer: answerRealm},
		{name: "AUTH", usage: "[realm] key", summary: "Present an API key or a player token.", least: 1, most: 2, open: true, answer: answerAuth},
		{name: "HELLO", usage: "[2|3 [AUTH realm key] [SETNAME name]]", summary: "Choose the protocol's version.", most: 6, open: true, answer: answerHello},
		{name: "PING", usage: "[text]", summary: "Answer PONG, or the text.", most: 1, answer: answerPing},
		{name: "ECHO", usage: "text", summary: "Answer the text.", least: 1, most: 1, answer: answerEcho},
		{name: "SELECT", usage: "0", summary: "Do nothing: a realm is chosen by REALM.", least: 1, most: 1, answer: answerSelect},
		{name: "INFO", usage: "[section ...]", summary: "That the server is ready: some clients ask before anything else.", most: maxWords, answer: answerInfo},
		{name: "CLIENT", usage: "ID|SETNAME name|SETINFO LIB-NAME|LIB-VER text|MAINT_NOTIFICATIONS ON|OFF [option text ...]", summary: "What clients say of themselves; it is not kept.", least: 1, most: maxClient, answer: answerClient},
		{name: "COMMAND", usage: "[COUNT|INFO|DOCS [name ...]]", summary: "The commands.", most: maxWords, answer: answerCommand},
		{name: "QUIT", summary: "End the connection.", open: true, answer: answerQuit},
	}...)
}

// Init makes a server ready to serve. Its exported fields must be set.
func (s *Server) Init() *Server {
	s.byName, s.all = make(map[string]*command), make(map[*conn]struct{})
	for _, cmd := range commands() {
		s.byName[cmd.name] = cmd
	}
	return s
}

// Usage is the commands by name, with their arguments.
func Usage() map[string]string {
	out := make(map[string]string)
	for _, cmd := range commands() {
		out[cmd.name] = cmd.usage
	}
	return out
}

var (
	errNoAuth = contract.Refused(connect.CodeUnauthenticated, kujiv1.Reason_REASON_UNAUTHENTICATED,
		fmt.Errorf("want AUTH with an API key or a player token first"))
	errNoLongerValid = contract.Refused(connect.CodeUnauthenticated, kujiv1.Reason_REASON_UNAUTHENTICATED,
		fmt.Errorf("the key is no longer valid; the command was not carried out"))
)

// namedError is an error that has a name of its own in the Redis protocol, which clients look for.
type namedError struct {
	kind string
	code connect.Code
	text string
	err  error // for the log, too; may be nil
}

func (e *namedError) Error() string { return e.kind + " " + e.text }

// Unwrap returns what is for the log, too.
func (e *namedError) Unwrap() error { return e.err }

// handle carries out a command of that many bytes, or adds it to the run.
func (c *conn) handle(words [][]byte, size int) {
	a := &arguments{slot{cmd: c.s.byName[string(bytes.ToUpper(words[0][:min(len(words[0]), 16)]))], size: size}, words[1:]}
	switch cmd := a.cmd; {
	case c.client.Access == nil && (cmd == nil || !cmd.open):
		a.err = errNoAuth
	case cmd == nil:
		c.atomic.broken = c.atomic.open
		a.err = &namedError{"ERR", connect.CodeUnimplemented, fmt.Sprintf("unknown command %.40q, see COMMAND DOCS", words[0]), nil}
	}
	if a.err != nil {
		c.reject(a.slot)
		return
	}
	if n := len(a.words); n < a.cmd.least || n > a.cmd.most {
		a.wrong("", "%d arguments, want %s", n, strings.TrimSpace(a.cmd.name+" "+a.cmd.usage))
	}
	ends := a.cmd.name == "EXEC" || a.cmd.name == "DISCARD" || a.cmd.name == "QUIT"
	switch {
	case a.cmd.name == "EXEC" && a.err == nil:
		c.atomic.exec(c, a)
	case c.atomic.open && (!ends || a.err != nil):
		c.atomic.queue(c, a)
	case a.cmd.command == nil && a.cmd.read == nil:
		a.carryOut(c)
	default:
		c.engine(a)
	}
}

// carryOut carries out a command about the connection.
func (a *arguments) carryOut(c *conn) {
	c.flush()
	if a.err == nil {
		a.cmd.answer(c, a)
	}
	if a.err != nil {
		c.reject(a.slot)
		return
	}
	c.count(a.slot, 0, nil)
}

// engine asks the engine for a command.
func (c *conn) engine(a *arguments) {
	if a.cmd.read != nil {
		if request := a.cmd.read(c.realm, a); a.err == nil {
			a.err = c.look(a, request)
		}
	} else if one := a.cmd.command.read(a); a.err == nil {
		a.err = c.ask(a, one)
	}
	if a.err != nil {
		c.run.slots = append(c.run.slots, a.slot)
	}
}

// reject answers a command that was not carried out.
func (c *conn) reject(s slot) {
	c.flush()
	c.count(s, 0, c.refuse(s.err, nil))
	if c.client.Access == nil {
		c.tried()
	}
}

// tried counts a command that was refused before AUTH, or had no words.
func (c *conn) tried() {
	c.tries++
	c.leaving = c.leaving || c.tries >= maxTries
}

// arguments reads a command's arguments. err is the first mistake. After it, all reads give zeros.
type arguments struct {
	slot
	words [][]byte // those that are left
}

func (a *arguments) wrong(field, format string, args ...any) {
	if a.err == nil {
		a.err = &kuji.Error{Code: kuji.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
	}
}

// text returns the next argument.
func (a *arguments) text(field string) string {
	if a.err == nil && len(a.words) == 0 {
		a.wrong(field, "is missing, want %s %s", a.cmd.name, a.cmd.usage)
	}
	if a.err != nil {
		return ""
	}
	word := a.words[0]
	a.words = a.words[1:]
	if !utf8.Valid(word) {
		a.wrong(field, "%.40q, want UTF-8", word)
		return ""
	}
	return string(word)
}

// number returns the next argument, which must be a whole number from least to most.
func (a *arguments) number(field string, least, most uint64) uint64 {
	text := a.text(field)
	if a.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > most {
		a.wrong(field, "%.40q, want a whole number from %d to %d", text, least, most)
		return 0
	}
	return n
}

// options reads the options that are left, each once.
func (a *arguments) options(names []string, read func(name string)) {
	seen := 0 // a bit for each
	for a.err == nil && len(a.words) > 0 {
		name := strings.ToUpper(a.text("option"))
		i := slices.Index(names, name)
		switch {
		case a.err != nil:
		case i < 0:
			a.wrong("option", "%.40q, want %s %s", name, a.cmd.name, a.cmd.usage)
		case seen&(1<<i) != 0:
			a.wrong(name, "twice, want each option once")
		default:
			seen |= 1 << i
			read(name)
		}
	}
}

// stacks reads pairs of item and quantity, as long as more, which gets how many there are, says that one follows.
func (a *arguments) stacks(field string, more func(n int) bool) (all []*kujiv1.Stack) {
	for a.err == nil && more(len(all)) {
		item := a.text(fmt.Sprintf("%s[%d].item", field, len(all)))
		quantity := a.number(fmt.Sprintf("%s[%d].quantity", field, len(all)), 0, kuji.MaxQuantity)
		all = append(all, &kujiv1.Stack{Item: item, Quantity: quantity})
	}
	return all
}

func readPlayer(realm string, a *arguments) proto.Message {
	return &kujiv1.GetPlayerRequest{Realm: realm, Player: a.text("player")}
}

func readQuests(realm string, a *arguments) proto.Message {
	return &kujiv1.ListQuestsRequest{Realm: realm, Player: a.text("player"), QuestLimit: contract.MaxPage}
}

func readRanks(realm string, a *arguments) proto.Message {
	m := &kujiv1.ListRanksRequest{Realm: realm, Counter: a.text("counter")}
	a.options([]string{"AROUND", "FROM", "LIMIT", "ENDED"}, func(name string) {
		switch name {
		case "AROUND":
			m.Around = a.text(name)
		case "FROM":
			m.RankFrom = a.number(name, 1, math.MaxUint64)
		case "LIMIT":
			m.RankLimit = uint32(a.number(name, 1, kuji.MaxRanks))
		case "ENDED":
			m.Ended = true
		}
	})
	return m
}

func readRound(realm string, a *arguments) proto.Message {
	m := &kujiv1.GetRoundRequest{Realm: realm, Number: a.number("number", 1, math.MaxInt64)}
	a.options([]string{"OFFSET", "LIMIT"}, func(name string) {
		if name == "OFFSET" {
			m.EntrantOffset = a.number(name, 0, math.MaxUint64)
		} else {
			m.EntrantLimit = uint32(a.number(name, 1, kuji.MaxEntrants))
		}
	})
	return m
}

func readRounds(realm string, a *arguments) proto.Message {
	m := &kujiv1.ListRoundsRequest{Realm: realm}
	a.options([]string{"OFFSET", "LIMIT"}, func(name string) {
		if name == "OFFSET" {
			m.RoundOffset = uint32(a.number(name, 0, math.MaxUint32))
		} else {
			m.RoundLimit = uint32(a.number(name, 1, contract.MaxPage))
		}
	})
	return m
}

func readPool(realm string, a *arguments) proto.Message {
	m := &kujiv1.GetPoolRequest{Realm: realm, Pool: a.text("pool")}
	a.options([]string{"OFFSET", "LIMIT"}, func(name string) {
		if name == "OFFSET" {
			m.EntryOffset = uint32(a.number(name, 0, math.MaxUint32))
		} else {
			m.EntryLimit = uint32(a.number(name, 1, contract.MaxPage))
		}
	})
	return m
}

func readOdds(realm string, a *arguments) proto.Message {
	m := &kujiv1.GetOddsRequest{Realm: realm, Pool: a.text("pool")}
	a.options([]string{"PLAYER"}, func(name string) { m.Player = a.text(name) })
	return m
}

func answerRealm(c *conn, a *arguments) {
	if len(a.words) == 0 {
		c.Text(c.realm)
		return
	}
	c.enterRealm(c.client.Access, a)
	if a.err == nil {
		c.simple("OK")
	}
}

// enterRealm chooses the realm that the next argument names, if the access includes it.
func (c *conn) enterRealm(who *access.Access, a *arguments) {
	name := a.text("realm")
	if a.err == nil {
		if err := who.MayEnter(name); err != nil {
			a.err = who.Forbidden(err)
		} else {
			a.err = c.s.Backend.CheckRealm(name)
		}
	}
	if a.err == nil {
		c.realm = name
	}
}

func answerAuth(c *conn, a *arguments) {
	if c.login(a, len(a.words) == 2); a.err == nil {
		c.simple("OK")
	}
}

// login gives the client the access of a key, and with realm, enters the realm named before it.
func (c *conn) login(a *arguments, realm bool) {
	who, secret := access.Anybody, a.words[0]
	if realm {
		secret = a.words[1]
	}
	if c.s.Keys != nil {
		var refusal *connect.Error
		who, refusal = c.s.Gate.Find(c.link.ctx, c.s.Keys, c.link.place, c.client.Peer, string(secret), "want a valid API key or player token")
		if refusal != nil {
			a.err = refusal
			if fault, ok := errors.AsType[*access.Fault](refusal); ok {
				a.err = &namedError{"WRONGPASS", connect.CodeUnauthenticated, fault.Error(), fault}
			}
			return
		}
	}
	if realm {
		c.enterRealm(who, a)
	}
	if a.err != nil {
		return
	}
	a.words = a.words[1:]
	c.exit()
	c.client.Pass = access.NewPass(c.s.Keys, who)
	c.client.Secret = string(secret)
	if c.s.Gate.Conns.Begin(c.link.place, who.Who) == nil { // from now on it is theirs
		c.s.Gate.Conns.End(c.link.place)
	}
}

func answerHello(c *conn, a *arguments) {
	version := c.version
	if len(a.words) > 0 {
		switch text := a.text("version"); {
		case a.err != nil:
			return
		case text != "2" && text != "3":
			a.err = &namedError{"NOPROTO", connect.CodeInvalidArgument, fmt.Sprintf("version %.40q of the protocol, want 2 or 3", text), nil}
			return
		default:
			version = int(text[0] - '0')
		}
	}
	for len(a.words) > 0 && a.err == nil {
		switch option := strings.ToUpper(a.text("option")); {
		case option == "AUTH" && len(a.words) >= 2:
			c.login(a, true)
		case option == "SETNAME" && len(a.words) >= 1:
			a.text("name")
		default:
			a.wrong("option", "%.40q, want HELLO %s", option, a.cmd.usage)
		}
	}
	if a.err != nil {
		return
	}
	if c.client.Access == nil {
		a.err = errNoAuth
		return
	}
	c.version = version
	c.Map(7)
	c.texts("server", "kuji", "version", c.s.Version, "mode", "standalone", "role", "master", "proto")
	c.Integer(int64(version))
	c.Text("id")
	c.Integer(c.id)
	c.Text("modules")
	c.List(0)
}

func answerPing(c *conn, a *arguments) {
	if len(a.words) == 1 {
		c.Text(string(a.words[0]))
		return
	}
	c.simple("PONG")
}

func answerEcho(c *conn, a *arguments) { c.Text(string(a.words[0])) }

func answerSelect(c *conn, a *arguments) {
	if string(a.words[0]) != "0" {
		a.wrong("database", "%.40q, want 0: there is one database; choose a realm with REALM", a.words[0])
		return
	}
	c.simple("OK")
}

// maxClient is the most arguments of CLIENT: go-redis, redis-py, node-redis and lettuce send four.
const maxClient = 8

// answerInfo says what clients look for: ioredis waits until nothing is loading.
func answerInfo(c *conn, _ *arguments) {
	c.Text("# Server\r\nserver:kuji\r\nkuji_version:" + c.s.Version + "\r\nredis_mode:standalone\r\n" +
		"# Persistence\r\nloading:0\r\n# Replication\r\nrole:master\r\n")
}

func answerClient(c *conn, a *arguments) {
	switch sub := strings.ToUpper(a.text("subcommand")); {
	case sub == "ID" && len(a.words) == 0:
		c.Integer(c.id)
	case sub == "SETNAME" && len(a.words) == 1, sub == "SETINFO" && len(a.words) == 2:
		c.simple("OK")
	case sub == "MAINT_NOTIFICATIONS" && len(a.words) >= 1: // on or off: none are ever sent
		c.simple("OK")
	default:
		a.wrong("subcommand", "%.40q with %d arguments, want CLIENT %s", sub, len(a.words), a.cmd.usage)
	}
}

func answerCommand(c *conn, a *arguments) {
	all := commands()
	sub := "INFO"
	if len(a.words) > 0 {
		sub = strings.ToUpper(a.text("subcommand"))
	}
	named := func(cmd *command) bool {
		return len(a.words) == 0 || slices.ContainsFunc(a.words, func(w []byte) bool { return strings.EqualFold(string(w), cmd.name) })
	}
	switch sub {
	case "COUNT":
		c.Integer(int64(len(all)))
	case "DOCS":
		all = slices.DeleteFunc(all, func(cmd *command) bool { return !named(cmd) })
		c.Map(len(all))
		for _, cmd := range all {
			cmd.writeDocs(&c.resp)
		}
	case "INFO":
		if len(a.words) == 0 {
			c.List(len(all))
			for _, cmd := range all {
				cmd.writeInfo(&c.resp)
			}
			return
		}
		c.List(len(a.words))
		for _, w := range a.words {
			if cmd := c.s.byName[strings.ToUpper(string(w))]; cmd != nil {
				cmd.writeInfo(&c.resp)
			} else {
				c.null()
			}
		}
	default:
		a.wrong("subcommand", "%.40q, want COMMAND %s", sub, a.cmd.usage)
	}
}

// writeDocs writes a command's name and what redis-cli shows of it.
func (cmd *command) writeDocs(w *resp) {
	w.Text(strings.ToLower(cmd.name))
	w.Map(3)
	w.texts("summary", strings.TrimSpace(cmd.usage+" - "+cmd.summary), "since", "1.0.0", "group", "generic")
}

// writeInfo writes a command's name, arity and flags. No argument is a key in the sense of Redis.
func (cmd *command) writeInfo(w *resp) {
	w.List(6)
	w.Text(strings.ToLower(cmd.name))
	if cmd.least == cmd.most {
		w.Integer(int64(cmd.least + 1))
	} else {
		w.Integer(-int64(cmd.least + 1))
	}
	flag := "readonly"
	switch {
	case cmd.command != nil:
		flag = "write"
	case cmd.read == nil:
		flag = "fast"
	}
	w.List(1)
	w.simple(flag)
	for range 3 {
		w.Integer(0)
	}
}

func answerQuit(c *conn, _ *arguments) {
	c.simple("OK")
	c.leaving = true
}
