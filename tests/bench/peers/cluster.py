# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# cluster.py - nodes on this machine, in networks of their own, behind
# links of a limited rate

import os
import shutil
import subprocess

RATE = "1gbit"
# a piece of 64 kB passes whole; a queue of 8 ms, which TCP fills
SHAPE = ["tbf", "rate", RATE, "burst", "128kb", "limit", "1mb"]


class Unavailable(Exception):
    pass


class Cluster:
    def __init__(self, prefix, share, shares, nodes=4):
        self.nodes = nodes
        self.tool = os.path.join(prefix, "bin", "dt-sandbox")
        self.dir = os.path.join(share, "sb")
        self.up = False
        if os.geteuid() != 0:
            raise Unavailable("nodes with a network of their own need root")
        for need in self.tool, "slurmctld", "slurmd", "srun", "munged", "tc":
            if not shutil.which(need, path=os.environ["PATH"] +
                                ":/usr/sbin:/sbin"):
                raise Unavailable(need + " is not there")
        conf = os.path.join(share, "none.conf")
        with open(conf, "w") as file:
            file.write("MpiDefault=none\n")
        command = [self.tool, "up", "--dir", self.dir, "-N", str(nodes),
                   "--gpus", "4", "--cpus", "16", "--conf", conf]
        for folder in [share, *shares]:
            command += ["--share", folder]
        done = subprocess.run(["timeout", "120", *command],
                              capture_output=True, text=True)
        if done.returncode:
            raise Unavailable("dt-sandbox up: " + done.stderr.strip())
        self.up = True
        try:
            self.limit()
        except (OSError, subprocess.SubprocessError) as error:
            self.down()
            raise Unavailable(f"links cannot be limited: {error}")

    def limit(self):
        """Both ends of every node's link: what it sends, what it gets"""
        head = self.process("head")
        for i in range(self.nodes):
            name = f"n{i}"
            self.shape(self.process(name), "eth0")
            self.shape(head, name)

    def process(self, name):
        with open(os.path.join(self.dir, "run", name)) as file:
            return file.read().split()[0]

    def shape(self, process, iface):
        subprocess.run(["nsenter", f"--net=/proc/{process}/ns/net", "tc",
                        "qdisc", "replace", "dev", iface, "root", *SHAPE],
                       check=True, capture_output=True)

    def command(self, words):
        return [self.tool, "exec", "--dir", self.dir, *words]

    def down(self):
        if self.up:
            subprocess.run([self.tool, "down", "--dir", self.dir],
                           capture_output=True, timeout=60)
