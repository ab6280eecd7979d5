# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# page.py - the result as one HTML page with its plots, which needs nothing else

import html
import math

import report

COLOURS = {"dt": "#c00", "dt-huge": "#e66", "dt-reg": "#800",
           "ompi": "#06c", "ompi-tuned": "#09f", "ompi-huge": "#69f",
           "ompi-ucx": "#036", "ompi-ucx-huge": "#36a", "ompi-ring": "#6cf",
           "mpich": "#090", "mpich-huge": "#6c6", "gloo-ring": "#960",
           "gloo-bcube": "#b83", "gloo-chunked": "#da5", "gloo-hd": "#740",
           "torch": "#909", "limit": "#999"}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 560, 340, 56, 24, 130, 40


class Plot:
    """Both axes logarithmic"""

    def __init__(self, title, unit, lines):
        self.title, self.unit = title, unit
        self.lines = {name: line for name, line in lines.items() if line}
        points = [p for line in self.lines.values() for p in line]
        self.x = self.span([x for x, _ in points])
        self.y = self.span([y for _, y in points])

    @staticmethod
    def span(values):
        low = math.floor(math.log10(min(values)))
        return low, max(math.ceil(math.log10(max(values))), low + 1)

    def place(self, x, y):
        def part(value, span):
            return (math.log10(value) - span[0]) / (span[1] - span[0])
        return (LEFT + part(x, self.x) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - part(y, self.y) * (HEIGHT - TOP - BOTTOM))

    @staticmethod
    def power(e):
        return f'10<tspan dy="-4" font-size="8">{e}</tspan></text>'

    def axes(self):
        for e in range(self.x[0], self.x[1] + 1):
            x, _ = self.place(10.0 ** e, 10.0 ** self.y[0])
            yield (f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{TOP}" '
                   f'y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x:.0f}" y="{HEIGHT - BOTTOM + 14}" '
                   f'text-anchor="middle">{self.power(e)}')
        for e in range(self.y[0], self.y[1] + 1):
            _, y = self.place(10.0 ** self.x[0], 10.0 ** e)
            yield (f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.0f}" '
                   f'y2="{y:.0f}" stroke="#ddd"/><text x="{LEFT - 4}" '
                   f'y="{y + 4:.0f}" text-anchor="end">{self.power(e)}')

    def svg(self):
        parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
                 f'height="{HEIGHT}" font-size="11" role="img">'
                 f'<text x="{LEFT}" y="14" font-weight="bold">'
                 f'{html.escape(self.title)}, {self.unit}</text>']
        parts += self.axes()
        for i, (name, line) in enumerate(sorted(self.lines.items())):
            colour = COLOURS.get(name, "#666")
            dots = " ".join("%.1f,%.1f" % self.place(x, y)
                            for x, y in sorted(line))
            wide = 2.5 if name.startswith("dt") else 1.2
            dash = ' stroke-dasharray="4 3"' if name == "limit" else ""
            parts.append(f'<polyline points="{dots}" fill="none" '
                         f'stroke="{colour}" stroke-width="{wide}"{dash}>'
                         f'<title>{name}</title></polyline>')
            y = TOP + 12 + 15 * i
            parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{y}" '
                         f'fill="{colour}">{name}</text>')
        parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) // 2}" '
                     f'y="{HEIGHT - 6}" text-anchor="middle">bytes</text>'
                     '</svg>')
        return "\n".join(parts)


def curve(runs, way):
    sizes = sorted({row["size"] for rows in runs[way] for row in rows or []})
    return [(size, report.typical(runs, way, size)) for size in sizes]


def limit_curve(runs):
    sizes = sorted({row["size"] for rows in runs.get("limit", [])
                    for row in rows or [] if row["what"] == "shared"})
    return [(size, report.quantile(report.medians(
        report.series(runs, "limit", size, "shared")), 0.5))
        for size in sizes]


def plots(regime):
    runs = regime["runs"]
    lines = {way: curve(runs, way) for way in runs if way != "limit"}
    lines = {way: line for way, line in lines.items() if len(line) > 1}
    if not lines or regime["name"] in ("idle", "random"):
        return ""
    lines["limit"] = limit_curve(runs)
    factor = 2 * (regime["ranks"] - 1) / regime["ranks"] / 1e3
    speed = {way: [(x, factor * x / y) for x, y in line]
             for way, line in lines.items()}
    return (Plot(regime["title"], "us", lines).svg() +
            Plot("bus bandwidth", "GB/s", speed).svg())


def cells(row):
    ratio = "-" if row["ratio"] is None else \
        f"{row['ratio']:.2f} ({row['q1']:.2f}-{row['q3']:.2f})"
    held = row["goal"] and row["ratio"] and row["ratio"] >= row["goal"]
    mark = "" if not row["goal"] else ' class="held"' if held else \
        ' class="missed"'
    sent = f"{row['sent']:.3f}" if "sent" in row else ""
    text = [row["regime"], report.short(row["size"]), row["ours"],
            report.number(row["us"]), row["peer"],
            report.number(row["peer_us"]), None, row["goal"] or "",
            row["stretch"] or "", report.number(row["limit"]),
            report.share_of(row), sent,
            row["against"]]
    return "".join(f"<td{mark}>{ratio}</td>" if cell is None else
                   f"<td>{html.escape(str(cell))}</td>" for cell in text)


HEAD = ["regime", "bytes", "ours", "us", "best peer", "us", "ratio", "goal",
        "stretch", "limit us", "share of it / goal", "bytes sent / bound", "against"]
STYLE = """body{font:14px sans-serif;max-width:1200px;margin:2em auto;
padding:0 1em}table{border-collapse:collapse;font-size:12px}td,th{padding:2px
8px;text-align:right;border-bottom:1px solid #eee}td:first-child,
td:last-child{text-align:left}.held{background:#dfd}.missed{background:#fdd}"""


def render(result):
    machine = result["machine"]
    rows = [row for regime in result["regimes"] for row in regime["table"]]
    body = [f"<h1>libdt's allreduce beside its peers</h1><p>{machine['date']}, "
            f"{machine['cores']} x {html.escape(machine['processor'])}, Linux "
            f"{html.escape(machine['kernel'])}, load {machine['load']:.1f} at "
            f"the start, {result['rounds']} rounds. A ratio is the peer's "
            "time over ours: the median over the rounds of each round's own, "
            "with quartiles.</p>"]
    if result["realtime"]:
        body.append("<p>Runs on one node went before all other programs of "
                    "the machine (SCHED_RR).</p>")
    body += [plots(regime) for regime in result["regimes"]]
    body.append("<table><tr>" + "".join(f"<th>{h}</th>" for h in HEAD) +
                "</tr>")
    body += [f"<tr>{cells(row)}</tr>" for row in rows]
    body.append("</table><ul>")
    body += [f"<li>{regime['title']}: {limit[2:]}</li>"
             for regime in result["regimes"] for limit in regime["limits"]]
    body += [f"<li>{html.escape(key)} {html.escape(text)}</li>"
             for key, text in result["troubles"].items()]
    body.append("</ul><dl>")
    used = {way for regime in result["regimes"] for way in regime["runs"]}
    body += [f"<dt>{name}</dt><dd>{html.escape(text)}</dd>"
             for name, text in result["ways"].items() if name in used]
    body.append("</dl>")
    return (f"<!doctype html><html lang=en><meta charset=utf-8>"
            f"<title>libdt's allreduce beside its peers</title>"
            f"<style>{STYLE}</style>" + "\n".join(body) + "</html>\n")
