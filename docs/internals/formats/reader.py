#!/usr/bin/env python3
"""Reads a realm of a data directory and checks it, by docs/internals/formats alone.

    python3 docs/internals/formats/reader.py [--events] DATA/realms/NAME

It shares no code with Kuji and needs nothing but Python. It checks checksums,
the chain of hashes and the commitments, and applies the effects of every event.
For that it needs no rules and no catalog. Then it shows what those are good for:
it computes every choice of every revealed epoch again, with its price, and
compares. It prints what it found as JSON; --events prints each event before it,
on a line of its own.

Stop the server first, or read a copy. The log has to be whole (not trimmed); a
torn tail is left out. Failed checks end it with an AssertionError.

A test compares what it finds with what Kuji finds: as long as that passes, the
pages beside this file are true, and enough.
"""

import hashlib
import json
import os
import struct
import sys

M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


# wal.md

def crc_table():
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        yield i


TABLE = list(crc_table())


def crc32c(data):
    c = M32
    for byte in data:
        c = TABLE[(c ^ byte) & 255] ^ c >> 8
    return c ^ M32


def le(data, at, size):
    return int.from_bytes(data[at:at + size], "little")


def records(directory):
    """The records of a log, from its first segment on."""
    names = sorted(n for n in os.listdir(directory) if n.endswith(".wal"))
    log_id, offset = None, int(names[0][:20])
    for name in names:
        with open(os.path.join(directory, name), "rb") as f:
            data = f.read()
        if data[:64] in (b"", bytes(64)) and name == names[-1]:
            return  # no header: nothing in it was durable
        assert data[:8] == b"KUJIWAL\x01" and crc32c(data[:60]) == le(data, 60, 4), name + ": header"
        assert log_id in (None, le(data, 8, 8)) and le(data, 16, 8) == offset == int(name[:20]), name
        log_id, first, at, end = le(data, 8, 8), offset, 64, len(data)
        trailer = data[-64:]
        if trailer[:8] == b"KUJIEND\x01" and crc32c(trailer[:60]) == le(trailer, 60, 4):
            end = le(trailer, 48, 4)
        while at + 8 <= end:
            if data[at:at + 8] == bytes(8):
                at += 8
                continue
            head = data[at:at + 48]
            if head[:4] != b"KJG\x01" or crc32c(head[:44]) != le(head, 44, 4):
                assert name == names[-1] and end == len(data), f"{name} at byte {at}: group"
                return  # torn
            assert (le(head, 8, 8), le(head, 16, 8), le(head, 24, 8)) == (log_id, first, offset), f"{name} at byte {at}"
            after = at + 48 + le(head, 4, 4)
            at += 48
            for _ in range(le(head, 40, 4)):
                size = le(data, at + 4, 4)
                record = data[at + 8:at + 8 + size]
                mixed = (offset & M32) * 0x9E3779B1 ^ (offset >> 32) * 0x85EBCA77 ^ size * 0xC2B2AE3D
                want = (crc32c(struct.pack("<Q", log_id)) ^ crc32c(record) ^ mixed) & M32
                assert want == le(data, at, 4), f"{name} at byte {at}: record {offset}"
                yield record
                offset, at = offset + 1, at + 8 + size
            assert at == after, f"{name} at byte {at}: length of the group"
            at = at + 7 & ~7


# What every page calls a varint, and texts.

class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, size):
        self.at += size
        assert self.at <= len(self.data), "cut off"
        return self.data[self.at - size:self.at]

    def byte(self):
        return self.take(1)[0]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                assert byte or shift == 7, "a varint longer than it needs to be"
                return value

    def text(self):
        return self.take(self.number())

    def name(self):
        return self.take(self.byte())

    def stacks(self):
        return [(self.text(), self.number()) for _ in range(self.number())]


# event.md: entries

class Chain:
    """Where a reader of the log stands: which entries count, and that none is missing."""

    def __init__(self, realm):
        self.realm = realm
        self.epoch, self.writer, self.ended, self.index, self.prev = 0, b"", True, 0, bytes(32)
        self.ahead = 0  # the highest index of a void entry of the current epoch and writer
        self.void = 0

    def entry(self, data):
        """Folds one entry, and returns its kind and payload if it counts."""
        assert data[:4] == b"KJE2" and crc32c(data[8:]) == le(data, 4, 4) and data[10:12] == b"\0\0"
        kind, size, length, epoch, writer = data[8], data[9], le(data, 12, 4), le(data, 16, 8), data[24:40]
        assert data[88:88 + size] == self.realm and len(data) == 88 + size + length
        index = le(data, 40, 8)
        if kind == 1:
            counts = epoch > self.epoch
        else:
            counts = (epoch, writer, index) == (self.epoch, self.writer, self.index + 1) and not self.ended
        if not counts:
            self.void += 1
            if (epoch, writer) == (self.epoch, self.writer):
                self.ahead = max(self.ahead, index)
            return 0, b""
        assert index == self.index + 1 and data[56:88] == self.prev, f"position {index}: chain"
        if kind == 1:
            self.complete()
            self.epoch, self.writer, self.ended, self.ahead = epoch, writer, False, 0
        self.ended = kind == 3
        self.index, self.prev = index, hashlib.sha256(data).digest()
        return kind, data[88 + size:]

    def complete(self):
        assert self.ahead <= self.index, f"position {self.index + 1}: missing or out of place"


# closed.md

def closed(directory):
    """Where the log stood when it was last closed: offset after it, position, epoch, hash. None: it never was."""
    try:
        with open(os.path.join(directory, "closed"), "rb") as f:
            data = f.read()
    except FileNotFoundError:
        return None
    lines = data.split(b"\n")
    names = [line.split(b" ")[0] for line in lines]
    assert lines[0] == b"kuji closed 1" and names[1:] == [b"offset", b"position", b"epoch", b"hash", b"crc32c", b""], "closed"
    offset, position, epoch, digest, crc = (line.split(b" ")[1] for line in lines[1:6])
    assert int(crc, 16) == crc32c(data[:data.rindex(b"crc32c ")]), "closed: checksum"
    return int(offset), int(position), int(epoch), bytes.fromhex(digest.decode())


# event.md: events and their effects. Nothing here knows a rule or reads a catalog.

PLAYER, JOIN, GAIN, SPEND, POOL, TAKE, SET, MORE = range(8)
MEMBER, ITEM, NEW_POOL, ENTRY, STOCK, COUNTER, WINDOW, CATALOG, CLOCK = range(8, 17)
VERBS = "player join gain spend pool take set more member item new_pool entry stock counter window catalog".split()
KINDS = ["", "catalog", "draw", "grant", "consume", "transfer", "atomic", "clock"]
STATUSES = ["ok", "sold_out", "limit_reached", "insufficient_items", "not_started", "ended", "unknown_pool",
            "unknown_item", "count_too_large", "balance_overflow"]


def ref(r):
    value = r.number()
    return r.take(value >> 1) if value & 1 else value >> 1


def effects(r):
    """The effects as (verb, number, value)."""
    while r.at < len(r.data):
        head = r.number()
        verb, n, value = head & 7, head >> 3, None
        if verb in (GAIN, SPEND, SET):
            value = r.number()
        elif verb == JOIN:
            value, n = r.take(n), None
        elif verb == MORE:
            verb, n = 8 + n, None
            if verb == ITEM:
                n, value = r.byte(), r.name()
            elif verb in (NEW_POOL, ENTRY):
                value = r.name()
            elif verb in (STOCK, WINDOW):
                n, value = r.number(), r.number()
            elif verb == COUNTER:
                n, value = r.number(), r.name()
            elif verb == CATALOG:
                value = r.text()
            elif verb == CLOCK:
                value = r.number()
            else:
                assert verb == MEMBER, "unknown effect: a newer Kuji wrote this log"
        yield verb, n, value


class Event:
    def __init__(self, r):
        size = r.number()
        end = r.at + size
        head = r.byte()
        self.kind, self.id = head >> 3, r.name() if head & 1 else b""
        self.player = ref(r) if head & 4 else None
        self.status, self.subject = (r.byte(), ref(r)) if head & 2 else (0, None)
        self.asked = r.text()
        self.effects = list(effects(Reader(r.take(end - r.at))))
        assert r.at == end and not (head & 2 and (self.effects or not self.status))

    def outcomes(self):
        """For each member, or the one command: what it spent, and each draw's way and gains."""
        members, asked, pool = [([], [])], None, None
        if self.kind == 6:
            members = []
        for verb, n, value in self.effects:
            if verb == MEMBER:
                members.append(([], []))
                asked = pool = None
            elif verb == POOL:
                pool = n
                asked = n if asked is None else asked
            elif verb == TAKE:
                if pool == asked:  # a draw begins
                    members[-1][1].append(([], []))
                members[-1][1][-1][0].append((pool, n))
            elif verb == GAIN and asked is not None:
                members[-1][1][-1][1].append((n, value))
            elif verb == SPEND:
                members[-1][0].append((n, value))
        return members

    def commands(self):
        """What was asked: (kind, player, other arguments) of the command or of each member."""
        r = Reader(self.asked)
        if self.kind == 6:
            if self.status:
                r.number()  # the member that failed
            asked = []
            for _ in range(r.number()):
                kind = r.byte()
                asked.append((kind, ref(r), arguments(r, kind)))
        else:
            asked = [(self.kind, self.player, arguments(r, self.kind))]
        assert r.at == len(self.asked)
        return asked


def arguments(r, kind):
    if kind == 1:
        return None
    if kind == 7:
        return r.number(), r.name(), r.name()  # to, by, reason
    if kind == 2:
        return ref(r), r.number()  # pool, count
    other = ref(r) if kind == 5 else None
    return other, [(ref(r), r.number()) for _ in range(r.number())]


class State:
    """What the effects of all events so far make. It refuses those that break an invariant."""

    def __init__(self):
        self.items, self.pools, self.players = [], [], []  # ids by number
        self.counters = 0  # how many are named
        self.stock, self.taken, self.entries = [], [], []  # by pool and entry number; stock None: unlimited
        self.held, self.counted = [], []  # by player number: balances by item, counters
        self.number = {}  # of players by id
        self.version, self.catalog = 0, b""
        self.time, self.back = 0, 0  # the last time stamp, and how far the clock was set back in all

    def apply(self, event, time):
        assert time >= self.time, "time goes back"
        self.time = time
        player, pool = event.player, None
        for verb, n, value in event.effects:
            if verb in (GAIN, SPEND):
                assert n < len(self.items) and value > 0, "an item that there is not"
                held = self.held[player]
                held[n] = held.get(n, 0) + (value if verb == GAIN else -value)
                assert 0 <= held[n] < 1 << 53, f"balance of player {player}, item {n}"
            elif verb == PLAYER:
                player = n
            elif verb == JOIN:
                assert value not in self.number, "joins twice"
                player = self.number[value] = len(self.players)
                self.players.append(value), self.held.append({}), self.counted.append({})
            elif verb == SET:
                assert n < self.counters, "a counter that there is not"
                self.counted[player][n] = value
            elif verb == POOL:
                pool = n
            elif verb == TAKE:
                self.taken[pool][n] += 1
                assert self.stock[pool][n] is None or self.taken[pool][n] <= self.stock[pool][n], f"stock of pool {pool}, entry {n}"
            elif verb == MEMBER:
                pool = None
            else:
                pool = self.define(pool, verb, n, value)

    def define(self, pool, verb, n, value):
        if verb == ITEM:
            assert value not in self.items
            self.items.append(value)
        elif verb == NEW_POOL:
            assert value not in self.pools
            pool = len(self.pools)
            self.pools.append(value), self.entries.append([]), self.stock.append([]), self.taken.append([])
        elif verb == ENTRY:
            assert value not in self.entries[pool]
            self.entries[pool].append(value), self.stock[pool].append(0), self.taken[pool].append(0)
        elif verb == STOCK:
            self.stock[pool][n] = value - 1 if value else None
        elif verb == COUNTER:
            self.counters += n
        elif verb == CATALOG:
            self.version, self.catalog = self.version + 1, value
        elif verb == CLOCK:
            assert 0 < value <= self.time and self.back + value <= 3 << 44, "the clock is set back too far"
            self.time, self.back = self.time - value, self.back + value
        return pool

    def left(self, pool, entry):
        """What is left of an entry's stock; None without a bound."""
        if self.stock[pool][entry] is None:
            return None
        return max(0, self.stock[pool][entry] - self.taken[pool][entry])


def describe(state, event):
    """An applied event with ids in place of numbers."""
    def text(name):
        return name.decode("utf-8", "backslashreplace")

    def of(names, which):
        return text(names[which] if isinstance(which, int) else which)

    def stacks(some):
        return {of(state.items, item): quantity for item, quantity in some}

    def command(kind, player, asked):
        if kind == 2:
            return {"kind": "draw", "player": of(state.players, player), "pool": of(state.pools, asked[0]), "count": asked[1]}
        to = {"to": of(state.players, asked[0])} if kind == 5 else {}
        return {"kind": KINDS[kind], "player": of(state.players, player), **to, "items": stacks(asked[1])}

    said = {"kind": KINDS[event.kind], "id": text(event.id), "status": STATUSES[event.status]}
    if event.status:
        items = event.status in (3, 7, 9)
        said["subject"] = of(state.items if items else state.pools, event.subject)
    if event.kind == 1:
        return {**said, "version": state.version}
    if event.kind == 7:
        to, by, reason = event.commands()[0][2]
        return {**said, "clock": {"to": to, "by": text(by), "reason": text(reason)}}
    all_of_it = []
    for i, asked in enumerate(event.commands()):
        one = command(*asked)
        if not event.status and asked[0] == 2:
            one["outcomes"] = [{
                "way": [of(state.pools, p) + "/" + of(state.entries[p], e) for p, e in way], "items": stacks(gains),
            } for way, gains in event.outcomes()[i][1]]
        all_of_it.append(one)
    return {**said, "members": all_of_it} if event.kind == 6 else {**said, **all_of_it[0]}


# catalog.md

def catalog(data):
    r = Reader(data)
    assert r.take(8) == b"KUJICAT\x01"
    r.text()
    items = [(r.text(), r.byte(), r.text())[0] for _ in range(r.number())]
    pools = {}
    for _ in range(r.number()):
        pool, _, mode, price = r.text(), r.text(), r.byte(), r.stacks()
        r.number(), r.number(), r.number()  # starts, ends, max_count
        for _ in range(r.number()):
            r.byte(), r.number(), r.number()  # a limit
        r.number()  # scale
        entries = {}
        for _ in range(r.number()):
            entry, weight, stock, kind = r.text(), r.number(), r.number(), r.byte()
            reward = None
            if kind == 2:
                reward = [(r.text(), r.number(), r.number()) for _ in range(r.number())]
            elif kind == 3:
                reward = r.text()
            entries[entry] = (weight, stock, kind, reward)
        pools[pool] = (mode, price, entries)
    start = r.stacks()
    r.number(), r.number()  # idempotency
    assert r.at == len(data)
    return items, pools, start


# event.md: randomness

def chacha8(key):
    """The 64-bit values of C2SP chacha8rand."""
    key = list(struct.unpack("<8I", key))
    while True:
        for counter in range(0, 16, 4):
            lanes = [chacha8_block(key, counter + lane) for lane in range(4)]
            words = [lanes[lane][row] for row in range(16) for lane in range(4)]
            values = [words[i] | words[i + 1] << 32 for i in range(0, 64, 2)]
            if counter < 12:
                yield from values
            else:
                yield from values[:28]
                key = words[56:]


def chacha8_block(key, counter):
    x = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key, counter, 0, 0, 0]

    def turn(a, b, c, d):
        for left, right, other, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[left] = x[left] + x[right] & M32
            mixed = x[other] ^ x[left]
            x[other] = (mixed << by | mixed >> 32 - by) & M32

    for _ in range(4):
        for i in range(4):
            turn(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            turn(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    for i in range(8):
        x[4 + i] = x[4 + i] + key[i] & M32
    return x


def below(source, n):
    """A uniform integer below n, by Lemire's multiply-shift."""
    while True:
        product = next(source) * n
        if product & M64 >= (1 << 64) % n:
            return product >> 64


# event.md: choices. Only who computes them again needs the catalog.

class Rules:
    """The catalog in force, by the state's numbers."""

    def __init__(self, state):
        self.state, self.pools, self.start = state, {}, []
        self.gone = {}  # what the event at hand has taken so far, by pool and entry number

    def put_in_force(self):
        state = self.state
        _, pools, start = catalog(state.catalog)
        item = {name: n for n, name in enumerate(state.items)}
        number = {name: n for n, name in enumerate(state.pools)}
        self.start = [(item[i], q) for i, q in start]
        self.pools = {}
        for name, (mode, price, entries) in pools.items():
            p = number[name]
            of = {entry: n for n, entry in enumerate(state.entries[p])}
            by_number = {}
            for entry, (weight, stock, kind, reward) in entries.items():
                assert state.stock[p][of[entry]] == (stock - 1 if stock else None), "the stock is not the catalog's"
                if kind == 2:
                    reward = [(item[i], low, span) for i, low, span in reward]
                elif kind == 3:
                    reward = number[reward]
                by_number[of[entry]] = weight, kind, reward
            self.pools[p] = mode, [(item[i], q) for i, q in price], by_number

    def weight(self, pool, entry):
        mode, _, entries = self.pools[pool]
        if entry not in entries:
            return 0  # of an older catalog
        weight, kind, reward = entries[entry]
        left = self.state.left(pool, entry)
        if left is not None:
            left -= self.gone.get((pool, entry), 0)
        if left is not None and left <= 0 or kind == 3 and not sum(self.weights(reward)):
            return 0
        return left if mode == 2 else weight

    def weights(self, pool):
        return [self.weight(pool, entry) for entry in range(len(self.state.entries[pool]))]

    def draw(self, source, pool):
        """One draw: its way through the pools, and what it gives."""
        way = []
        while True:
            weights = self.weights(pool)
            point, chosen = below(source, sum(weights)), 0
            while point >= weights[chosen]:
                point, chosen = point - weights[chosen], chosen + 1
            way.append((pool, chosen))
            self.gone[pool, chosen] = self.gone.get((pool, chosen), 0) + 1
            _, kind, reward = self.pools[pool][2][chosen]
            if kind != 3:
                gains = reward or []
                return way, [(item, low + (below(source, span + 1) if span else 0)) for item, low, span in gains]
            pool = reward

    def compare(self, event, source):
        """Decides the draws of an event again, before it is applied. Returns how many choices that took."""
        self.gone, choices = {}, 0
        for (kind, _, asked), (spent, draws) in zip(event.commands(), event.outcomes(), strict=True):
            if kind == 2:
                pool, count = asked
                assert spent == [(item, quantity * count) for item, quantity in self.pools[pool][1]], "another price"
                assert draws == [self.draw(source, pool) for _ in range(count)], "another choice"
                choices += sum(len(way) for way, _ in draws)
        return choices

    def welcome(self, event):
        """Whoever joins gets the starting grants, before anything else."""
        for i, (verb, _, _) in enumerate(event.effects):
            if verb == JOIN:
                given = [(n, value) for verb, n, value in event.effects[i + 1:i + 1 + len(self.start)] if verb == GAIN]
                assert given == self.start, "other starting grants"


# All of it together.

class Realm:
    def __init__(self, name, seeds, seen=None):
        self.name, self.seeds, self.seen = name, seeds, seen
        self.chain, self.state = Chain(name), State()
        self.rules = Rules(self.state)
        self.commitments, self.source = {}, None
        self.found = dict(batches=0, events=0, draws=0, choices=0)

    def seal(self, purpose, epoch, seed):
        text = b"kuji/v1/" + purpose + b"\0" + self.name + b"\0" + struct.pack("<Q", epoch) + seed
        return hashlib.sha256(text).digest()

    def replay(self, data):
        kind, payload = self.chain.entry(data)
        epoch = self.chain.epoch
        if kind == 1:
            assert payload[0] == 3 and len(payload) == 41
            self.commitments[epoch], self.source = payload[9:], None
            if epoch in self.seeds:
                seed = self.seeds[epoch]
                assert self.seal(b"rng-commitment", epoch, seed) == self.commitments[epoch], "commitment"
                self.source = chacha8(self.seal(b"rng-stream", epoch, seed))
        elif kind == 2:
            self.batch(payload)
        elif kind in (3, 4):
            assert le(payload, 0, 8) in self.commitments

    def batch(self, payload):
        r, time, events = Reader(payload, 12), le(payload, 0, 8), le(payload, 8, 4)
        for index in range(events):
            event = Event(r)
            assert event.kind != 7 or index == events - 1, "events after one that sets the clock"
            if event.kind == 7:
                to = event.commands()[0][2][0]
                assert event.effects == ([(CLOCK, None, time - to)] if to < time else []), "another time"
            elif event.kind != 1 and not event.status:
                self.rules.welcome(event)
                if self.source:
                    self.found["choices"] += self.rules.compare(event, self.source)
            self.state.apply(event, time)
            if event.kind == 1:
                self.rules.put_in_force()
            self.found["events"] += 1
            self.found["draws"] += sum(len(draws) for _, draws in event.outcomes())
            if self.seen:
                self.seen({"position": self.chain.index, "index": index, "time": time, **describe(self.state, event)})
        assert r.at == len(payload)
        self.found["batches"] += 1


def main(directory, seen=None):
    name = os.path.basename(os.path.normpath(directory)).encode()
    entries = list(records(os.path.join(directory, "log")))
    chain, seeds = Chain(name), {}
    last = closed(directory)
    for offset, entry in enumerate(entries):  # seeds are revealed after the draws that used them
        kind, payload = chain.entry(entry)
        if kind in (3, 4):
            seeds[le(payload, 0, 8)] = payload[8:]
        if kind and last and chain.index == last[1]:
            assert (offset + 1, chain.index, chain.epoch, chain.prev) == last, "not the log that was closed"
    chain.complete()
    assert not last or chain.index >= last[1], f"position {chain.index + 1}: the log was longer when it was closed"
    realm = Realm(name, seeds, seen)
    for entry in entries:
        realm.replay(entry)
    state = realm.state
    items = [item.decode() for item in state.items]
    show({
        **realm.found, "void": chain.void, "position": chain.index, "chain_hash": chain.prev.hex(),
        "catalog_version": state.version, "epochs": len(realm.commitments), "revealed": len(seeds),
        "players": {
            who.decode("utf-8", "backslashreplace"): {items[i]: n for i, n in state.held[number].items() if n}
            for who, number in state.number.items()
        },
    })


def show(found):
    json.dump(found, sys.stdout)
    print()


if __name__ == "__main__":
    main(sys.argv[-1], show if "--events" in sys.argv[1:-1] else None)
