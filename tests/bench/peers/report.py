# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# report.py - the table: our time, the best peer's, the ratio of the two as the
# median of the rounds' own ratios, with quartiles, and the machine's limit; and
# the medians of all contenders as CSV

import csv
import io
import math

from regimes import comparisons, share_goal
from ways import ALL

WAYS = {way.name: way for way in ALL}
HEADER = (f"{'regime':13} {'size':>6} {'ours':10} {'us':>8} "
          f"{'best peer':14} {'us':>8} {'ratio (quartiles)':>22} {'goal':>5} "
          f"{'limit us':>8} {'share':>9}  against")


def quantile(values, q):
    values = sorted(values)
    at = (len(values) - 1) * q
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def series(runs, way, size, what=None):
    """One median per round, None where a round has none. Every line of a
    regime with random sizes has its own size."""
    found = []
    for rows in runs.get(way, []):
        hits = [row for row in rows or [] if row["size"] == size and
                (what is None or row["what"] == what)]
        found.append(hits[0] if hits else None)
    return found


def medians(lines):
    return [line["median"] for line in lines if line]


def typical(runs, way, size):
    values = medians(series(runs, way, size))
    return quantile(values, 0.5) if values else math.inf


def best(runs, size, fits):
    names = [name for name in runs if name in WAYS and fits(WAYS[name])]
    names = [name for name in names if typical(runs, name, size) < math.inf]
    return min(names, key=lambda n: typical(runs, n, size), default=None)


def paired(runs, ours, peer, size):
    both = zip(series(runs, ours, size), series(runs, peer, size))
    return [b["median"] / a["median"] for a, b in both if a and b]


def limit_of(regime, runs, ours, size):
    """What the machine would need for it, us, or None"""
    if regime.network:
        links = [row for rows in runs.get("limit", []) for row in rows or []]
        # a burst of the link's own passes small ones at any speed
        if not links or size < 1 << 20:
            return None
        us_per_byte = quantile([r["median"] / r["size"] for r in links], 0.5)
        return 2 * (regime.nodes - 1) / regime.nodes * size * us_per_byte
    what = "shared" if "reg" in ours else "private"
    values = medians(series(runs, "limit", size, what))
    return quantile(values, 0.5) if values else None


def row(regime, runs, ours, peer, size, against, goal, stretch):
    ratios = paired(runs, ours, peer, size)
    if not ratios:
        return None
    us, limit = typical(runs, ours, size), limit_of(regime, runs, ours, size)
    found = {"regime": regime.name, "size": size, "ours": ours, "us": us,
             "peer": peer, "peer_us": typical(runs, peer, size),
             "ratio": quantile(ratios, 0.5), "q1": quantile(ratios, 0.25),
             "q3": quantile(ratios, 0.75), "goal": goal, "stretch": stretch,
             "against": against, "limit": limit,
             "share": limit / us if limit else None,
             "share_goal": share_goal(regime, ours, size)}
    wrong = sum(line["wrong"] for way in (ours, peer)
                for line in series(runs, way, size) if line)
    sent = [line["sent"] for line in series(runs, ours, size) if line]
    if regime.network:
        ideal = 2 * (regime.nodes - 1) / regime.nodes * size
        found["sent"] = quantile(sent, 0.5) / ideal
    found["wrong"] = wrong
    return found


def limits(regime, runs):
    """What the machine's parts do, in words"""
    found = []
    for what, size in sorted({(line["what"], line["size"])
                              for rows in runs.get("limit", [])
                              for line in rows or []}):
        us = quantile(medians(series(runs, "limit", size, what)), 0.5)
        if what == "flag":
            found.append(f"# a flag from core to core: {us * 1e3:.0f} ns")
        elif what == "link":
            found.append(f"# a stream over each link, both ways at once: "
                         f"{size / us:.1f} MB/s")
        elif what == "memcpy" and size >= 4096:
            found.append(f"# memcpy of {short(size)}, each of two cores: "
                         f"{size / us / 1e3:.1f} GB/s")
    return found


def rows(regime, runs):
    if regime.name == "types":
        return type_rows(runs)
    if regime.name == "idle":
        return idle_rows(runs)
    sizes = sorted({line["size"] for name in runs for rows in runs[name]
                    for line in rows or [] if name != "limit"})
    found = []
    for size in sizes:
        for ours, fits, against, goal, stretch in comparisons(regime, size):
            ours = ours or best(runs, size, lambda way: way.ours)
            peer = best(runs, size, fits)
            if ours in runs and peer:
                found.append(row(regime, runs, ours, peer, size, against, goal,
                                 stretch))
    found = [line for line in found if line]
    return summary(regime, found) if regime.name == "random" else found


def summary(regime, found):
    """Of many sizes the geometric mean of their ratios"""
    lines = []
    for key in dict.fromkeys((r["ours"], r["against"]) for r in found):
        some = [r for r in found if (r["ours"], r["against"]) == key]

        def mean(field):
            return math.exp(sum(math.log(r[field]) for r in some) / len(some))

        lines.append({**some[0], "size": 0, "peer": "best of each",
                      "us": mean("us"), "peer_us": mean("peer_us"),
                      "ratio": mean("ratio"), "q1": mean("q1"),
                      "q3": mean("q3"), "goal": 0, "stretch": 0,
                      "against": f"{key[1]}, mean of {len(some)} sizes",
                      "wrong": sum(r["wrong"] for r in some)})
    return lines


def type_rows(runs):
    """Per element: a type of half the width against f32 of twice the bytes"""
    found = []
    for wide, narrow in ("dt", "dt-bf16"), ("dt", "dt-f16"), \
            ("gloo-bcube", "gloo-f16"), ("torch", "torch-f16"):
        sizes = {line["size"] for rows in runs.get(narrow, [])
                 for line in rows or []}
        for size in sorted(sizes):
            both = zip(series(runs, narrow, size),
                       series(runs, wide, 2 * size))
            ratios = [b["median"] / a["median"] for a, b in both if a and b]
            if ratios:
                goal = (1.8, 1.9) if wide == "dt" else (0, 0)
                found.append({
                    "regime": "types", "size": size, "ours": narrow,
                    "us": typical(runs, narrow, size), "peer": wide,
                    "peer_us": typical(runs, wide, 2 * size),
                    "ratio": quantile(ratios, 0.5),
                    "q1": quantile(ratios, 0.25),
                    "q3": quantile(ratios, 0.75), "goal": goal[0],
                    "stretch": goal[1], "against": "f32, as many elements",
                    "limit": None, "share": None, "wrong": sum(
                        line["wrong"] for line in series(runs, narrow, size)
                        if line)})
    return found


def idle_rows(runs):
    """The share of a core that a waiting rank takes, in percent"""
    found = []
    for peer in runs:
        if peer == "dt" or "dt" not in runs:
            continue
        ours, theirs = typical(runs, "dt", 4), typical(runs, peer, 4)
        found.append({"regime": "idle", "size": 4, "ours": "dt",
                      "us": ours * 100, "peer": peer, "peer_us": theirs * 100,
                      "ratio": None, "goal": 0, "stretch": 0, "limit": None,
                      "share": None, "wrong": 0,
                      "against": "percent of a core, not us"})
    return found


def short(size):
    for unit, step in ("M", 1 << 20), ("K", 1 << 10):
        if size >= step:
            return f"{size / step:.4g}{unit}"
    return f"{size:.0f}" if size else "-"


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def share_of(r):
    """And what it ought to be"""
    if r["share"] is None:
        return "-"
    goal = f"/{r['share_goal']:g}" if r.get("share_goal") else ""
    return f"{r['share']:.2f}{goal}"


def line(r):
    ratio = "-" if r["ratio"] is None else \
        f"{r['ratio']:.2f} ({r['q1']:.2f}-{r['q3']:.2f})"
    goal = f"{r['goal']:g}" if r["goal"] else "-"
    share = share_of(r)
    text = (f"{r['regime']:13} {short(r['size']):>6} {r['ours']:10} "
            f"{number(r['us']):>8} {r['peer']:14} {number(r['peer_us']):>8} "
            f"{ratio:>22} {goal:>5} {number(r['limit']):>8} {share:>9}  "
            f"{r['against']}")
    if "sent" in r:
        text += f"; sent {r['sent']:.3f} of the bound"
    if r["wrong"]:
        text += f"; {r['wrong']:.0f} WRONG"
    return text


CSV_HEADER = ["regime", "nodes", "ranks", "contender", "bytes", "median_us",
              "ratio_to_best_peer"]


def decimal(value, digits):
    """Without an exponent"""
    text = f"{float(f'{value:.{digits}g}'):f}"
    return text.rstrip("0").rstrip(".")


def csv_of(result):
    """One line per regime, contender and size: the median of the rounds' times,
    and the median of the best peer divided by it (above 1: faster than the best
    peer). The regimes of a model have one size, the bytes of its gradients.
    "types" has no ratio, as its contenders move different types. "idle" has the
    share of a core that a waiting rank takes, in percent, in place of a time"""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for regime in result["regimes"]:
        runs, name = regime["runs"], regime["name"]
        scale = 100 if name == "idle" else 1
        sizes = sorted({line["size"] for way in runs if way in WAYS
                        for rows in runs[way] for line in rows or []})
        for size in sizes:
            peer = best(runs, size, lambda way: not way.ours)
            for way in runs:
                us = typical(runs, way, size)
                if way not in WAYS or us == math.inf:
                    continue
                ratio = ""
                if peer and us and name not in ("idle", "types"):
                    ratio = decimal(typical(runs, peer, size) / us, 3)
                writer.writerow([name, regime["nodes"], regime["ranks"], way,
                                 f"{size:.0f}", decimal(us * scale, 4), ratio])
    return out.getvalue()
