# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# regimes.py - what is measured, and what is compared with what

from ways import YIELD

KIB, MIB = 1024, 1 << 20
SIZES = [4, 64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB,
         4 * MIB, 16 * MIB, 64 * MIB]

ON_NODE = ["dt", "dt-huge", "dt-reg", "ompi", "ompi-ucx", "ompi-ring",
           "ompi-tuned", "ompi-huge", "ompi-ucx-huge", "mpich", "mpich-huge",
           "gloo-ring", "gloo-bcube", "gloo-chunked", "gloo-hd", "torch"]
CROWD = ["dt", "ompi", "ompi-ucx", "mpich", "gloo-bcube", "gloo-hd", "torch"]
IDLE = ["dt", "ompi", "ompi-ucx", "mpich", "gloo-ring", "torch"]
NETWORK = ["dt", "ompi", "ompi-ucx", "ompi-ring", "mpich", "gloo-ring",
           "gloo-bcube", "gloo-hd", "torch"]
STEP = ["dt", "dt-reg", "dt-all", "dt-all-reg", "dt-bucket", "ompi",
        "ompi-tuned", "ompi-huge", "ompi-all", "ompi-bucket", "mpich",
        "mpich-bucket", "gloo-ring", "gloo-bucket", "torch", "torch-bucket"]
LONG_STEP = ["dt", "dt-reg", "dt-bucket", "ompi", "ompi-tuned", "ompi-bucket",
             "gloo-bucket", "torch-bucket"]
NETWORK_STEP = ["dt", "dt-all", "dt-bucket", "ompi", "ompi-bucket",
                "gloo-bucket", "torch-bucket"]


class Regime:
    """share: of the rounds asked for, how many this one takes. quick: is it
    in a quick run, and with which arguments"""

    def __init__(self, name, title, ways, args, ranks=2, nodes=1, share=1.0,
                 env=None, model=None, limit=None, quick=None):
        self.name, self.title, self.ways = name, title, ways
        self.args, self.ranks, self.nodes = args, ranks, nodes
        self.share, self.env, self.model = share, env or {}, model
        self.limit, self.quick = limit, quick

    @property
    def network(self):
        return self.nodes > 1


def sizes(values, ms=30):
    return ["-s", ",".join(map(str, values)), "-m", str(ms)]


def all_regimes():
    few = [4, 4 * KIB, 64 * KIB, MIB, 16 * MIB]
    crowd = [4, KIB, 64 * KIB, MIB]
    found = [
        Regime("node", "one node, 2 ranks", ON_NODE, sizes(SIZES),
               limit="node", quick=sizes(few, 10)),
        Regime("random", "one node, 2 ranks, random sizes and offsets",
               ["dt", "dt-reg", "ompi", "ompi-tuned", "mpich", "gloo-hd"],
               ["-r", f"7:24:4:{4 * MIB}", "-m", "10"], share=0.6),
        Regime("types", "one node, 2 ranks, 16-bit types",
               ["dt", "dt-bf16", "dt-f16", "gloo-bcube", "gloo-f16", "torch",
                "torch-f16"],
               sizes([4 * KIB, 8 * KIB, 64 * KIB, 128 * KIB, 512 * KIB, MIB,
                      4 * MIB, 8 * MIB], 20), share=0.6),
    ]
    for ranks in 4, 8, 16:
        found.append(Regime(
            f"crowd{ranks}", f"one node, {ranks} ranks on two cores", CROWD,
            sizes(crowd, 60), ranks, share=0.6, env=YIELD,
            quick=sizes([4, MIB], 20) if ranks == 8 else None))
    found.append(Regime("idle", "one node, 2 ranks, one late", IDLE,
                        ["-i", "300"], share=0.4, quick=["-i", "200"]))
    found.append(Regime("resnet50", "one node, 2 ranks, ResNet-50's gradients",
                        STEP, ["-m", "300"], share=0.6, model="resnet50"))
    for model, title in ("vgg16", "VGG-16"), ("gpt2", "GPT-2"), \
            ("bert-large", "BERT-large"):
        found.append(Regime(
            model, f"one node, 2 ranks, {title}'s gradients", LONG_STEP,
            ["-m", "300"], share=0.25, model=model))
    for nodes in 2, 4:
        for each in 1, 2, 4:
            found.append(Regime(
                f"net{nodes}x{each}", f"{nodes} nodes x {each} ranks",
                NETWORK, sizes([4 * KIB, 8 * MIB, 16 * MIB], 250),
                nodes * each, nodes, share=0.3,
                env=YIELD if nodes * each > 2 else {}, limit="link",
                quick=sizes([8 * MIB], 100) if nodes * each == 4 else None))
    found.append(Regime(
        "net-resnet50", "4 nodes x 2 ranks, ResNet-50's gradients",
        NETWORK_STEP, ["-m", "100"], 8, 4, share=0.3, env=YIELD,
        model="resnet50", limit="link"))
    return found


PEERS = ("ompi", "mpich", "gloo", "torch")


def pages(huge):
    return lambda way: way.family in PEERS and way.huge == huge


def family(*names):
    return lambda way: way.family in names


def comparisons(regime, size):
    """(our way, who may be the best peer, what that is called, goal,
    stretch); a goal of 0 is none"""
    if regime.name in ("node", "random"):
        yield from node_comparisons(size)
    elif regime.name.startswith("crowd"):
        goal = (2, 4) if size <= 4 * KIB else (0, 0)
        yield "dt", family("ompi"), "Open MPI, yielding", *goal
        yield "dt", family("mpich", "gloo", "torch"), "the others", 0, 0
    elif regime.model and not regime.network:
        goal = (2.5, 4) if regime.model == "resnet50" else (0, 0)
        for ours in "dt", "dt-reg", "dt-all", "dt-all-reg", "dt-bucket":
            yield ours, family(*PEERS), "any peer's mode", *goal
    elif regime.network:
        ours = None if regime.model else "dt"
        goal = (1.7, 0) if size >= 8 * MIB else (0, 0)
        yield ours, lambda way: way.name == "ompi", "Open MPI as it comes", \
            *goal
        yield ours, family("gloo", "torch"), "Gloo", 1, 0
        yield ours, family(*PEERS), "any", 0, 0


def share_goal(regime, ours, size):
    """Of the limit; 0 is none"""
    if regime.network:
        return 0.85 if regime.model else 0.92 if size >= 8 * MIB else 0
    middle = 256 * KIB <= size <= 4 * MIB
    return 0.7 if regime.name == "node" and ours == "dt-reg" and middle else 0


def node_comparisons(size):
    if size <= 64:
        private, huge, shared, shared_huge = (1.8, 2.2), (0, 0), (0, 0), (0, 0)
    elif size < 16 * KIB:
        private, huge, shared_huge = (2, 2.5), (0, 0), (0, 0)
        shared = (3.5, 4.5) if size == 4 * KIB else (0, 0)
    elif size < 256 * KIB:
        private, huge, shared, shared_huge = (1.7, 3), (0, 0), (4, 7), (0, 0)
    elif size < 16 * MIB:
        private, huge, shared, shared_huge = (1.8, 2.2), (1.2, 0), (5, 8), \
            (3.3, 0)
    else:
        private, huge, shared, shared_huge = (2, 0), (0, 0), (6, 0), (2.7, 5)
    yield "dt", pages(False), "4 KiB pages", *private
    yield "dt-huge", pages(True), "huge pages", *huge
    yield "dt-reg", pages(False), "4 KiB pages", *shared
    yield "dt-reg", pages(True), "huge pages", *shared_huge
    goal = 300 if size <= KIB else 8 if size >= MIB else 0
    yield "dt", family("torch"), "PyTorch's gloo", goal, 0
