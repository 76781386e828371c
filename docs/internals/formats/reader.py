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

import datetime
import hashlib
import itertools
import json
import os
import struct
import sys

M32, M64, MAX_COUNT = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 2**53 - 1


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

    def __init__(self, realm, files):
        self.realm = realm
        self.files = files  # the directory with payloads
        self.epoch, self.writer, self.ended, self.index, self.prev = 0, b"", True, 0, bytes(32)
        self.ahead = 0  # the highest index of a void entry of the current epoch and writer
        self.void = 0

    def entry(self, data):
        """Folds one entry, and returns its kind and payload if it counts."""
        assert data[:4] == b"KJE3" and crc32c(data[8:]) == le(data, 4, 4) and data[10] < 2 and not data[11]
        kind, size, length, epoch, writer = data[8], data[9], le(data, 12, 4), le(data, 16, 8), data[24:40]
        assert data[88:88 + size] == self.realm and len(data) == 88 + size + length
        index = le(data, 40, 8)
        if kind == 1:
            counts = epoch > self.epoch
        else:
            counts = (epoch, writer, index) == (self.epoch, self.writer, self.index + 1) and not self.ended
        if not counts:
            self.void += 1
            if kind != 1 and (epoch, writer) == (self.epoch, self.writer):
                self.ahead = max(self.ahead, index)
            return 0, b""
        assert index <= self.index + 1, f"position {self.index + 1}: missing"
        assert index <= self.index or data[56:88] == self.prev, f"position {index}: chain"
        digest = hashlib.sha256(data).digest()
        if kind == 1:
            self.complete()
            self.epoch, self.writer, self.ended, self.ahead = epoch, writer, False, 0
            digest = hashlib.sha256(self.prev + digest).digest()
        self.ended = kind == 3
        self.index, self.prev = self.index + 1, digest
        payload = data[88 + size:]
        return kind, self.outside(payload) if data[10] else payload

    def outside(self, reference):
        """Reads the payload of the newest entry, which is in a file."""
        size, digest = le(reference, 0, 8), reference[8:]
        with open(os.path.join(self.files, f"{self.index:020}-{digest.hex()}.payload"), "rb") as f:
            payload = f.read()
        assert len(payload) == size and hashlib.sha256(payload).digest() == digest, f"position {self.index}: payload"
        return payload

    def complete(self):
        assert self.ahead <= self.index, f"position {self.index + 1}: missing or out of place"


# closed.md

def closed(directory):
    """Where the log stood when it was last closed: offset after it, hash of the last entry. None: nothing says so."""
    try:
        with open(os.path.join(directory, "closed"), "rb") as f:
            data = f.read()
    except FileNotFoundError:
        return None
    lines = data.split(b"\n")
    names = [line.split(b" ")[0] for line in lines]
    assert lines[0] == b"kuji closed 2" and names[1:] == [b"offset", b"hash", b"crc32c", b""], "closed"
    offset, digest, crc = (line.split(b" ")[1] for line in lines[1:4])
    assert int(crc, 16) == crc32c(data[:data.rindex(b"crc32c ")]), "closed: checksum"
    return int(offset), bytes.fromhex(digest.decode())


# event.md: events and their effects. Nothing here knows a rule or reads a catalog.

PLAYER, JOIN, GAIN, SPEND, POOL, TAKE, SET, MORE = range(8)
MEMBER, ITEM, NEW_POOL, ENTRY, STOCK, COUNTER, WINDOW, CATALOG, DRAW, TALLY, RETURN, CLOCK = range(8, 20)
NEW_LIST, ADD_CODES, GIVE_CODE, USE_CODE, LEVEL, ORDER, CLAIM, BEYOND, GROW = range(20, 29)
HOLD, RELEASE, FORFEIT, PROMISE, PUT, DROP, PLACE, IDENTITY, ERASE = range(29, 38)
KINDS = ["", "catalog", "draw", "grant", "consume", "transfer", "atomic", "clock", "set_track", "codes", "redeem", "register", "upgrade", "set_limit", "due",
         "progress", "claim", "set_counter", "collect", "open_round", "join", "settle", "reroll", "cancel_round",
         "hold", "confirm", "cancel", "link_code", "link", "unlink", "merge", "forget", "block", "reverse", "propose", "withdraw", "approve"]
PERS = ["", "forever", "day", "week", "window", "hour", "month"]
KNOWN = 6  # the newest format level that this reader knows
COME = (2, 3, 10, 11, 15, 16)  # who asks for one of these, or gets it, has come
STATUSES = ["ok", "sold_out", "limit_reached", "insufficient_items", "not_started", "ended", None, None,
            "count_too_large", "balance_overflow", "aborted", "not_eligible", "price_not_offered",
            None, "unknown_code", "code_expired", "code_used_up", "code_redeemed", "too_many_guesses",
            "code_required", "not_reached", "already_claimed", "reward_unavailable", "too_many_lots",
            "most_reached", "mailbox_full", "nothing_to_collect", "unknown_round", "round_closed",
            "already_joined", "round_full", "wrong_stake", "already_open", "too_many_rounds", "nobody_left",
            "unknown_hold", "hold_ended", "too_many_holds", "unknown_request", "not_reversible", "already_reversed", None,
            "blocked", "unknown_player", "already_linked", "unknown_link_code",
            "not_linked", "merge_needed", "too_many_aliases", "link_code_taken", "forgotten"]


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
            elif verb in (STOCK, WINDOW, TALLY, RETURN, ORDER, CLAIM, GROW, HOLD, RELEASE, FORFEIT, PROMISE, PLACE):
                n, value = r.number(), r.number()
            elif verb == BEYOND:
                n, value = r.number(), (r.number(), r.byte())
            elif verb == PUT:
                key, size = r.number(), r.number()
                n, value = r.take(key), r.take(size)
            elif verb == DROP:
                n = r.text()
            elif verb == COUNTER:
                n, value = r.number(), r.name()
            elif verb == CATALOG:
                value = r.text()
            elif verb in (CLOCK, LEVEL, IDENTITY):
                value = r.number()
                assert verb != LEVEL or value <= KNOWN, "format level %d: a newer Kuji wrote this log" % value
            elif verb in (NEW_LIST, ERASE):
                value = r.name()
            elif verb == ADD_CODES:
                n, value = r.number(), r.text()
            elif verb in (GIVE_CODE, USE_CODE):
                n, value = r.number(), r.number()
            else:
                assert verb in (MEMBER, DRAW), "unknown effect: a newer Kuji wrote this log"
        yield verb, n, value


class Event:
    def __init__(self, r):
        size = r.number()
        end = r.at + size
        head = r.byte()
        self.kind = head >> 3 or r.byte()
        self.id = r.name() if head & 1 else b""
        self.player = ref(r) if head & 4 else None
        self.status, self.subject, self.why = (r.byte(), r.number(), r.text()) if head & 2 else (0, None, b"")
        self.asked = r.text()
        self.effects = list(effects(Reader(r.take(end - r.at))))
        assert r.at == end and not (head & 2 and not self.status)
        if self.status:  # nothing but counts
            verbs = [verb for verb, _, _ in self.effects]
            counts = verbs[1:] if verbs[:1] == [JOIN] else verbs
            assert all(verb in (SET, PUT) for verb in counts), "a failure has effects"

    def used(self):
        """The list and the number of the code that was redeemed, the pool, and how many draws it paid for."""
        list_of, number = next((n, value) for verb, n, value in self.effects if verb == USE_CODE)
        asked = next((n for verb, n, _ in self.effects if verb == POOL), None)
        marks = sum(verb == DRAW for verb, _, _ in self.effects)
        return list_of, number, asked, marks or len({draw for draw, _, _ in self.outcomes()[0][1]})

    def outcomes(self):
        """For each member, or the one command: what it spent, and the outcomes of its draws.

        An outcome is the number of the draw, its way and what it gave.
        """
        members, asked, pool, draw, marked, claimed = [([], [])], None, None, -1, False, False
        if self.kind == 6:
            members = []
        for verb, n, value in self.effects:
            if verb == MEMBER:
                members.append(([], []))
                asked, pool, draw, marked, claimed = None, None, -1, False, False
            elif verb == CLAIM or claimed:
                claimed = True  # what follows is what quests gave
            elif verb == DRAW:
                draw, marked = draw + 1, True
            elif verb == POOL:
                pool = n
                asked = n if asked is None else asked
            elif verb == TAKE:
                if pool == asked:  # an outcome begins
                    draw += not marked
                    members[-1][1].append((draw, [], []))
                members[-1][1][-1][1].append((pool, n))
            elif verb == GAIN and members[-1][1]:
                members[-1][1][-1][2].append((n, value))
            elif verb == SPEND:
                members[-1][0].append((n, value))
        return members

    def claims(self):
        """For each member, or the one command, the tiers of quests that were claimed: quest, tier, player, way, gains.

        After the members of a group come those that claimed themselves.
        """
        members, pool, player = [[]] if self.kind != 6 else [], None, self.player
        for verb, n, value in self.effects:
            if verb == MEMBER:
                members.append([])
                pool = None
            elif verb in (PLAYER, JOIN):
                player = n if verb == PLAYER else value
            elif verb == POOL:
                pool = n
            elif verb == CLAIM:
                members[-1].append((n, value, player, [], []))
            elif verb == TAKE and members[-1]:
                members[-1][-1][3].append((pool, n))
            elif verb == GAIN and members[-1]:
                members[-1][-1][4].append((n, value))
        return members

    def beyond(self):
        """For each member, or the one command: item, quantity, what became of it and player, of what was beyond a cap.

        After the members of a group comes what those brought that claimed themselves.
        """
        members, player = [[]] if self.kind != 6 else [], self.player
        for verb, n, value in self.effects:
            if verb == MEMBER:
                members.append([])
            elif verb in (PLAYER, JOIN):
                player = n if verb == PLAYER else value
            elif verb == BEYOND:
                members[-1].append((n, value[0], ["", "cut", "mailed", "gone"][value[1]], player))
        return members

    def collected(self):
        """What an event of kind 18 took from the mailbox."""
        some = []
        for verb, n, value in self.effects:
            if verb == CLAIM:
                break  # what follows is what quests gave
            if verb == GAIN:
                some.append((n, value))
        return some

    def reasons(self):
        """What an event that failed says besides its status."""
        r, said = Reader(self.why), None
        if STATUSES[self.status] == "limit_reached":
            said = {"per": PERS[r.byte()], "window_ms": r.number(), "draws": r.number(),
                    "left": r.number(), "resets": r.number()}
        elif STATUSES[self.status] == "insufficient_items":
            said = [{"item": r.number(), "have": r.number(), "need": r.number()} for _ in range(r.number())]
        elif STATUSES[self.status] == "hold_ended":
            said = {"became": ["", "open", "confirmed", "cancelled", "expired"][r.number()], "ago_ms": r.number(), "by": r.text()}
        assert r.at == len(self.why)
        return said

    def commands(self):
        """What was asked: (kind, player, other arguments) of the command or of each member."""
        r = Reader(self.asked)
        if self.kind in (6, 24):
            if self.kind == 24:
                r.number(), r.number()  # for how long it is held, and how
            if self.status:
                r.number()  # the member that failed
            asked = []
            for _ in range(r.number()):
                kind = r.byte()
                asked.append((kind, ref(r), arguments(r, kind)))
        else:
            asked = [(self.kind, self.player, arguments(r, self.kind))]
        self.note = None
        if self.kind in (1, 3, 4, 5, 6, 11, 13, *range(15, 27), 34, 35, 36) and r.at < len(self.asked):
            self.note = (r.text(), r.text(), r.text())  # by, reason, metadata
            assert any(self.note)
        assert r.at == len(self.asked)
        return asked


def arguments(r, kind):
    if kind in (1, 9, 11, 18):
        return None
    if kind == 10:
        return r.take(16)  # a code's sum
    if kind == 7:
        return r.number(), r.name(), r.name()  # to, by, reason
    if kind == 12:
        return r.name(), r.name()  # by, reason
    if kind == 14:
        what = r.number()  # 1 swept or 2 for a command, players; or 3, counter, period, first rank, how many
        if what in (4, 5):
            return what, [r.number()]  # a round
        if what == 6:
            return what, [r.text() for _ in range(r.number())]  # holds
        return what, [r.number() for _ in range(4 if what == 3 else r.number())]
    if kind == 2:
        pool, count = r.number(), r.number()
        return pool, count >> 1, r.number() if count & 1 else None
    if kind == 13:
        return r.number(), r.byte(), r.number(), r.number(), r.number()  # pool, per, window, draws allowed, draws used
    if kind == 15:
        return r.text(), r.text(), r.number()  # event, key, how much of it
    if kind in (16, 17):
        return r.number(), r.number()  # quest, how many tiers; counter, where it stands
    if kind == 8:
        return r.text(), r.number(), r.text(), r.text()  # track, draws, by, reason
    if kind in (19, 20):
        return r.text(), r.number(), r.number(), [(r.number(), r.number()) for _ in range(r.number())]  # round, number, tickets, stake
    if kind in (21, 22, 23):
        return r.text(), r.number()  # round, number
    if kind in (34, 35):
        return r.number()  # the number of a proposal
    if kind == 36:
        return r.number(), r.text(), r.text()  # a proposal, who proposed it, why
    if kind in (25, 26):
        return r.text()  # the request id of what is held
    other = ref(r) if kind == 5 else None
    return other, [(r.number(), r.number()) for _ in range(r.number())]


class State:
    """What the effects of all events so far make. It refuses those that break an invariant."""

    def __init__(self):
        self.items, self.pools, self.players = [], [], []  # ids by number
        self.counters, self.counter = 0, {}  # how many are named; the first of each name
        self.stock, self.taken, self.entries = [], [], []  # by pool and entry number; stock None: unlimited
        self.held, self.counted = [], []  # by player number: balances by item, counters
        self.kept, self.records = [], {}  # by player number: what is held by item; records by key
        self.tallies = {}  # the realm's counters
        self.level = 1  # of the format
        self.orders = {}  # by the first counter of each: how many it goes by
        self.number = {}  # of players by id
        self.version, self.catalog = 0, b""
        self.time, self.back = 0, 0  # the last time stamp, and how far the clock was set back in all
        self.lists, self.codes, self.given = [], [], []  # by list number: names, codes, players
        self.used = []  # by list number: who used which code

    def apply(self, event, time):
        assert time >= self.time, "time goes back"
        self.time = time
        player, pool = event.player, None
        for verb, n, value in event.effects:
            if verb in (GAIN, SPEND, GROW):
                assert n < len(self.items) and value > 0, "an item that there is not"
                held = self.held[player]
                held[n] = held.get(n, 0) + (-value if verb == SPEND else value)
                assert 0 <= held[n] < 1 << 53, f"balance of player {player}, item {n}"
            elif verb in (HOLD, RELEASE, FORFEIT):
                free, kept = self.held[player], self.kept[player]
                free[n] = free.get(n, 0) + {HOLD: -value, RELEASE: value, FORFEIT: 0}[verb]
                kept[n] = kept.get(n, 0) + (value if verb == HOLD else -value)
                assert value > 0 and 0 <= free[n] < 1 << 53 and 0 <= kept[n] < 1 << 53, f"what player {player} holds of item {n}"
            elif verb == PUT:
                self.records[n] = value
            elif verb == DROP:
                del self.records[n]
            elif verb == PLAYER:
                player = n
            elif verb == JOIN:
                assert value not in self.number, "joins twice"
                player = self.number[value] = len(self.players)
                self.players.append(value), self.held.append({}), self.kept.append({}), self.counted.append({})
            elif verb == GIVE_CODE:
                assert value == len(self.given[n]) < len(self.codes[n]), "a code out of its turn"
                self.given[n].append(player)
            elif verb == USE_CODE:
                assert value < len(self.codes[n]) and (value, player) not in self.used[n], "a code used twice by a player"
                self.used[n].add((value, player))
            elif verb == SET:
                assert n < self.counters, "a counter that there is not"
                self.counted[player][n] = value
            elif verb == POOL:
                pool = n
            elif verb == TAKE:
                self.taken[pool][n] += 1
                assert self.stock[pool][n] is None or self.taken[pool][n] <= self.stock[pool][n], f"stock of pool {pool}, entry {n}"
            elif verb == RETURN:
                self.taken[pool][n] -= value
                assert value > 0 <= self.taken[pool][n], f"returned to pool {pool}, entry {n}"
            elif verb == TALLY:
                assert n < self.counters, "a counter that there is not"
                self.tallies[n] = value
            elif verb == MEMBER:
                pool = None
            elif verb not in (DRAW, CLAIM, BEYOND, PROMISE, PLACE):
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
            assert value not in self.counter
            self.counter[value] = self.counters
            self.counters += n
        elif verb == NEW_LIST:
            assert value not in self.lists
            self.lists.append(value), self.codes.append([]), self.given.append([]), self.used.append(set())
        elif verb == ADD_CODES:
            self.codes[n] += imported(value)
            assert len(self.codes[n]) == len(set(self.codes[n])), "a code twice"
        elif verb == CATALOG:
            self.version, self.catalog = self.version + 1, value
        elif verb == LEVEL:
            assert value > self.level, "a format level that does not rise"
            self.level = value
        elif verb == ORDER and value == 0:
            del self.orders[n]
        elif verb == ORDER:
            width = {1: 1, 2: 3}[value]  # by a time; by a value, a move and a period
            assert n + width <= self.counters and len(self.orders) < 64, "an order of counters that there are not"
            assert all(n + width <= first or first + of <= n for first, of in self.orders.items()), "two orders of a counter"
            self.orders[n] = width
        elif verb == CLOCK:
            assert 0 < value <= self.time and self.back + value <= 3 << 44, "the clock is set back too far"
            self.time, self.back = self.time - value, self.back + value
        return pool

    def settle_ranks(self, event, counter, period, first, many):
        """What an event must do that ends a period, or pays the ranks that come next."""
        name = next(name for name, first in self.counter.items() if first == counter)[len(b"/count/"):]
        tallies, second = self.counter[b"/realm/ranks/" + name], self.counter[b"/rank/" + name]
        frozen = self.tallies.get(tallies + 2, 0) == (1 if first else 0)  # it stands in the first place
        standing = self.standing(counter if frozen else second, period)
        if not first:
            assert many == len(standing) > 0 and period > self.tallies.get(tallies + 3, 0), "no period can end"
            return
        assert period == self.tallies.get(tallies + 4) and first == self.tallies.get(tallies + 5, 0) + 1 and 0 < many <= 64, "other ranks are due"
        paid = [(tier >> 1, player) for n, tier, player, _, _ in event.claims()[0] if n == counter]
        assert paid == list(enumerate(standing[first - 1:first - 1 + many], first)), "ranks of others"

    def standing(self, at, period):
        """The players in the order of the three counters from a number on, the highest first."""
        ranked = [(-c[at], c.get(at + 1, 0), player) for player, c in enumerate(self.counted) if c.get(at) and c.get(at + 2, 0) == period]
        return [player for _, _, player in sorted(ranked)]

    def settle(self, event, time):
        """What an event of kind 14 must do: what is due for its players, and for a sweep those that come first."""
        what, players = event.commands()[0][2]
        if what == 3:
            return self.settle_ranks(event, *players)
        steady, due = time + self.back, self.counter[b"/due"]
        waiting = sorted((counted[due], player) for player, counted in enumerate(self.counted) if counted.get(due))
        waiting = [player for deadline, player in waiting if deadline <= steady]
        assert players and (what == 1 and players == waiting[:len(players)] or what == 2 and set(players) <= set(waiting)), "not due"
        want = []
        for player in players:
            want.append((PLAYER, player, None))
            counted, left = self.counted[player], []
            for first, item in sorted((first, name[6:]) for name, first in self.counter.items() if name.startswith(b"/lots/")):
                lots = sorted((counted[at], at) for at in range(first, first + 200, 2) if counted.get(at))
                gone = [at for end, at in lots if end <= steady]
                left += [end for end, _ in lots if end > steady]
                if gone:
                    want.append((SPEND, self.items.index(item), sum(counted[at + 1] for at in gone)))
                want += [(SET, at + half, 0) for at in gone for half in (0, 1)]
            mail = self.counter.get(b"/mail", 0)
            letters = sorted((counted[at], at) for at in range(mail, mail + 300, 3) if b"/mail" in self.counter and counted.get(at))
            left += [end for end, _ in letters if end > steady]
            for end, at in letters:
                if end <= steady:
                    want.append((BEYOND, counted[at + 1] - 1, (counted[at + 2], 3)))
                    want += [(SET, at + part, 0) for part in range(3)]
            want.append((SET, due, min(left, default=0)))
        more = event.effects[len(want):]  # what quests gave that it reached
        assert event.effects[:len(want)] == want, f"what is due is settled as {event.effects}, want {want}"
        assert not more or CLAIM in [verb for verb, _, _ in more[:2]], "more is settled than is due"

    def grown(self, player, item, held, time):
        """What a balance has grown to at a time stamp, by the rates that the realm's counters have."""
        name, steady = self.items[item], time + self.back
        if b"/grows/" + name not in self.counter or player >= len(self.players):
            return held
        since, first = self.counted[player].get(self.counter[b"/grows/" + name], 0), self.counter[b"/realm/growth/" + name]
        rates = [[self.tallies.get(at + i, 0) for i in range(4)] for at in range(first, first + 400, 4) if at in self.tallies]
        for (begins, every, by, to), after in zip(rates, rates[1:] + [[steady]]):
            start, end = max(since, begins), min(after[0], steady)
            if start < end and held < to and every:
                n = min((end - start) // every, -((held - to) // by))
                held, since = min(held + n * by, to), start + n * every
        return held

    def holdings(self, player):
        """What a player holds, at the last time stamp."""
        held = self.held[player]
        growing = [item for item, name in enumerate(self.items) if b"/grows/" + name in self.counter]
        return [(item, self.grown(player, item, held.get(item, 0), self.time)) for item in sorted({*held, *growing})]

    def named(self, n):
        """The id of the counter or quest whose first counter has a number."""
        name = next(name for name, first in self.counter.items() if first == n)
        return name.removeprefix(b"/realm").split(b"/")[2]

    def ranks(self, n):
        """Whether the first counter with a number is one of the catalog's counters, and none of a quest."""
        return next(name for name, first in self.counter.items() if first == n).startswith(b"/count/")

    def of_realm(self):
        """The numbers of the catalogs' counters for the realm."""
        firsts = sorted(self.counter.values()) + [self.counters]
        return {n for name, first in self.counter.items() if name.startswith(b"/realm/")
                for n in range(first, firsts[firsts.index(first) + 1])}

    def left(self, pool, entry):
        """What is left of an entry's stock; None without a bound."""
        if self.stock[pool][entry] is None:
            return None
        return max(0, self.stock[pool][entry] - self.taken[pool][entry])


def imported(data):
    """The codes of an import."""
    r, codes = Reader(data), []
    while r.at < len(data):
        codes.append(r.name())
    return codes


def describe(state, event):
    """An applied event with ids in place of numbers."""
    def text(name):
        return name.decode("utf-8", "backslashreplace")

    def of(names, which):
        return text(names[which] if isinstance(which, int) else which)

    def stacks(some):
        held = {}
        for item, quantity in some:
            held[of(state.items, item)] = held.get(of(state.items, item), 0) + quantity
        return held

    def beyond(some, whose):
        return {"beyond": [{"item": of(state.items, item), "quantity": quantity, "how": how, "player": of(state.players, player) if whose else ""}
                           for item, quantity, how, player in some]} if some else {}

    def command(kind, player, asked):
        if kind == 2:
            pay = {} if asked[2] is None else {"pay": of(state.items, asked[2])}
            return {"kind": "draw", "player": of(state.players, player), "pool": of(state.pools, asked[0]), "count": asked[1], **pay}
        if kind == 8:
            track, draws, by, reason = asked
            return {"kind": KINDS[8], "player": of(state.players, player), "track": text(track), "draws": draws,
                    "by": text(by), "reason": text(reason)}
        if kind == 13:
            pool, per, window, allowed, used = asked
            return {"kind": KINDS[13], "player": of(state.players, player), "pool": of(state.pools, pool), "draws": used,
                    "limit": {"per": PERS[per], "window_ms": window, "draws": allowed, "left": allowed - min(used, allowed)}}
        if kind == 10:
            return {"kind": "redeem", "player": of(state.players, player)}
        if kind == 15:
            return {"kind": KINDS[15], "player": of(state.players, player), "event": text(asked[0]), "key": text(asked[1]), "value": asked[2]}
        if kind == 16:
            return {"kind": KINDS[16], "player": of(state.players, player), "quest": text(state.named(asked[0])), "count": asked[1]}
        if kind == 17:
            player = "" if player is None else of(state.players, player)
            return {"kind": KINDS[17], "player": player, "counter": text(state.named(asked[0])), "value": asked[1]}
        if kind == 18:
            return {"kind": "collect", "player": of(state.players, player), "items": stacks(event.collected())}
        if kind == 11:
            return {"kind": "register", "player": of(state.players, player)}
        to = {"to": of(state.players, asked[0])} if kind == 5 else {}
        return {"kind": KINDS[kind], "player": of(state.players, player), **to, "items": stacks(asked[1])}

    said = {"kind": KINDS[event.kind], "id": text(event.id), "status": STATUSES[event.status]}
    if event.status in (20, 21, 22):
        said["subject"] = text(state.named(event.subject))
    elif event.status == 5 and event.kind == 17:
        said["subject"] = text(state.named(event.subject))
    elif event.status in (15, 16, 17):
        said["subject"] = text(state.lists[event.subject])
    elif event.status and event.status not in (14, 18, 26) and event.status < 27:
        items = event.status in (3, 9, 12, 23, 24, 25)
        said["subject"] = of(state.items if items else state.pools, event.subject)
    if event.status == 2:
        said["limit"] = event.reasons()
    if event.status == 3:
        said["lacks"] = [{**lack, "item": of(state.items, lack["item"])} for lack in event.reasons()]
    event.commands()
    if event.note:
        said |= dict(zip(("by", "reason", "metadata"), map(text, event.note)))
    if event.kind in (34, 35):
        return {**said, "proposal": event.commands()[0][2]}
    if event.kind == 36:
        number, by, why = event.commands()[0][2]
        return {**said, "version": state.version, "proposal": number, "proposed": (text(by), text(why))}
    if event.kind == 1:
        return {**said, "version": state.version}
    if event.kind == 9:
        n, added = next((n, value) for verb, n, value in event.effects if verb == ADD_CODES)
        return {**said, "list": text(state.lists[n]), "count": len(imported(added))}
    if event.kind == 7:
        to, by, reason = event.commands()[0][2]
        return {**said, "clock": {"to": to, "by": text(by), "reason": text(reason)}}
    if event.kind == 14:
        what, settled = event.commands()[0][2]
        claimed = []
        for n, tier, player, way, gains in event.claims()[0]:
            ranks = state.ranks(n)
            what_for = {"counter": text(state.named(n)), "rank": tier >> 1, "missed": tier & 1 == 1} if ranks else {"quest": text(state.named(n)), "tier": tier}
            way = [of(state.pools, p) + "/" + of(state.entries[p], e) for p, e in way]
            claimed.append({**what_for, "player": of(state.players, player), "way": way, "items": stacks(gains)})
        said |= {"claims": claimed} if claimed else {}
        said |= beyond(event.beyond()[0], True)
        if what == 3:
            counter, period, first, many = settled
            return {**said, "due": {"counter": text(state.named(counter)), "period": period, "from": first, "count": many}}
        return {**said, "due": {"swept": what == 1, "players": [of(state.players, player) for player in settled]}}
    if event.kind == 12:
        by, reason = event.commands()[0][2]
        return {**said, "level": state.level, "by": text(by), "reason": text(reason)}

    def claims(some, whose):
        return {"claims": [{
            "quest": text(state.named(n)), "tier": tier, "player": of(state.players, player) if whose else "",
            "way": [of(state.pools, p) + "/" + of(state.entries[p], e) for p, e in way], "items": stacks(gains),
        } for n, tier, player, way, gains in some]} if some else {}

    all_of_it, claimed, over = [], event.claims(), event.beyond()
    for i, asked in enumerate(event.commands()):
        one = command(*asked)
        if not event.status and asked[0] == 10:
            list_of, number, pool, draws = event.used()
            one.update(list=text(state.lists[list_of]), number=number, count=draws, pool="" if pool is None else text(state.pools[pool]))
        if not event.status and asked[0] in (2, 10):
            spent, outcomes = event.outcomes()[i]
            one["paid"] = stacks(spent)
            one["outcomes"] = [{
                "draw": draw, "way": [of(state.pools, p) + "/" + of(state.entries[p], e) for p, e in way], "items": stacks(gains),
            } for draw, way, gains in outcomes]
        if not event.status:
            one.update(claims(claimed[i], event.kind == 5))
            one.update(beyond(over[i], event.kind == 5))
        all_of_it.append(one)
    if event.kind == 6:
        said.update(claims([c for some in claimed[len(all_of_it):] for c in some], True))
        said.update(beyond([b for some in over[len(all_of_it):] for b in some], True))
    return {**said, "members": all_of_it} if event.kind == 6 else {**said, **all_of_it[0]}


# catalog.md

def catalog(data):
    r = Reader(data)
    assert r.take(7) == b"KUJICAT"
    version = r.byte()
    assert version in (3, 4, 5, 6)
    r.text()
    zone = []
    if r.text():
        zone = [(r.number() * 1000, (r.number() - 86399) * 1000) for _ in range(r.number())]
    pools = {}

    def many(*fields):
        return [fields[0]() if len(fields) == 1 else tuple(field() for field in fields) for _ in range(r.number())]

    def names():
        return [r.text() for _ in range(r.number())]

    def counted():
        return r.text(), r.number(), MAX_COUNT - r.number()

    def condition():
        c = {"holds": r.stacks(), "lacks": names(), "pity": many(r.text, r.number), "counters": [], "quests": []}
        if version >= 4:
            c["counters"], c["quests"] = many(counted), many(r.text, r.number)
        return c

    def over():
        per = r.byte()
        return per, r.text() if per == 7 else b""

    def texts():
        return many(r.text, r.text)

    def display():
        """What people see. No rule reads it."""
        flags = r.byte() if version >= 6 else 0
        assert flags < 32
        if flags & 1:
            texts()  # names
        if flags & 2:
            texts()  # description
        if flags & 4:
            r.text()  # rarity
        if flags & 8:
            r.text()  # icon
        if flags & 16:
            texts()  # metadata

    def counter():
        c = {"name": r.text(), "for": r.byte()}
        c["progress"], c["draws"], c["gains"], c["spends"], c["consumes"], c["entries"] = (names() for _ in range(6))
        c["per"], c["streak"], c["highest"], c["distinct"], c["cap"] = over(), (r.byte(), r.number()), r.byte(), r.number(), r.byte()
        c["most"] = r.number() if c["cap"] else 0
        c["highest"], ranked = c["highest"] & 1, c["highest"] & 2
        c["ranked"] = many(r.number, reward) if ranked else None
        display()
        return c

    def quest():
        q = {"name": r.text(), "when": condition(), "per": over(), "claim": r.byte()}
        only = many(counted), reward()
        q["tiers"] = many(lambda: many(counted), reward) or [only]
        display()
        return q

    def stake():
        of = r.byte()
        assert 1 <= of <= 3
        return of, r.text() if of < 3 else b"", r.number(), r.number(), r.byte()

    def winners():
        w = {"count": r.number(), "by": r.byte()}
        flags = r.byte()
        w["distinct"], w["everything"] = flags & 1 > 0, flags & 2 > 0
        w["values"] = many(r.text, r.number) if w["by"] == 3 else []
        w["rank"] = r.text() if w["by"] == 4 else b""
        w["pot"] = r.text() if flags & 4 else b""
        w["shares"], w["reward"] = many(r.number), reward()
        w["rerolls"] = (r.number(), r.number()) if flags & 8 else None  # most, within
        return w

    def round_of():
        name, flags = r.text(), r.byte()
        c = {"name": name, "one": flags & 2 > 0, "opens": flags & 4 > 0, "stake": stake() if flags & 1 else None}
        c["ticket"] = None if flags & 1 else (r.stacks(), r.number(), many(r.text, r.number))  # price, most, shares by pot
        least = r.number()
        c["entrants"], c["open"], c["every"], c["winners"] = (least, least + r.number()), r.number(), r.byte(), winners()
        display()
        return c

    def item():
        it = r.text(), r.byte(), r.text(), item_rules() if version >= 4 else None
        display()
        return it

    def item_rules():
        flags = r.byte()
        lasts = r.number() if flags & 1 else 0
        grows = [r.number() for _ in range(3)] if flags & 4 else None  # every, by, to
        family = r.text() if flags & 8 else b""
        most, beyond = (r.number(), r.byte()) if flags & 16 else (0, 0)
        return lasts, flags & 2 > 0, grows, family, (most, beyond, r.number() if beyond == 2 else 0)

    def rising():
        start = r.number()
        return start and (start, r.byte(), r.number(), [r.number() for _ in range(r.number())])

    def reward():
        return {"items": many(r.text, r.number, r.number), "draws": many(r.text, r.number, r.number), "codes": names()}

    items = many(item)
    for _ in range(r.number()):
        pool, _, p = r.text(), r.text(), {"mode": r.byte(), "flags": r.byte()}
        p["price"] = [r.stacks() for _ in range(r.number())]
        p["bundles"] = many(r.number, r.stacks)
        per = r.byte()
        p["free"] = per and (per, r.number())
        p["redeem"] = many(r.text, r.number, r.number, r.number)
        p["starts"], p["ends"], p["max_count"] = r.number(), r.number(), r.number()
        p["limits"] = many(r.byte, r.number, r.number)
        p["when"] = condition()
        p["rolls"] = r.number(), r.number()
        p["pity"] = many(r.text, names, r.number, rising, r.text)
        p["guarantee"] = many(r.number, r.number, names)
        p["last"], p["refill"] = reward(), r.number()
        p["budget"] = many(r.byte, r.stacks, r.text)
        p["scale"] = r.number()
        p["entries"] = {}
        for _ in range(r.number()):
            entry, e = r.text(), {"weight": r.number(), "stock": r.number()}
            flags = r.byte()
            e["group"] = r.text() if flags & 1 else ""
            e["when"] = condition() if flags & 2 else None
            e["unique"] = flags & 4 > 0
            e["luck"] = (r.byte(), r.text(), many(r.number, r.number)) if flags & 8 else None
            e["moments"] = (r.number(), r.byte(), r.byte(), many(r.text, r.number)) if flags & 16 else None
            e["reward"] = reward()
            p["entries"][entry] = e
        p["price_by"] = (counter_of, many(r.number, r.stacks)) if version >= 4 and (counter_of := r.text()) else None
        display()
        pools[pool] = p
    start = r.stacks()
    r.number(), r.number(), r.byte(), r.number()  # idempotency
    if r.byte():
        r.number()  # guesses
    begins, week, counters, quests, seasons = 0, 0, [], {}, []
    if version >= 4:
        counters, quests = many(r.text, counter), dict(many(r.text, quest))
        begins, week = r.number(), r.byte()
        seasons = many(r.text, r.number, r.number)
    rounds, purchases = {}, b""
    if version >= 5:
        rounds, purchases = dict(many(r.text, round_of)), r.text()
    if version >= 6:
        r.text(), texts()  # the language of texts, and the catalog's names
        many(r.text, r.text, texts)  # rarities
    assert r.at == len(data)
    calendar = zone, begins * 60_000, (3 - week) % 7 * 86_400_000
    return {"calendar": calendar, "items": items, "pools": pools, "start": start, "counters": dict(counters), "quests": quests, "seasons": seasons,
            "rounds": rounds, "purchases": purchases}


def shape(over):
    """What the name of a counter or a quest says of the time over which it counts."""
    per, season = over
    return {1: b"forever", 2: b"day", 3: b"week", 6: b"month", 7: b"season"}[per] + (b":" + season if season else b"")


def period(calendar, per, time):
    """The number of the day (2), week (3), hour (5) or month (6) at a time, by clocks that never go back; 0 of all time (1)."""
    if per == 1:
        return 0
    zone, day_begins, week = calendar
    shown, before, latest = max(time, 0), 0, 0
    for begins, offset in zone:
        if begins > time:
            break
        if begins:
            latest = max(latest, begins + before)
        shown, before = max(time + offset, latest), offset
    if per == 5:
        return shown // 3_600_000
    shown = max(shown - day_begins, 0)
    if per == 6:
        day = datetime.date(1970, 1, 1) + datetime.timedelta(days=shown // 86_400_000)
        return (day.year - 1970) * 12 + day.month - 1
    return {2: shown // 86_400_000, 3: (shown + week) // 604_800_000}[per]


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

def gains(pools, reward, known):
    """The most that a reward can give of each item, through all pools below."""
    most = {}
    for item, low, span in reward["items"]:
        most[item] = most.get(item, 0) + low + span
    for name, low, span in reward["draws"]:
        for item, n in pool_gains(pools, name, known).items():
            most[item] = most.get(item, 0) + n * (low + span)
    return most


def pool_gains(pools, name, known):
    if name not in known:
        p, most = pools[name], {}
        for e in p["entries"].values():
            luck = [w for _, w in e["luck"][2]] if e["luck"] else []
            if p["mode"] != 2 and not e["moments"] and not any([e["weight"], *luck]):
                continue
            for item, n in gains(pools, e["reward"], known).items():
                most[item] = most.get(item, 0) + n if p["mode"] == 3 else max(most.get(item, 0), n)
        for item, n in gains(pools, p["last"], known).items():
            most[item] = most.get(item, 0) + n
        known[name] = {item: n * sum(p["rolls"]) for item, n in most.items()}
    return known[name]


class Moments:
    """The moments of an entry, in milliseconds that count as often as their hour and day weigh."""

    DAYS = [b"mon", b"tue", b"wed", b"thu", b"fri", b"sat", b"sun"]

    def __init__(self, entry, counter, config, starts, ends, zone):
        self.entry, self.counter, self.starts, self.ends = entry, counter, starts, ends
        self.count, self.spread, self.passes, ranges = config
        self.zone = zone or [(0, 0)]
        self.hours, self.days = [1] * 24, [1] * 7
        for when, weight in ranges:
            first, dash, last = when.partition(b"-")
            if first.isdigit():
                at, end, weights = int(first), int(last), self.hours
            else:
                at, end, weights = self.DAYS.index(first), self.DAYS.index(last if dash else first) + 1, self.days
            weights[at:end] = [weight] * (end - at)
        self.end = self.measure(ends)

    def measure(self, time):
        """What lies between the start and a time."""
        def shown(clock):
            days, rest = divmod(clock, 86_400_000)
            hour, rest = divmod(rest, 3_600_000)
            weeks, day = divmod(days + 3, 7)  # 1 January 1970 was a Thursday
            whole = (weeks * sum(self.days) + sum(self.days[:day])) * sum(self.hours) * 3_600_000
            return whole + self.days[day] * (sum(self.hours[:hour]) * 3_600_000 + rest * self.hours[hour])

        time, total = min(max(time, self.starts), self.ends), 0
        for i, (begins, offset) in enumerate(self.zone):
            since = max(begins, self.starts) if i else self.starts
            until = min(time, self.zone[i + 1][0]) if i + 1 < len(self.zone) else time
            if since < until:
                total += shown(until + offset) - shown(since + offset)
        return total

    def slot(self, halves):
        return self.end * halves // (2 * self.count)


def key_of(text):
    """What a distinct counter keeps of a key."""
    return max(1, le(hashlib.sha256(text).digest(), 0, 8))


class Counter:
    """A counter of the catalog in force, by the state's numbers."""

    def __init__(self, state, name, c):
        self.per, self.streak, self.forgive = c["per"], *c["streak"]
        self.highest, self.distinct, self.cap, self.most = c["highest"], c["distinct"], c["cap"], c["most"]
        of = name + b"/" + shape(self.per) + (b"/highest" if self.highest else b"/distinct" if self.distinct else b"")
        if self.streak:
            self.per, of = (self.streak, b""), name + b"/" + shape((self.streak, b"")) + b"/streak"
        self.realm = c["for"] == 2
        whose = b"/realm" if self.realm else b""
        self.number, self.keys = state.counter[whose + b"/count/" + of], state.counter.get(whose + b"/keys/" + of)
        self.tallies, self.second = state.counter.get(b"/realm/ranks/" + of), state.counter.get(b"/rank/" + of)

    def at(self, i, place):
        """Which counter of the state has one of the numbers: value, move, period, missed, moved toward the cap, its period."""
        return self.second + i if place and i < 3 else self.number + i

    def move(self, value, room, n):
        """Where it stands after a fact of n, if it can move by so much; and how much of that it took."""
        if self.highest:
            return max(value, min(n, room)), 0
        used = min(1 if self.streak or self.distinct else n, room)
        return min(value + used, MAX_COUNT), used


class Pool:
    """A pool of the catalog in force, by the state's numbers."""

    def __init__(self, p, state, number, item, entry, zone, most, rules):
        def stacks(some):
            return [(item[i], q) for i, q in some]

        def reward(of):
            return ([(item[i], low, span) for i, low, span in of["items"]],
                    [(number[name], low, span) for name, low, span in of["draws"]],
                    [state.lists.index(name) for name in of["codes"]])

        self.number, self.mode, self.scale, self.refill = number[p["id"]], p["mode"], p["scale"], p["refill"]
        self.distinct, self.rolls = p["flags"] & 4 > 0, p["rolls"]
        self.prices = [stacks(price) for price in p["price"]]
        self.price_by = p["price_by"] and (rules.counters[p["price_by"][0]], [(begins, stacks(price)) for begins, price in p["price_by"][1]])
        self.bundles = [(draws, stacks(price)) for draws, price in p["bundles"]]
        self.free, self.last = p["free"], reward(p["last"])
        self.single = self.mode != 3 and sum(self.rolls) == 1
        self.tracks, groups = [], []
        for name, of, certain, rising, share in p["pity"]:
            counter = state.counter[b"/pity/" + share if share else p["id"] + b"/pity/" + name]
            self.tracks.append((name, counter, certain, rising))
            groups.append(of)
        self.guarantees = [(draws, least) for draws, least, _ in p["guarantee"]]
        groups += [of for _, _, of in p["guarantee"]]
        self.whole = max([100 * rising[2] for _, _, _, rising in self.tracks if rising], default=1)
        counters = {name: counter for name, counter, _, _ in self.tracks}
        self.refills = state.counter.get(p["id"] + b"/refills")
        self.free_counter = self.free and state.counter[p["id"] + {1: b"/free", 2: b"/free/day", 3: b"/free/week", 6: b"/free/month"}[self.free[0]]]

        budgets = []
        for per, of, share in p["budget"]:
            name = (b"/budget/" + share if share else p["id"] + b"/budget") + {1: b"/forever", 2: b"/day", 3: b"/week", 5: b"/hour", 6: b"/month"}[per]
            budgets += [(state.counter[name + b"/" + i], per, i, limit) for i, limit in of]
        self.costs, self.moments = {}, []  # by entry: budgets, the most that it takes from each

        self.order, self.weight, self.reward, self.luck, self.condition, self.classes = [], {}, {}, {}, {}, []
        classes = {}
        for name, e in p["entries"].items():
            n = entry[name]
            assert state.stock[self.number][n] == (e["stock"] - 1 if e["stock"] else None), "the stock is not the catalog's"
            self.order.append(n)
            self.weight[n], self.reward[n] = e["weight"], reward(e["reward"])
            when = e["when"] or {"holds": [], "lacks": [], "pity": [], "counters": [], "quests": []}
            lacks = [one for i in when["lacks"] for one in rules.items_of(item[i])] + ([i for i, _, _ in self.reward[n][0]] if e["unique"] else [])
            if e["when"] or e["unique"]:
                self.condition[n] = (stacks(when["holds"]), lacks, [(counters[t], draws) for t, draws in when["pity"]],
                                     [(rules.counters[c], low, high) for c, low, high in when["counters"]],
                                     [(rules.claimed[q], tiers) for q, tiers in when["quests"]])
            gives = most(e["reward"])
            self.costs[n] = [(counter, per, item[i], limit, gives[i]) for counter, per, i, limit in budgets if i in gives]
            if e["moments"]:
                self.moments.append(Moments(n, state.counter[p["id"] + b"/moments/" + name], e["moments"], p["starts"], p["ends"], zone))
            if e["luck"]:
                of, name_of, steps = e["luck"]
                self.luck[n] = of, item[name_of] if of == 1 else counters[name_of] if of == 2 else rules.counters[name_of], steps
            groups_of = frozenset(g for g, of in enumerate(groups) if name in of or e["group"] and e["group"] in of)
            if groups_of not in classes:
                classes[groups_of] = []
                self.classes.append((groups_of, classes[groups_of]))
            classes[groups_of].append(n)
        for _, members in self.classes:
            members.sort(key=lambda n: (self.adapts(n), n))
        heaviest = {n: max([self.weight[n]] + [w for _, w in self.luck[n][2]] if n in self.luck else [self.weight[n]]) for n in self.order}
        drawn = [n for n in self.order if heaviest[n] > 0]
        self.collects = self.mode == 1 and any(map(self.adapts, self.order)) and all(map(self.adapts, drawn))
        self.plain = not self.tracks and len(self.classes) == 1 and not any(map(self.adapts, self.order))

    def adapts(self, entry):
        return entry in self.condition or entry in self.luck or bool(self.costs[entry] or self.reward[entry][2])


class Rules:
    """The catalog in force, and the choices of the event at hand."""

    def __init__(self, state):
        self.state, self.pools, self.start = state, {}, []
        self.calendar, self.redeem, self.waiting = ([], 0, 0), {}, None
        self.quests = {}

    def put_in_force(self):
        state, c = self.state, catalog(self.state.catalog)
        self.calendar, self.seasons, pools, start, quests = c["calendar"], c["seasons"], c["pools"], c["start"], c["quests"]
        item = {name: n for n, name in enumerate(state.items)}
        number = {name: n for n, name in enumerate(state.pools)}
        self.start = [(item[i], q) for i, q in start]
        self.waiting = state.counter.get(b"/start")
        self.families, self.family, self.caps = {}, {}, {}
        for name, _, _, more in c["items"]:
            lasts, extend, grows, family, (most, beyond, _) = more or (0, False, None, b"", (0, 0, 0))
            if family:
                self.families.setdefault(item[family], []).append(item[name])
                self.family[item[name]] = item[family]
            if most:
                self.caps[item[name]] = most, beyond

        def reward(of):
            return ([(item[i], low, span) for i, low, span in of["items"]],
                    [(number[pool], low, span) for pool, low, span in of["draws"]],
                    [state.lists.index(codes) for codes in of["codes"]])

        self.quests, self.claimed, self.counters, self.prizes = {}, {}, {}, {}
        for name, q in quests.items():
            first = state.counter[b"/quest/" + name + b"/" + shape(q["per"])]
            self.quests[first], self.claimed[name] = [reward(of) for _, of in q["tiers"]], (first, q["per"])
        self.events, self.drawn, self.taken, self.facts = {}, {}, {}, {"gains": {}, "spends": {}, "consumes": {}}
        for name, config in c["counters"].items():
            counter = self.counters[name] = Counter(state, name, config)
            self.prizes[counter.number] = [(to, reward(of)) for to, of in config["ranked"] or []]
            self.count_facts(name, counter, config, item, number)
        self.pools, self.redeem, known = {}, {}, {}
        for name, p in pools.items():
            of = {entry: n for n, entry in enumerate(state.entries[number[name]])}
            self.pools[number[name]] = Pool({**p, "id": name}, state, number, item, of, self.calendar[0], lambda reward: gains(pools, reward, known), self)
            self.redeem.update({state.lists.index(codes): (number[name], times) for codes, times, _, _ in p["redeem"]})

    def count_facts(self, name, counter, config, item, number):
        """Notes which facts a counter counts, and the key of each."""
        kinds = ["progress", "draws", "gains", "spends", "consumes", "entries"]
        events = config["progress"] if any(config[kind] for kind in kinds) else [name]
        for event in events:
            self.events.setdefault(event, []).append(counter)
        for pool in config["draws"]:
            self.drawn.setdefault(number[pool], []).append((counter, key_of(pool)))
        for entry in config["entries"]:
            pool, _, of = entry.partition(b"/")
            self.taken.setdefault((number[pool], self.state.entries[number[pool]].index(of)), []).append((counter, key_of(entry)))
        for kind, facts in self.facts.items():
            for one in [one for i in config[kind] for one in self.items_of(item[i])]:
                facts.setdefault(one, []).append((counter, key_of(self.state.items[one])))

    def items_of(self, item):
        """The items that a number stands for: those of a family, or the one."""
        return self.families.get(item, [item])

    # What the event at hand has changed so far.

    def begin(self, event, source, time):
        self.source, self.time, self.made = source, time, []
        self.gone, self.tally = {}, {}  # by pool and entry number; by counter
        self.balance, self.counted, self.picks, self.came = {}, {}, 0, []
        self.open, self.paid, self.coded = [], [], {}  # budgets; those of the draw at hand; codes given by list
        self.grew, self.free = set(), {}  # what has grown before it changed; counters of free draws

    def held(self, player, item):
        if item in self.families:
            return sum(self.held(player, one) for one in self.families[item])
        if (player, item) not in self.balance:
            known = player < len(self.state.players)
            self.balance[player, item] = self.state.grown(player, item, self.state.held[player].get(item, 0), self.time) if known else 0
        return self.balance[player, item]

    def changes(self, player, item):
        """What has grown comes before the first change of the item."""
        known = player < len(self.state.players) and (player, item) not in self.grew
        self.grew.add((player, item))
        grown = self.held(player, item) - self.state.held[player].get(item, 0) if known else 0
        if grown and b"/grows/" + self.state.items[item] in self.state.counter:
            self.made.append((GROW, item, grown))

    def gain(self, player, item, quantity):
        """Gains what the most of the item leaves."""
        self.changes(player, item)
        fits, beyond = quantity, 0
        if item in self.caps:
            most, beyond = self.caps[item]
            fits = min(quantity, max(0, most - self.held(player, item)))
        if fits < quantity:
            self.made.append((BEYOND, item, (quantity - fits, beyond)))
        if fits:
            self.made.append((GAIN, item, fits))
            self.add(player, item, fits)

    def lose(self, player, item, quantity):
        self.changes(player, item)
        self.add(player, item, -quantity)

    def add(self, player, item, quantity):
        self.balance[player, item] = self.held(player, item) + quantity

    def waits(self, player):
        """Whether a player's starting grants were still to come before the event."""
        return player >= len(self.state.players) or self.state.counted[player].get(self.waiting, 0) == 1

    def arrive(self, player):
        """A player who comes gets the starting grants first, once."""
        if player not in self.came and self.waits(player):
            self.came.append(player)
            for item, quantity in self.start:
                self.gain(player, item, quantity)
            self.count_items("gains", player, self.start)

    def count(self, player, counter):
        before = self.state.counted[player].get(counter, 0) if player < len(self.state.players) else 0
        return self.counted.get((player, counter), before)

    def tallied(self, counter):
        return self.tally.get(counter, self.state.tallies.get(counter, 0))

    def set_tally(self, counter, value):
        self.tally[counter] = value
        self.made.append((TALLY, counter, value))

    def refilled(self, pool):
        return self.tallied(pool.refills)

    # Counters of the catalog, and quests.

    def period_of(self, over):
        """The number of the present period, and whether it runs."""
        per, of = over
        if per == 1:
            return 0, True
        if per != 7:
            return period(self.calendar, per, self.time) + 1, True
        seasons = [(starts, ends) for name, starts, ends in self.seasons if name == of or not of]
        starts, ends = max([season for season in seasons if season[0] <= self.time], default=(0, 0))
        return starts, self.time < ends

    def present(self, c):
        """The period that a counter counts in, the place of its values, and whether it moves."""
        n, runs = self.period_of(c.per)
        if c.second is None:
            return n, 0, runs
        running, place, ended = (self.tallied(c.tallies + i) for i in (1, 2, 3))
        if running > n:  # the clock was set back
            return running, place, True
        return (n, place, runs) if n > ended else (n, 1 - place, False)

    def number(self, c, player, counter):
        return self.tallied(counter) if c.realm else self.count(player, counter)

    def put(self, c, player, counter, value):
        if c.realm:
            self.tally[counter] = value
        else:
            self.counted[player, counter] = value

    def stands(self, c, player):
        """Where a counter stands."""
        now, place, _ = self.present(c)
        value, then, missed = (self.number(c, player, c.at(i, place)) for i in (0, 2, 3))
        gap = max(0, now - then)
        return value if not gap or c.streak and (gap == 1 or missed + gap - 1 <= c.forgive) else 0

    def toward_cap(self, c, player):
        """How much a counter has moved toward its cap, and the period of that."""
        now, then = period(self.calendar, c.cap, self.time) + 1, self.number(c, player, c.at(5, 0))
        return self.number(c, player, c.at(4, 0)) if then >= now else 0, max(now, then)

    def room(self, c, player):
        """By how much a counter can still move."""
        now, place, runs = self.present(c)
        value = self.stands(c, player)
        if not runs or c.streak and value and self.number(c, player, c.at(2, place)) >= now:
            return 0
        if c.streak:
            return 1
        if c.distinct:
            return max(0, c.distinct - value)
        return max(0, c.most - self.toward_cap(c, player)[0]) if c.cap else MAX_COUNT

    def saw(self, c, player, key):
        return any(self.number(c, player, c.keys + i) == key for i in range(self.stands(c, player)))

    def fact(self, c, player, n, key):
        """Moves a counter by n."""
        value, room, (now, place, _) = self.stands(c, player), self.room(c, player), self.present(c)
        if not room or c.distinct and self.saw(c, player, key):
            return
        if c.streak:
            missed = self.number(c, player, c.at(3, 0)) + now - self.number(c, player, c.at(2, place)) - 1 if value else 0
            self.put(c, player, c.at(3, 0), missed)
        if c.distinct:
            self.put(c, player, c.keys + value, key)
        value, used = c.move(value, room, n)
        if c.cap:
            so_far, then = self.toward_cap(c, player)
            self.put(c, player, c.at(4, 0), so_far + used)
            self.put(c, player, c.at(5, 0), then)
        self.keep(c, player, value)

    def keep(self, c, player, value):
        """Where a counter stands is of the present period."""
        now, place, _ = self.present(c)
        self.put(c, player, c.at(0, place), value)
        if c.per[0] != 1:
            self.put(c, player, c.at(2, place), now if c.tallies is not None else max(now, self.number(c, player, c.at(2, place))))

    def set_counter(self, player, number, value):
        c = next(c for c in self.counters.values() if c.number == number)
        self.put(c, player, c.at(3, 0), 0)
        self.keep(c, player, value)

    def count_items(self, kind, player, stacks):
        for item, quantity in stacks:
            for c, key in self.facts[kind].get(item, []):
                self.fact(c, player, quantity, key)

    def count_draws(self, player, pool, draws=1):
        for c, key in self.drawn.get(pool, []):
            self.fact(c, player, 1 if c.highest else draws, key)

    def report(self, player, event, key, n):
        for c in self.events[event]:
            self.fact(c, player, n, key_of(key))

    def tiers(self, first, over):
        """How many tiers of a quest the player has claimed in the present period."""
        return 0 if self.count(self.player, first + 1) < self.period_of(over)[0] else self.count(self.player, first)

    # Budgets and codes.

    def spent(self, counter, per):
        last = self.tallied(counter + 1) - self.state.back
        over = period(self.calendar, per, last) < period(self.calendar, per, self.time)
        return 0 if over else self.tallied(counter)

    def affords(self, pool, entry):
        return all(self.spent(counter, per) + most <= limit for counter, per, _, limit, most in pool.costs[entry])

    def spend(self, item, quantity):
        for counter, per, of in self.open:
            if of == item:
                self.tally[counter], self.tally[counter + 1] = self.spent(counter, per) + quantity, self.time + self.state.back
                if counter not in self.paid:
                    self.paid.append(counter)

    def has_codes(self, pool, entry):
        return all(len(self.state.given[n]) + self.coded.get(n, 0) < len(self.state.codes[n]) for n in pool.reward[entry][2])

    def left(self, pool, entry):
        """What is left of an entry's stock; None without a bound."""
        stock, taken = self.state.stock[pool.number][entry], self.state.taken[pool.number][entry]
        return None if stock is None else max(0, stock - taken - self.gone.get((pool.number, entry), 0))

    # Weights.

    def weight(self, pool, entry, ask=True):
        left = self.left(pool, entry)
        if left == 0 or ask and not self.holds(pool.condition.get(entry)):
            return 0
        if not self.affords(pool, entry) or not self.has_codes(pool, entry):
            return 0
        _, draws, _ = pool.reward[entry]
        if len(draws) == 1 and draws[0][1:] == (1, 0):
            inner = self.pools[draws[0][0]]
            if inner.single and not any(self.weight(inner, n) for n in inner.order):
                return 0
        if pool.mode == 2:
            return left
        weight = pool.weight[entry]
        if entry in pool.luck:
            of, what, steps = pool.luck[entry]
            have = self.held(self.player, what) if of == 1 else self.count(self.player, what) if of == 2 else self.stands(what, self.player)
            weight = [weight, *(w for start, w in steps if have >= start)][-1]
        return weight

    def holds(self, condition):
        if condition is None:
            return True
        holds, lacks, tracks, counters, quests = condition
        return (all(self.held(self.player, item) >= n for item, n in holds)
                and not any(self.held(self.player, item) for item in lacks)
                and all(self.count(self.player, counter) >= n for counter, n in tracks)
                and all(low <= self.stands(c, self.player) <= high for c, low, high in counters)
                and all(self.tiers(*quest) >= tiers for quest, tiers in quests))

    # Choices.

    def range(self, low, span):
        return low + (below(self.source, span + 1) if span else 0)

    def come(self, m):
        """Decides which moments have come."""
        last = self.tallied(m.counter)
        if self.time <= last or self.time < m.starts or not m.end:
            return
        begun, to = m.measure(last), m.measure(self.time)
        was = n = self.tallied(m.counter + 1)

        def came(a, b):
            return to >= b or to > a and below(self.source, b - a) < to - a

        if m.spread == 1:
            while n < m.count and m.slot(2 * n + 1) < to:
                n += 1
        elif m.spread == 2:
            while n < m.count and m.slot(2 * n) < to and came(max(begun, m.slot(2 * n)), m.slot(2 * n + 2)):
                n += 1
        else:
            n += sum(came(begun, m.end) for _ in range(m.count - was))
        self.set_tally(m.counter, self.time)
        if n > was:
            due = 1 if m.passes else self.tallied(m.counter + 2) + n - was
            self.set_tally(m.counter + 1, n)
            self.set_tally(m.counter + 2, due)

    def pick(self, pool, taken, due):
        for m in pool.moments:
            self.come(m)
        for m in pool.moments:
            if due is not None and not any(due in groups and m.entry in members for groups, members in pool.classes):
                continue
            is_due = self.tallied(m.counter + 2)
            if is_due and self.left(pool, m.entry) and self.affords(pool, m.entry) and self.has_codes(pool, m.entry):
                self.set_tally(m.counter + 2, is_due - 1)
                return m.entry, self.count_pick(pool, m.entry)
        weights = {n: 0 if n in taken else self.weight(pool, n) for n in pool.order}
        if pool.collects and not any(weights.values()):
            weights = {n: self.weight(pool, n, ask=False) for n in pool.order}
        hit, missed = self.decided(pool, weights, due)
        among = [n for groups, members in pool.classes for n in members if groups >= hit and not groups & missed]
        point = below(self.source, sum(weights[n] for n in among))
        for entry in among:
            if point < weights[entry]:
                break
            point -= weights[entry]
        return entry, self.count_pick(pool, entry)

    def count_pick(self, pool, entry):
        """Counts a pick in the pool's tracks. Returns the groups that it hit."""
        groups = next(groups for groups, members in pool.classes if entry in members)
        for group, (_, counter, _, _) in enumerate(pool.tracks):
            self.counted[self.player, counter] = 0 if group in groups else self.count(self.player, counter) + 1
        return groups

    def decided(self, pool, weights, due):
        """The groups that were hit, and those that were missed."""
        def weight(hit, missed):
            return sum(weights[n] for groups, members in pool.classes if groups >= hit and not groups & missed for n in members)

        certain, added = [], []
        for _, counter, sure, rising in pool.tracks:
            n = self.count(self.player, counter) + 1
            certain.append(sure and n >= sure)
            added.append(None)
            if rising and n >= rising[0]:
                start, table, scale, by = rising
                more = by[min(n - start, len(by) - 1)] if table else min(by[0] * (n - start + 1), 100 * scale)
                added[-1] = more * (pool.whole // (100 * scale))
        matter = [i for i in range(len(pool.tracks)) if certain[i] or added[i] is not None or due is not None]
        must, missed = frozenset() if due is None else frozenset({due}), frozenset()
        if not matter and due is None or pool.plain:
            return missed, missed
        total = sum(weights.values())
        left = total * pool.whole
        point = below(self.source, left)
        for i in range(max(matter, default=-1) + 1):
            hit = must | {i}
            w = weight(hit, missed)
            if not w:
                continue
            chance = min(w * pool.whole + (added[i] or 0) * total, left)
            if certain[i] or point < chance:
                return hit, missed
            point, left, missed = point - chance, left - chance, missed | {i}
        if must and not weight(must, missed):
            return must, frozenset()
        return must, missed

    def single(self, pool, due=None):
        """A single draw. Returns the groups that it hit."""
        rolls, hit = self.range(*pool.rolls), frozenset()
        if pool.mode == 3:
            for _ in range(rolls):
                for entry in pool.order:
                    if pool.weight[entry] and self.weight(pool, entry) and below(self.source, 100 * pool.scale) < pool.weight[entry]:
                        self.take(pool, entry)
            return hit
        taken = set()
        for _ in range(rolls):
            entry, groups = self.pick(pool, taken, due)
            self.take(pool, entry)
            hit |= groups
            if pool.distinct:
                taken.add(entry)
        return hit

    def take(self, pool, entry):
        self.made.append((TAKE, pool.number, entry))
        self.gone[pool.number, entry] = self.gone.get((pool.number, entry), 0) + 1
        self.picks += 1
        for c, key in self.taken.get((pool.number, entry), []):
            self.fact(c, self.player, 1, key)
        before = self.open
        mine = [(counter, per, item) for counter, per, item, _, _ in pool.costs[entry]]
        self.open = before + [budget for budget in mine if budget not in before]
        self.give(pool.reward[entry])
        self.open = before
        if pool.mode == 2 and not any(self.weight(pool, n) for n in pool.order):
            self.give(pool.last)
            if self.refilled(pool) < pool.refill:
                for n in pool.order:
                    was = self.state.taken[pool.number][n] + self.gone.get((pool.number, n), 0)
                    if was:
                        self.made.append((RETURN, n, was))
                        self.gone[pool.number, n] = -self.state.taken[pool.number][n]
                self.set_tally(pool.refills, self.refilled(pool) + 1)

    def give(self, reward):
        items, draws, codes = reward
        for item, low, span in items:
            quantity = self.range(low, span)
            self.gain(self.player, item, quantity)
            self.count_items("gains", self.player, [(item, quantity)])
            self.spend(item, quantity)
        for n in codes:
            self.made.append((GIVE_CODE, n, len(self.state.given[n]) + self.coded.get(n, 0)))
            self.coded[n] = self.coded.get(n, 0) + 1
        for inner, low, span in draws:
            for _ in range(self.range(low, span)):
                self.single(self.pools[inner])

    # Whole events.

    def price(self, pool, count, pay):
        """What a draw costs. It can be paid, since it was."""
        most_free = 0
        if pool.free:
            per, most = pool.free
            value, steady = self.count(self.player, pool.free_counter), self.time + self.state.back
            used = value
            if per != 1:
                last = period(self.calendar, per, (value >> 18) - self.state.back)
                used = value & (1 << 18) - 1 if last >= period(self.calendar, per, self.time) else 0
            most_free = min(count, max(0, most - used))
        best, free = None, most_free
        if count == most_free:
            best = []
        else:
            for price, gratis in self.offers(pool, count, most_free):
                offered = pay is None or any(pay == item or self.family.get(pay) == item for item, _ in price)
                if not offered or any(self.payable(price, pay, item) < q for item, q in price):
                    continue
                if best is None or gratis < most_free and all(any(i == item and n >= q for i, n in best) for item, q in price):
                    best, free = price, gratis
            assert best is not None or not pool.prices, "a price that could not be paid"
        if free:
            self.counted[self.player, pool.free_counter] = used + free if per == 1 else steady << 18 | used + free
            self.free[self.player, pool.free_counter] = self.counted[self.player, pool.free_counter]
        return self.concrete(best or [], pay)

    def offers(self, pool, count, free):
        """What so many draws can cost, and how many of them are free then."""
        paid = count - free
        if pool.price_by:
            return [(self.stepped(pool, free, count), free)]
        offers = [(price, free) for draws, price in pool.bundles if draws == paid]
        offers += [([(item, q * paid) for item, q in price], free) for price in pool.prices]
        return offers + [(price, count - draws) for draws, price in pool.bundles if paid < draws <= count]

    def stepped(self, pool, free, count):
        """A price that rises with a counter, by where that stands before each draw."""
        c, steps = pool.price_by
        value, key = self.stands(c, self.player), next((key for of, key in self.drawn.get(pool.number, []) if of is c), None)
        room = 0 if key is None or c.distinct and self.saw(c, self.player, key) else self.room(c, self.player)
        room, sums = min(room, 1) if c.distinct else room, {}
        for i in range(count):
            price = [pool.prices[0], *(price for begins, price in steps if value >= begins)][-1]
            for item, q in price if i >= free else []:
                sums[item] = sums.get(item, 0) + q
            value, used = c.move(value, room, 1)
            room -= used
        return list(sums.items())

    def rest(self, price, pay, item):
        """How many of an item can pay for its family: what the price does not take by the item's own id."""
        if pay is not None and pay not in self.families and pay != item and self.family.get(pay) == self.family[item]:
            return 0  # the player chose another one
        return max(0, self.held(self.player, item) - dict(price).get(item, 0))

    def payable(self, price, pay, item):
        if item in self.families:
            return sum(self.rest(price, pay, one) for one in self.families[item])
        return self.held(self.player, item)

    def concrete(self, price, pay):
        """A price with items in place of families, in the order of the catalog."""
        taken = {}
        for item, need in price:
            for one in self.items_of(item):
                some = min(need, self.rest(price, pay, one)) if item in self.families else need
                if some:
                    taken[one], need = taken.get(one, 0) + some, need - some
        return list(taken.items())

    def due(self, pool, i, count, hits):
        """The group of the guarantee that is due in draw i of count, None without one."""
        rest = []
        for k, (draws, least) in enumerate(pool.guarantees):
            at = i % draws
            if not at:
                hits[k] = 0
            full = i - at + draws <= count
            there = any(self.weight(pool, n) for groups, members in pool.classes if len(pool.tracks) + k in groups for n in members)
            rest.append((draws - at if full else 0, max(0, least - hits[k]) if full and there else 0))
        if not any(missing for _, missing in rest):
            return None
        weights = {n: self.weight(pool, n) for n in pool.order}

        def together(*some):
            return any(weights[n] for groups, members in pool.classes if groups.issuperset(some) for n in members)

        def aside(left):
            n = 0
            for t, (_, counter, certain, _) in enumerate(pool.tracks):
                apart = any(missing and not together(t, len(pool.tracks) + k) for k, (_, missing) in enumerate(rest))
                if certain and apart and together(t):
                    n += (left - 1 + min(self.count(self.player, counter) + 1, certain)) // certain
            return n

        first = len(pool.tracks) + min((left, k) for k, (left, missing) in enumerate(rest) if missing)[1]
        needed = [(left, sum(n for by, n in rest if by <= left)) for left, missing in rest if missing]
        own = any(certain and self.count(self.player, counter) + 1 >= certain and together(t) and not together(t, first)
                  for t, (_, counter, certain, _) in enumerate(pool.tracks))
        if any(n >= left for left, n in needed) or not own and any(n + aside(left) >= left for left, n in needed):
            return first
        return None

    def act(self, event, kind, asked):
        """What a command does that draws nothing."""
        if kind in (3, 4, 5):
            for item, quantity in asked[1]:
                if kind != 3:
                    self.lose(self.player, item, quantity)
            for item, quantity in asked[1]:
                if kind != 4:
                    self.gain(asked[0] if kind == 5 else self.player, item, quantity)
            if kind != 5:
                self.count_items("gains" if kind == 3 else "consumes", self.player, asked[1])
        elif kind == 15:
            self.report(self.player, *asked)
        elif kind == 17:
            self.set_counter(self.player, *asked)
        elif kind == 18:
            for item, quantity in event.collected():
                self.changes(self.player, item)
                self.add(self.player, item, quantity)

    def pay(self, commands):
        """What each command costs: all are paid before anything is drawn."""
        prices = []
        for kind, self.player, asked in commands:
            prices.append([])
            if kind in COME:
                self.arrive(self.player)
            if kind == 2:
                pool, count, pay = asked
                prices[-1] = self.price(self.pools[pool], count, pay)
                for item, quantity in prices[-1]:
                    self.add(self.player, item, -quantity)
                self.count_items("spends", self.player, prices[-1])
                self.count_draws(self.player, pool, count)
            elif kind in (3, 4, 5, 15):
                self.act(None, kind, asked)
        return prices

    def compare(self, event, source, time):
        """Decides the draws of an event again, before it is applied. Returns how many choices that took."""
        self.begin(event, source, time)
        commands = event.commands()
        prices, (members, claims) = self.pay(commands), drawn(event, self.state)
        self.balance, self.came, self.grew = {}, [], set()  # from here on, as the effects so far have left it
        self.counted, self.tally = dict(self.free), {}
        for i, ((kind, self.player, asked), price, (spent, effects)) in enumerate(zip(commands, prices, members)):
            if kind in COME:
                self.arrive(self.player)
            if kind == 10:
                list_of, number, _, _ = event.used()
                normal = self.state.codes[list_of][number].translate(UPPER, b" -")
                assert hashlib.sha256(normal).digest()[:16] == asked, "another code"
                asked = self.redeem[list_of]
            elif kind != 2:
                self.act(event, kind, asked)
                self.claim(claims[i])
                continue
            assert spent == price, "another price"
            for item, quantity in price:
                self.lose(self.player, item, quantity)
            self.count_items("spends", self.player, price)
            pool, count, self.made, hits = self.pools[asked[0]], asked[1], [], {}
            for n in range(count):
                due = self.due(pool, n, count, hits)
                if not pool.single:
                    self.made.append((DRAW, None, None))
                for group in self.single(pool, due):
                    if group >= len(pool.tracks):
                        hits[group - len(pool.tracks)] += 1
                self.count_draws(self.player, pool.number)
            self.end(effects)
            self.claim(claims[i])
        for some in claims[len(commands):]:
            self.claim(some)
        self.check_counts(event)
        return self.picks

    def compare_due(self, event, source, time):
        """Decides the rewards of ranks again, and what quests gave that were reached by what was due."""
        self.begin(event, source, time)
        _, claims = drawn(event, self.state)
        rewards, player = iter(claims[0]), None
        for verb, n, value in event.effects:
            if verb == PLAYER:
                player = n
            elif verb == SPEND:  # it has lasted no longer
                self.lose(player, n, value)
            elif verb == CLAIM:
                self.claim([next(rewards)])
        self.check_counts(event)
        return self.picks

    def check_counts(self, event):
        """What the event leaves in counters of players and of the realm."""
        state = self.state
        last = {(player, counter): value for player, counter, value in sets(event, len(state.players))}
        tallies = {n: value for verb, n, value in event.effects if verb == TALLY}
        for (player, counter), value in self.counted.items():
            before = state.counted[player].get(counter, 0) if player < len(state.players) else 0
            assert last.get((player, counter), before) == value, "another count"
        for counter, value in self.tally.items():
            assert tallies.get(counter, state.tallies.get(counter, 0)) == value, "another count of the realm"

    def end(self, effects):
        """What a draw or a claim has spent from budgets follows. Then it must be what the event says."""
        for counter in self.paid:
            self.made.append((TALLY, counter, self.tally[counter]))
            if self.tally[counter + 1] != self.state.tallies.get(counter + 1, 0):
                self.made.append((TALLY, counter + 1, self.tally[counter + 1]))
        self.paid = []
        assert effects == self.made, f"another choice: {effects}, want {self.made}"

    def claim(self, claims):
        """The rewards of tiers and ranks that were claimed. Whether tiers are reached is not looked at."""
        for self.player, number, tier, effects in claims:
            self.made = []
            if number in self.quests:
                self.counted[self.player, number] = tier
                per = next(over for first, over in self.claimed.values() if first == number)
                self.counted[self.player, number + 1] = max(self.period_of(per)[0], self.count(self.player, number + 1))
                self.give(self.quests[number][tier - 1])
            elif not tier & 1:  # a rank whose reward was there, and fitted
                self.give(next(reward for to, reward in self.prizes[number] if tier >> 1 <= to))
            self.end(effects)

    def welcome(self, event):
        """Whoever comes gets the starting grants, once. Others who are new wait for them."""
        if self.waiting is None:
            return
        player, players, came, want = event.player, len(self.state.players), [], []
        for i, (verb, n, value) in enumerate(event.effects):
            if verb == PLAYER:
                player = n
                continue
            if verb == JOIN:
                player, players = players, players + 1
                follows = itertools.takewhile(lambda effect: effect[0] == SET, event.effects[i + 1:])
                if (SET, self.waiting, 1) in follows:
                    continue
            elif (verb, n, value) != (SET, self.waiting, 0):
                continue
            given = iter([(n, value[0] if verb == BEYOND else value) for verb, n, value in event.effects[i + 1:] if verb in (GAIN, BEYOND)])
            for item, quantity in self.start:
                while quantity > 0:  # what is beyond the most of the item comes before the rest
                    n, some = next(given, (None, 0))
                    assert n == item and some <= quantity, "other starting grants"
                    quantity -= some
            came.append(player)
        for kind, player, _ in event.commands() if not event.status else []:
            if kind in COME and player not in want and self.waits(player):
                want.append(player)
        assert came == want, f"{came} came, not {want}"


UPPER = bytes.maketrans(b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def drawn(event, state):
    """For each member, or the one command: what it spent, and what its draws did; and what was claimed.

    In a group, what claimed itself comes after the members.
    """
    members, claims, pool = [([], [])], [[]], None
    player, players, counters = event.player, len(state.players), state.of_realm()
    if event.kind == 6:
        members, claims = [], []
    for verb, n, value in event.effects:
        if verb == MEMBER:
            members.append(([], []))
            claims.append([])
            pool = None
        elif verb == PLAYER:
            player = n
        elif verb == JOIN:
            player, players = players, players + 1
        elif verb == POOL:
            pool = n
        elif verb == SPEND:
            members[-1][0].append((n, value))
        elif verb == CLAIM:
            claims[-1].append((player, n, value, []))
        elif verb in (TAKE, DRAW, RETURN, GIVE_CODE, GAIN, GROW, BEYOND) or verb == TALLY and n not in counters:
            did = claims[-1][-1][3] if claims and claims[-1] else members[-1][1]
            if verb == BEYOND and value[1] == 3:
                continue  # what waited in a mailbox
            if verb not in (GAIN, GROW, BEYOND) or did or claims[-1]:
                did.append((TAKE, pool, n) if verb == TAKE else (verb, n, value))
    return members, claims


def sets(event, players):
    """The counters of players that the event sets. So many players there were before it."""
    player = event.player
    for verb, n, value in event.effects:
        if verb == PLAYER:
            player = n
        elif verb == JOIN:
            player, players = players, players + 1
        elif verb == SET:
            yield player, n, value


# All of it together.

DECIDED = (5, 6)  # versions of the rules by which Rules can decide again, where they agree: not groups of tracks that overlap

class Realm:
    def __init__(self, name, files, seeds, seen=None):
        self.name, self.seeds, self.seen = name, seeds, seen
        self.chain, self.state = Chain(name, files), State()
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
            assert payload[0] > 0 and len(payload) == 101
            self.commitments[epoch], self.source = payload[9:41], None
            if epoch in self.seeds:
                seed = self.seeds[epoch]
                assert self.seal(b"rng-commitment", epoch, seed) == self.commitments[epoch], "commitment"
                if payload[0] in DECIDED:
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
            elif event.kind == 14:
                self.state.settle(event, time)
                if self.source:
                    self.found["choices"] += self.rules.compare_due(event, self.source, time)
            elif event.kind not in (1, 9, 12, 34, 35, 36):
                self.rules.welcome(event)
                if self.source and not event.status:
                    self.found["choices"] += self.rules.compare(event, self.source, time)
            self.state.apply(event, time)
            if event.kind in (1, 36):
                self.rules.put_in_force()
            self.found["events"] += 1
            if not event.status:
                self.found["draws"] += sum(asked[1] for kind, _, asked in event.commands() if kind == 2)
                self.found["draws"] += event.used()[3] if event.kind == 10 else 0
            if self.seen:
                self.seen({"position": self.chain.index, "index": index, "time": time, **describe(self.state, event)})
        assert r.at == len(payload)
        self.found["batches"] += 1


def main(directory, seen=None):
    name = os.path.basename(os.path.normpath(directory)).encode()
    entries = list(records(os.path.join(directory, "log")))
    files = os.path.join(directory, "snapshots")
    chain, seeds = Chain(name, files), {}
    last = closed(directory)
    for offset, entry in enumerate(entries):  # seeds are revealed after the draws that used them
        kind, payload = chain.entry(entry)
        if kind in (3, 4):
            seeds[le(payload, 0, 8)] = payload[8:]
        if last and offset + 1 == last[0]:
            assert hashlib.sha256(entry).digest() == last[1], "not the log that was closed"
    chain.complete()
    assert not last or len(entries) >= last[0], f"position {chain.index + 1}: the log was longer when it was closed"
    realm = Realm(name, files, seeds, seen)
    for entry in entries:
        realm.replay(entry)
    state = realm.state
    items = [item.decode() for item in state.items]
    show({
        **realm.found, "void": chain.void, "position": chain.index, "chain_hash": chain.prev.hex(),
        "catalog_version": state.version, "epochs": len(realm.commitments), "revealed": len(seeds),
        "players": {
            who.decode("utf-8", "backslashreplace"): {items[i]: n for i, n in state.holdings(number) if n}
            for who, number in state.number.items()
        },
    })


def show(found):
    json.dump(found, sys.stdout)
    print()


if __name__ == "__main__":
    main(sys.argv[-1], show if "--events" in sys.argv[1:-1] else None)
