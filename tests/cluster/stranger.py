#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# stranger.py - another user of the cluster, for stranger.t:
#
#   stranger.py ports MARK PROGRAM...    prints where these programs listen, the
#                                        processes with MARK in their environment
#                                        or mounts: "PROGRAM tcp|udp ADDRESS PORT"
#   stranger.py record FILE              what clients send here, each connection,
#                                        until standard input ends
#   stranger.py ATTACK PORTS [FILE]...   attacks what the file PORTS lists, prints
#                                        a line for each program and "done", and
#                                        keeps its connections until it is killed
#
# The formats of the attacks on UCX's TCP transport are those of its release
# 1.13; proofs, tags and control messages are those of doc/wire.md.

import ipaddress
import json
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time

LIMIT = 100  # seconds that any run of this program takes at most
ANSWER = 5  # seconds that an attack waits for an answer or a disconnect
ADDRESS = 0x200000000000  # of the page of sums.c
held = []  # connections that stay open
reached = set()  # targets that took a connection

# ---- what listens


def listeners(pid, inodes):
    """The sockets among these that listen, as (protocol, address, port)."""
    for name, state in ("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07"):
        with open(f"/proc/{pid}/net/{name}") as table:
            rows = [line.split() for line in table][1:]
        for row in rows:
            if row[3] != state or row[9] not in inodes:
                continue
            packed, port = row[1].split(":")
            words = [packed[i : i + 8] for i in range(0, len(packed), 8)]
            packed = b"".join(bytes.fromhex(w)[::-1] for w in words)
            yield name[:3], ipaddress.ip_address(packed), int(port, 16)


def own_addresses(pid):
    """The IPv4 addresses of the network that this process sees."""
    found, last = set(), None
    with open(f"/proc/{pid}/net/fib_trie") as trie:
        for line in trie:
            if "|--" in line:
                last = line.split()[-1]
            elif "/32 host LOCAL" in line:
                found.add(ipaddress.ip_address(last))
    return found


def sockets(pid):
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        link = os.readlink(f"/proc/{pid}/fd/{fd}")
        if link.startswith("socket:["):
            inodes.add(link[8:-1])
    return inodes


def belongs(pid, mark):
    """Does this process name the cluster in its environment or mounts?"""
    for name in "environ", "mountinfo":
        with open(f"/proc/{pid}/{name}", "rb") as file:
            if mark in file.read():
                return True
    return False


def ports(mark, *programs):
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            if program not in programs or not belongs(pid, mark.encode()):
                continue
            for protocol, address, port in listeners(pid, sockets(pid)):
                every = own_addresses(pid) if address.is_unspecified else [address]
                found |= {(program, protocol, str(a), port) for a in every}
        except OSError:
            continue  # it has ended
    for line in sorted(found):
        print(*line)


# ---- what is sent here, as a switch sees it


def record(path):
    """Connections in the order of their first packet, without what is missing."""
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    sniffer.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    print("recording", flush=True)
    streams = {}
    while True:
        ready, _, _ = select.select([sniffer, sys.stdin], [], [])
        if sniffer not in ready:
            break
        packet, where = sniffer.recvfrom(1 << 17)
        if where[1] == 0x0800 and packet[9] == 6:
            note(streams, packet)
    streams = [bytes(s["bytes"]).hex() for s in streams.values() if s["bytes"]]
    with open(path, "w") as out:
        json.dump(streams, out)


def note(streams, packet):
    header = (packet[0] & 15) * 4
    length = struct.unpack_from(">H", packet, 2)[0]
    tcp = packet[header:length] if length else packet[header:]
    source, target, sequence = struct.unpack_from(">HHI", tcp)
    key = packet[12:20] + tcp[:4]
    data = tcp[(tcp[12] >> 4) * 4 :]
    if tcp[13] & 0x12 == 0x02:  # the client's first packet
        streams[key] = {"next": sequence + 1 & 0xFFFFFFFF, "bytes": bytearray()}
    stream = streams.get(key)
    if stream and sequence == stream["next"] and len(stream["bytes"]) < 1 << 20:
        stream["bytes"] += data
        stream["next"] = sequence + len(data) & 0xFFFFFFFF


# ---- messages


def ucx_greeting(number):
    """UCX's magic number and CONN_REQ, from an address nobody has."""
    address = struct.pack("<H", socket.AF_INET) + struct.pack(">H", 1000 + number)
    address += bytes([203, 0, 113, 1]) + bytes(8)
    request = struct.pack("<IBQ", 1, 0, 0) + address
    return struct.pack("<QBI", 0xCAFEBABE12345678, 0x20, len(request)) + request


def ucx_put(address, data):
    return struct.pack("<BIQQI", 0x21, 20, address, len(data), 1) + data


def ucx_tagged(tag, data):
    return struct.pack("<BIQ", 2, 8 + len(data), tag) + data


def computed_tags(node):
    """All allreduces of one number, from each rank that may be the sender."""
    for sender in (2, 3) if node == 0 else (0, 1):
        for sequence in range(4096):
            for slot in 0, 1:
                yield sender << 40 | sequence << 20 | slot


def dt_proof(source, target, nonce, proof):
    """PROOF, of the handshake of libdt's own TCP transport."""
    return b"dt-tcp-1" + struct.pack("<II", source, target) + nonce + proof


PMIX_HELLO = struct.pack("<IB", 64, 1) + b"slurm-dt"  # its beginning
REVOKE = struct.pack("<IIQQ", 2, 1, 1, 0)
CONTROL_TAG = 0x1FFFFF << 40

# ---- attacks: a target is (program, address, port)


def reach(target):
    """A connection, or None."""
    family = socket.AF_INET6 if ":" in target[1] else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    connection.settimeout(ANSWER)
    try:
        connection.connect(target[1:])
    except OSError:
        return None
    reached.add(target)
    return connection


def open_all(target, count):
    return [c for c in (reach(target) for _ in range(count)) if c]


def send(connection, data):
    try:
        connection.sendall(data)
    except OSError:
        pass  # it was closed


def wait(connection, length=1):
    """So many bytes, fewer when the other end closes or the time is over."""
    data, end = b"", time.monotonic() + ANSWER
    try:
        while len(data) < length and time.monotonic() < end:
            more = connection.recv(1 << 16)
            if not more:
                break
            data += more
    except OSError:
        pass
    return data


def wait_refused(connections):
    """Until the ranks have closed these, after the challenge of each."""
    for target, connection in connections:
        if target[0] != "dt-pmixd":
            welcomed(target, wait(connection, 41)[40:])


def welcomed(target, answer):
    """Did a rank send more than its challenge?"""
    if answer and target[0] != "dt-pmixd":
        print("welcomed:", *target)


def ucx(target, messages):
    """Send these as UCX would, and an empty put, which it would acknowledge."""
    for connection in open_all(target, 1):
        held.append(connection)
        send(connection, ucx_greeting(target[2]) + messages + ucx_put(0, b""))
        wait_refused([(target, connection)])


def put(targets):
    """UCX's put needs no key: write into the memory of a rank."""
    for target in targets:
        ucx(target, ucx_put(ADDRESS, b"stranger"))


def tags(targets):
    """Messages in the place of another rank's."""
    number = struct.pack("<q", 666)
    nodes = sorted({address for _, address, _ in targets})
    for target in targets:
        chosen = computed_tags(nodes.index(target[1]) % 2)
        ucx(target, b"".join(ucx_tagged(tag, number) for tag in chosen))


def revoke(targets):
    """A control message: rank 1 has failed."""
    for target in targets:
        ucx(target, ucx_tagged(CONTROL_TAG, REVOKE))


def garbage(targets):
    """Bytes without a meaning, in all sizes, behind every greeting."""
    dice = random.Random(1)
    greetings = b"", ucx_greeting(1), dt_proof(1, 0, b"", b""), PMIX_HELLO
    for target in targets:
        for start in greetings:
            for size in 1, 7, 64, 5000, 300000:
                data = start + dice.randbytes(size)
                reset = dice.random() < 0.5
                for connection in open_all(target, 1):
                    send(connection, data)
                    held.append(connection)
                    if reset:
                        now = struct.pack("ii", 1, 0)
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
                        held.pop().close()
    wait_refused((t, c) for t in targets for c in wrong(t))


def wrong(target):
    """A connection with as many bytes as a proof."""
    for connection in open_all(target, 1):
        send(connection, bytes(80))
        yield connection


def datagrams(targets):
    dice = random.Random(2)
    for _, address, port in targets:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            for size in 0, 1, 64, 1400:
                sender.sendto(dice.randbytes(size), (address, port))


def silence(targets):
    """Half of each greeting, and nothing more."""
    halves = ucx_greeting(1)[:20], dt_proof(1, 0, b"", b"")[:12], PMIX_HELLO[:7], b""
    for target in targets:
        for i, connection in enumerate(open_all(target, 20)):
            held.append(connection)
            send(connection, halves[i % 4])


def flood(targets):
    """1,000 connections at once to each."""
    first = [(target, c) for target in targets for c in open_all(target, 1)]
    for target, connection in first:
        held.append(connection)
        for _ in range(999):
            more = socket.socket(connection.family, socket.SOCK_STREAM)
            more.setblocking(False)
            more.connect_ex(target[1:])
            held.append(more)
    wait_refused(first)


def storm(targets):
    """New connections all the time, until this process ends."""

    def run():
        while True:
            for target in targets:
                batch = open_all(target, 20)
                for connection in batch[::2]:
                    connection.close()
                held.extend(batch[1::2])
                del held[:-500]

    for _ in range(2):
        threading.Thread(target=run, daemon=True).start()
    wait_refused((target, c) for target in targets for c in open_all(target, 1))


def replay(targets, *paths):
    """What others have sent, byte for byte."""
    streams = []
    for path in paths:
        with open(path) as file:
            streams += [bytes.fromhex(stream) for stream in json.load(file)]
    print("streams:", len(streams))
    answers = []
    for target in targets:
        for stream in streams:
            for connection in open_all(target, 1):
                send(connection, stream)
                answers.append((target, connection))
    for target, connection in answers:
        connection.settimeout(0.01)
        welcomed(target, wait(connection, 41)[40:])


def prove(targets):
    """Proofs without the secret: guessed, and made of what ranks said."""
    dice = random.Random(3)
    targets = [target for target in targets if target[0] != "dt-pmixd"]
    said = {target: nonce for target in targets for _, nonce in challenges(target, 1)}
    print("challenged:", sum(len(nonce) == 32 for nonce in said.values()))
    for target in targets:
        others = [nonce for other, nonce in said.items() if other != target]
        for first in 0, 8:  # a rank hears 16 at once
            for kind in "own", "another's", "guess":
                batch = challenges(target, 8)
                for i, (connection, nonce) in enumerate(batch):
                    if kind == "another's":
                        nonce = dice.choice(others)
                    elif kind == "guess":
                        nonce = dice.randbytes(32)
                    send(connection, dt_proof(*divmod(first + i, 4), nonce, nonce))
                for connection, _ in batch:
                    welcomed(target, wait(connection))
                    connection.close()


def challenges(target, count):
    """Connections, each with the nonce that the other end sent first."""
    return [(c, wait(c, 40)[8:]) for c in open_all(target, count)]


every = put, tags, revoke, garbage, silence, flood, storm, replay, prove
ATTACKS = {function.__name__: function for function in every}


def attack(name, path, *more):
    with open(path) as file:
        lines = [line.split() for line in file]
    targets = [(who, a, int(port)) for who, kind, a, port in lines if kind == "tcp"]
    ATTACKS[name](targets, *more)
    if name == "garbage":
        datagrams([(who, a, int(port)) for who, kind, a, port in lines if kind == "udp"])
    for program in sorted({who for who, _, _ in targets}):
        print("reached:", program, sum(who == program for who, _, _ in list(reached)))
    print("done", flush=True)
    while True:
        signal.pause()


def main():
    signal.alarm(LIMIT)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    what, *arguments = sys.argv[1:]
    if what == "ports":
        ports(*arguments)
    elif what == "record":
        record(*arguments)
    else:
        attack(what, *arguments)


main()
