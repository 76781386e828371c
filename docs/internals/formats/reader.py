#!/usr/bin/env python3
"""Reads a realm of a data directory and checks it, by docs/internals/formats alone.

    python3 docs/internals/formats/reader.py DATA/realms/NAME

It shares no code with Kuji and needs nothing but Python. It checks checksums,
the chain of hashes and the commitments, replays every event, computes every
choice of every revealed epoch again, and prints what it found as JSON. Stop the
server first, or read a copy. The log has to be whole (not trimmed); a torn tail
is left out. Failed checks end it with an AssertionError.

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


# catalog.md

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
                return value

    def text(self):
        return self.take(self.number())

    def stacks(self):
        return [(self.text(), self.number()) for _ in range(self.number())]


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


# event.md: entries and events

class Realm:
    def __init__(self, name):
        self.name = name
        self.epoch, self.writer, self.ended, self.index, self.prev = 0, b"", True, 0, bytes(32)
        self.ahead = 0  # the highest index of a void entry of the current epoch and writer
        self.time = 0
        self.commitments, self.seeds, self.source = {}, {}, None
        self.catalog_version, self.start = 0, []
        self.item_numbers, self.pool_numbers, self.entry_numbers = {}, {}, {}
        self.pools, self.drawn = {}, {}  # by number
        self.players, self.held = {}, []
        self.found = dict(batches=0, events=0, draws=0, void=0, choices=0)

    def entry(self, data):
        """Folds one entry, and returns its kind and payload if it counts."""
        assert data[:4] == b"KJE1" and crc32c(data[8:]) == le(data, 4, 4) and data[10:12] == b"\0\0"
        kind, size, length, epoch, writer = data[8], data[9], le(data, 12, 4), le(data, 16, 8), data[24:40]
        assert data[88:88 + size] == self.name and len(data) == 88 + size + length
        index = le(data, 40, 8)
        if kind == 1:
            counts = epoch > self.epoch
        else:
            counts = (epoch, writer, index) == (self.epoch, self.writer, self.index + 1) and not self.ended
        if not counts:
            self.found["void"] += 1
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

    def seal(self, purpose, epoch, seed):
        text = b"kuji/v1/" + purpose + b"\0" + self.name + b"\0" + struct.pack("<Q", epoch) + seed
        return hashlib.sha256(text).digest()

    def collect(self, data):
        """The first pass: seeds are revealed after the draws that used them."""
        kind, payload = self.entry(data)
        if kind in (3, 4):
            self.seeds[le(payload, 0, 8)] = payload[8:]

    def replay(self, data):
        """The second pass."""
        kind, payload = self.entry(data)
        if kind == 1:
            assert payload[0] == 1 and len(payload) == 41
            self.commitments[self.epoch], self.source = payload[9:], None
            if self.epoch in self.seeds:
                seed = self.seeds[self.epoch]
                assert self.seal(b"rng-commitment", self.epoch, seed) == self.commitments[self.epoch], "commitment"
                self.source = chacha8(self.seal(b"rng-stream", self.epoch, seed))
        elif kind == 2:
            assert le(payload, 0, 8) >= self.time
            self.time = le(payload, 0, 8)
            r = Reader(payload, 12)
            for _ in range(le(payload, 8, 4)):
                self.event(r)
            assert r.at == len(payload)
            self.found["batches"] += 1
        elif kind in (3, 4):
            assert le(payload, 0, 8) in self.commitments

    def event(self, r):
        head, status = r.byte(), r.byte()
        kind, version = head >> 3, head >> 1 & 3
        assert version == 0 and 1 <= kind <= 6
        if head & 1:
            r.take(r.byte())  # request id
        if status:
            r.number()  # subject
        self.found["events"] += 1
        if kind == 1:
            self.apply(*catalog(r.text()))
        elif kind == 6:
            if status:
                r.number()  # the member that failed
            for _ in range(r.number()):
                self.command(r, r.byte() >> 3, status)
        else:
            self.command(r, kind, status)

    def apply(self, items, pools, start):
        for item in items:
            self.item_numbers.setdefault(item, len(self.item_numbers))
        self.pools = {}
        for pool, (mode, price, entries) in pools.items():
            number = self.pool_numbers.setdefault(pool, len(self.pool_numbers))
            numbers = self.entry_numbers.setdefault(number, {})
            for entry in entries:
                numbers.setdefault(entry, len(numbers))
            self.pools[number] = (mode, price, {numbers[e]: entries[e] for e in entries})
        self.start = start
        self.catalog_version += 1

    def command(self, r, kind, status):
        player = self.player(r, status)
        if kind == 2:
            pool, count = self.ref(r), r.number()
            if not status:
                self.draw(r, player, pool, count)
            return
        other = self.player(r, status) if kind == 5 else None
        stacks = [(self.ref(r), r.number()) for _ in range(r.number())]
        for item, quantity in [] if status else stacks:
            self.add(player, item, quantity if kind == 3 else -quantity)
            if kind == 5:
                self.add(other, item, quantity)

    @staticmethod
    def ref(r):
        value = r.number()
        return r.take(value >> 1) if value & 1 else value >> 1

    def player(self, r, status):
        who = self.ref(r)
        if isinstance(who, int):
            assert who < len(self.held)
            return who
        assert status or who not in self.players
        if not status:
            self.players[who] = len(self.held)
            self.held.append({})
            for item, quantity in self.start:
                self.add(self.players[who], self.item_numbers[item], quantity)
        return self.players.get(who)

    def add(self, player, item, quantity):
        held = self.held[player]
        held[item] = held.get(item, 0) + quantity
        assert 0 <= held[item] < 1 << 53, "balance"

    def weight(self, pool, entry):
        mode, _, entries = self.pools[pool]
        if entry not in entries:
            return 0  # of an older catalog
        weight, stock, kind, reward = entries[entry]
        left = stock - 1 - self.drawn.get((pool, entry), 0)
        if stock and left <= 0:
            return 0
        if kind == 3 and not sum(self.weights(self.pool_numbers[reward])):
            return 0
        return left if mode == 2 else weight

    def weights(self, pool):
        return [self.weight(pool, entry) for entry in range(len(self.entry_numbers[pool]))]

    def draw(self, r, player, pool, count):
        self.found["draws"] += count
        for item, quantity in self.pools[pool][1]:
            self.add(player, self.item_numbers[item], -quantity * count)
        for _ in range(count):
            at = pool
            while at is not None:
                at = self.choice(r, player, at)

    def choice(self, r, player, pool):
        """One link of a chain: returns the pool that it leads to, or None."""
        value = r.number()
        entry, detail = value >> 2, value & 3
        quantities = [r.number() for _ in range(r.byte())] if detail == 2 else []
        _, stock, kind, reward = self.pools[pool][2][entry]
        ranged = [(low, span) for _, low, span in reward if span] if kind == 2 else []
        assert detail == (1 if kind == 3 else 2 if ranged else 0)
        if self.source:
            weights = self.weights(pool)
            point, chosen = below(self.source, sum(weights)), 0
            while point >= weights[chosen]:
                point, chosen = point - weights[chosen], chosen + 1
            want = [low + below(self.source, span + 1) for low, span in ranged]
            assert (chosen, want) == (entry, quantities), f"position {self.index}: another choice"
            self.found["choices"] += 1
        self.drawn[pool, entry] = self.drawn.get((pool, entry), 0) + 1
        assert not stock or self.drawn[pool, entry] < stock, "stock"
        if kind == 3:
            return self.pool_numbers[reward]
        if kind == 2:
            given = iter(quantities)
            for item, low, span in reward:
                self.add(player, self.item_numbers[item], next(given) if span else low)
        return None


def main(directory):
    name = os.path.basename(os.path.normpath(directory)).encode()
    entries = list(records(os.path.join(directory, "log")))
    first, realm = Realm(name), Realm(name)
    for entry in entries:
        first.collect(entry)
    first.complete()
    realm.seeds = first.seeds
    for entry in entries:
        realm.replay(entry)
    items = [item.decode() for item in realm.item_numbers]
    json.dump({
        **realm.found, "position": realm.index, "chain_hash": realm.prev.hex(), "catalog_version": realm.catalog_version,
        "epochs": len(realm.commitments), "revealed": len(realm.seeds),
        "players": {
            who.decode("utf-8", "backslashreplace"): {items[i]: n for i, n in realm.held[number].items() if n}
            for who, number in realm.players.items()
        },
    }, sys.stdout)
    print()


if __name__ == "__main__":
    main(sys.argv[1])
