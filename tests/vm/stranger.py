#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# stranger.py - another user on the second machine, without an RDMA device or a
# privilege, for stranger-guest: UD packets of RoCE v2 through an ordinary UDP
# socket, with UCX's Q_Key; a connection request, and the put of UCX's UD
# transport, which needs no key. Argument: how many rounds.
#
# The formats are those of UCX 1.13 (src/uct/ib/ud) and of RoCE v2.
import os
import socket
import struct
import sys
import time
import zlib

ME, IT = "10.77.0.2", "10.77.0.1"
ADDRESS = 0x200000000000  # of the page of tests/cluster/sums.c
Q_KEY = 0x1EE7A330  # UCT_IB_KEY, the same in every process that uses UCX
QPN = 0x77  # pretended

sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: the packet's id is 0
sender.bind((ME, 0))


def send(qpn, payload):
    """BTH, DETH, payload and the checksum over what routers do not change."""
    bth = struct.pack(">BBHII", 0x64, 0, 0xFFFF, qpn, 0)
    rest = struct.pack(">II", Q_KEY, QPN) + payload
    length = 8 + len(bth) + len(rest) + 4
    ip = struct.pack(">BBHHHBBH", 0x45, 0xFF, 20 + length, 0, 0x4000, 0xFF, 17, 0xFFFF)
    ip += socket.inet_aton(ME) + socket.inet_aton(IT)
    udp = struct.pack(">HHHH", sender.getsockname()[1], 4791, length, 0xFFFF)
    masked = struct.pack(">BBHII", 0x64, 0, 0xFFFF, qpn | 0xFF000000, 0)
    crc = zlib.crc32(b"\xff" * 8 + ip + udp + masked + rest)
    sender.sendto(bth + rest + struct.pack("<I", crc), (IT, 4791))


def connect():
    """CREQ: the receiver makes an endpoint for whoever sends it."""
    gid = bytes(10) + b"\xff\xff" + socket.inet_aton(ME)
    control = bytes([1, 0, 0, 0]) + QPN.to_bytes(3, "little") + (5).to_bytes(3, "little")
    control += bytes(2) + bytes(8) + b"stranger".ljust(16, b"\0") + bytes(4)
    return struct.pack("<IHH", 0xFFFFFF | 1 << 29, 1, 0) + control + b"\x48" + gid + bytes(3)


def put(endpoint):
    return struct.pack("<IHHQ", endpoint | 1 << 28, 2, 0, ADDRESS) + b"stranger"


print("uid", os.getuid(), flush=True)
for _ in range(int(sys.argv[1])):
    for qpn in range(16, 60):  # few are in use, and they are small
        send(qpn, connect())
        time.sleep(0.002)
        for endpoint in range(8):
            send(qpn, put(endpoint))
        time.sleep(0.002)
    time.sleep(1)
