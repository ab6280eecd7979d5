# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# report.awk - the events and results of a demo as one page of HTML
#
# Files, distinguished by their names:
#   events            milliseconds since 1970, tab, text
#   binding           the table of --dt-gpus=verbose, with its header
#   times             milliseconds since 1970 and more digits, comma, start|end
#   .../metrics.csv   as doc/examples/fashion_log.h has it; the folder is the
#                     name of the run, training or reference
# Variables: accuracy, resumed, verdict, begin (milliseconds), steps, nodes,
# ntasks, digest, date.

function escape(s)
{
    gsub(/&/, "\\&amp;", s)
    gsub(/</, "\\&lt;", s)
    gsub(/>/, "\\&gt;", s)
    return s
}

function seconds(ms)
{
    return (ms - begin) / 1000
}

FILENAME ~ /events$/ {
    at = seconds($1)
    sub(/^[^\t]*\t/, "")
    nevents++
    event_at[nevents] = at
    event_text[nevents] = $0
    next
}

FILENAME ~ /binding$/ {
    binding[++nbinding] = $0
    next
}

FILENAME ~ /times$/ {
    split($0, f, ",")
    urgent[f[2]] = seconds(substr(f[1], 1, 13))
    next
}

FNR == 1 {
    run = FILENAME
    sub(/\/metrics\.csv$/, "", run)
    sub(/.*\//, "", run)
    next
}

{
    split($0, f, ",")
    at = f[1] - begin / 1000
    kind = f[3]
    step = f[5] + 0
    if (kind == "start") {
        # what was trained after the checkpoint is trained again
        while (nloss[run] && loss_step[run, nloss[run]] > step)
            nloss[run]--
        while (nacc[run] && acc_step[run, nacc[run]] > step)
            nacc[run]--
        bar_open(run, at)
    } else if (kind == "rank") {
        bar_node[nbars, f[7]] = bar_node[nbars, f[7]] \
            (bar_node[nbars, f[7]] == "" ? "" : " ") f[6]
        if (!(f[7] in node_row))
            node_name[node_row[f[7]] = ++nnodes] = f[7]
    } else if (kind == "loss") {
        n = ++nloss[run]
        loss_step[run, n] = step
        loss[run, n] = f[6] + 0
    } else if (kind == "accuracy") {
        n = ++nacc[run]
        acc_step[run, n] = step
        acc[run, n] = f[6] + 0
    } else if (kind == "preempted" || kind == "finished") {
        bar_end[nbars] = at
        if (kind == "preempted")
            preempted_at[++npreempted] = step
    }
}

function bar_open(name, at)
{
    bar_run[++nbars] = name
    bar_start[nbars] = at
    bar_end[nbars] = at
}

# ---- drawing ----

# A round step so that range has at most most of them.
function tick_step(range, most,    unit)
{
    unit = 0.001
    while (range / unit > most) {
        if (range / (unit * 2) <= most)
            return unit * 2
        if (range / (unit * 5) <= most)
            return unit * 5
        unit *= 10
    }
    return unit
}

function label(x, y, anchor, class, text)
{
    printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">" \
        "%s</text>\n", x, y, anchor, class, text
}

function line(x1, y1, x2, y2, class)
{
    printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" " \
        "class=\"%s\"/>\n", x1, y1, x2, y2, class
}

# A chart is 440 x 250, its plot this part of it.
function chart_frame(title, y0, y1, unit,    t, i, y, x)
{
    left = 42
    right = 428
    top = 14
    bottom = 216
    low = y0
    high = y1
    printf "<figure><figcaption>%s</figcaption>\n", title
    printf "<svg viewBox=\"0 0 440 250\" role=\"img\" aria-label=\"%s\">\n",
        title
    t = tick_step(high - low, 6)
    for (i = 0; low + i * t <= high + t / 1000; i++) {
        y = chart_y(low + i * t)
        line(left, y, right, y, "grid")
        label(left - 6, y + 3.5, "end", "tick", sprintf("%g%s", low + i * t,
            unit))
    }
    t = tick_step(steps, 6)
    for (i = 0; i * t <= steps; i++) {
        x = chart_x(i * t)
        line(x, bottom, x, bottom + 4, "axis")
        label(x, bottom + 16, "middle", "tick", i * t)
    }
    line(left, bottom, right, bottom, "axis")
    label(right, bottom + 31, "end", "tick", "step")
    for (i = 1; i <= npreempted; i++) {
        x = chart_x(preempted_at[i])
        line(x, top - 4, x, bottom, "mark")
    }
}

function chart_x(step)
{
    return left + (right - left) * step / steps
}

function chart_y(value)
{
    if (value > high)
        value = high
    return bottom - (bottom - top) * (value - low) / (high - low)
}

function chart_mark(y,    x, flip)
{
    if (!npreempted)
        return
    x = chart_x(preempted_at[1])
    flip = x > (left + right) / 2
    label(x + (flip ? -7 : 7), y, flip ? "end" : "start", "marktext",
        "preempted and resumed")
    label(x + (flip ? -7 : 7), y + 14, flip ? "end" : "start", "marktext",
        "at step " resumed)
}

function chart_loss(name,    i)
{
    printf "<polyline class=\"curve %s\" points=\"", name
    for (i = 1; i <= nloss[name]; i++)
        printf "%.1f,%.1f ", chart_x(loss_step[name, i]),
            chart_y(loss[name, i])
    print "\"/>"
}

function chart_acc(name,    i)
{
    printf "<polyline class=\"curve %s\" points=\"", name
    for (i = 1; i <= nacc[name]; i++)
        printf "%.1f,%.1f ", chart_x(acc_step[name, i]), chart_y(acc[name, i])
    print "\"/>"
    for (i = 1; i <= nacc[name]; i++)
        printf "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">" \
            "<title>step %d: %.2f %%</title></circle>\n", name,
            chart_x(acc_step[name, i]), chart_y(acc[name, i]),
            name == "training" ? 2.6 : 4.6, acc_step[name, i], acc[name, i]
}

# The loss starts so high that the rest would be flat: cut it there.
function loss_top(    i, n, most)
{
    n = nloss["reference"]
    for (i = int(n / 40) + 1; i <= n; i++)
        if (loss["reference", i] > most)
            most = loss["reference", i]
    return most > 0 ? most : 1
}

function curves(    i, least, most)
{
    print "<h2>Loss and accuracy</h2>"
    if (verdict == "identical")
        print "<p>The curves of the interrupted training lie exactly on " \
            "those of the undisturbed one.</p>"
    print "<p class=\"legend\"><span class=\"key training\"></span>training, " \
        "interrupted <span class=\"key reference\"></span>reference, " \
        "undisturbed</p>"
    print "<div class=\"charts\">"
    most = loss_top()
    chart_frame("Training loss (the first steps are higher)",
        0, (int(most * 10) + 1) / 10, "")
    chart_loss("reference")
    chart_loss("training")
    chart_mark(top + 10)
    print "</svg></figure>"
    least = most = acc["reference", 1]
    for (i = 1; i <= nacc["reference"]; i++) {
        if (acc["reference", i] < least)
            least = acc["reference", i]
        if (acc["reference", i] > most)
            most = acc["reference", i]
    }
    chart_frame("Test accuracy", int(least), int(most) + 1, " %")
    chart_acc("reference")
    chart_acc("training")
    chart_mark(bottom - 24)
    print "</svg></figure>"
    print "</div>"
}

# ---- who ran where and when ----

function time_x(t)
{
    return 60 + 820 * t / time_end
}

function bar(row, from, to, class, text, hint,    x, w)
{
    x = time_x(from)
    w = time_x(to) - x
    if (w < 2)
        w = 2
    printf "<g><title>%s</title><rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" " \
        "height=\"26\" rx=\"3\" class=\"bar %s\"/>\n", escape(hint), x,
        row * 36 - 24, w, class
    if (w > 7 * length(text) + 6)
        label(x + w / 2, row * 36 - 7, "middle", "bartext", escape(text))
    print "</g>"
}

function timeline(    i, r, n, t, y, height)
{
    for (i = 1; i <= nbars; i++)
        if (bar_end[i] > time_end)
            time_end = bar_end[i]
    time_end *= 1.01
    height = nnodes * 36 + 36 + 44
    print "<h2>Who ran where, and when</h2>"
    print "<p class=\"legend\"><span class=\"key training\"></span>training " \
        "<span class=\"key waiting\"></span>training waits in the queue " \
        "<span class=\"key urgent\"></span>urgent job, high priority " \
        "<span class=\"key reference\"></span>reference</p>"
    printf "<div class=\"wide\"><svg viewBox=\"0 0 900 %d\" " \
        "role=\"img\" class=\"timeline\" aria-label=\"timeline\">\n", height
    y = nnodes * 36 + 36 + 10
    t = tick_step(time_end, 12)
    for (i = 0; i * t <= time_end; i++) {
        line(time_x(i * t), 8, time_x(i * t), y, "grid")
        label(time_x(i * t), y + 16, "middle", "tick", i * t " s")
    }
    label(52, 29, "end", "row", "queue")
    for (r = 1; r <= nnodes; r++)
        label(52, (r + 1) * 36 - 7, "end", "row", escape(node_name[r]))
    for (i = 1; i <= nbars; i++) {
        for (r = 1; r <= nnodes; r++) {
            n = bar_node[i, node_name[r]]
            if (n != "")
                bar(r + 1, bar_start[i], bar_end[i], bar_run[i],
                    bar_run[i] ", ranks " n,
                    sprintf("%s, ranks %s on %s: %.1f s to %.1f s",
                        bar_run[i], n, node_name[r], bar_start[i],
                        bar_end[i]))
        }
        if (i > 1 && bar_run[i] == bar_run[i - 1])
            bar(1, bar_end[i - 1], bar_start[i], "waiting", "training",
                sprintf("training waits: %.1f s to %.1f s", bar_end[i - 1],
                    bar_start[i]))
    }
    for (r = 1; r <= nnodes && "start" in urgent; r++)
        bar(r + 1, urgent["start"], urgent["end"], "urgent", "urgent",
            sprintf("urgent job on %s: %.1f s to %.1f s", node_name[r],
                urgent["start"], urgent["end"]))
    print "</svg></div>"
}

# ---- tables ----

function binding_table(    i, j, n, cell, tag)
{
    if (!nbinding)
        return
    print "<h2>Where each rank was bound</h2>"
    print "<p>As <code>srun --dt-gpus=verbose</code> prints it: the GPUs that " \
        "are the rank's own, and what it sees.</p>"
    print "<div class=\"wide\"><table class=\"binding\">"
    for (i = 1; i <= nbinding; i++) {
        tag = i == 1 ? "th" : "td"
        n = split(binding[i], cell, /  +/)
        printf "<tr>"
        for (j = 1; j <= n; j++)
            if (cell[j] != "")
                printf "<%s>%s</%s>", tag, escape(cell[j]), tag
        print "</tr>"
    }
    print "</table></div>"
}

function event_table(    i)
{
    print "<h2>What happened</h2>"
    print "<div class=\"wide\"><table class=\"events\">"
    for (i = 1; i <= nevents; i++)
        printf "<tr><td>%.1f s</td><td>%s</td></tr>\n", event_at[i],
            escape(event_text[i])
    print "</table></div>"
}

function tile(class, value, what)
{
    printf "<div class=\"tile %s\"><b>%s</b><span>%s</span></div>\n", class,
        value, what
}

function style()
{
    print "<style>"
    print ":root { color-scheme: light dark; --bg: #fff; --fg: #1b1f24;"
    print "  --soft: #667079; --rule: #e3e7eb; --card: #f6f8fa;"
    print "  --training: #2563eb; --reference: #b6bec9; --urgent: #e08a1e;"
    print "  --good: #1a7f4b; --bad: #c62828; --mark: #c2410c; }"
    print "@media (prefers-color-scheme: dark) { :root { --bg: #14181d;"
    print "  --fg: #e6e9ec; --soft: #98a2ac; --rule: #2c333b;"
    print "  --card: #1c2229; --training: #6ea2ff; --reference: #59636f;"
    print "  --urgent: #eba94b; --good: #4cc38a; --bad: #ff7b72;"
    print "  --mark: #f0883e; } }"
    print "body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem;"
    print "  max-width: 58rem; background: var(--bg); color: var(--fg);"
    print "  font: 16px/1.5 system-ui, sans-serif; }"
    print "h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; }"
    print "h2 { font-size: 1.15rem; margin: 2.6rem 0 .4rem; }"
    print "p { margin: .3rem 0 .6rem; } .lead { color: var(--soft); }"
    print "code, .events td:first-child, .binding, .digest {"
    print "  font-family: ui-monospace, monospace; font-size: .88em; }"
    print ".tiles { display: grid; gap: .8rem; margin: 1.6rem 0 0;"
    print "  grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); }"
    print ".tile { background: var(--card); border-radius: 8px;"
    print "  padding: .9rem 1.1rem; border-left: 4px solid var(--good); }"
    print ".tile.bad { border-color: var(--bad); }"
    print ".tile b { display: block; font-size: 1.35rem; }"
    print ".tile span { color: var(--soft); font-size: .9rem; }"
    print ".charts { display: grid; gap: 1.2rem;"
    print "  grid-template-columns:"
    print "    repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); }"
    print "figure { margin: 0; } figcaption { font-weight: 600;"
    print "  font-size: .92rem; } svg { width: 100%; height: auto;"
    print "  display: block; } svg text { fill: var(--fg);"
    print "  font: 12px system-ui, sans-serif; }"
    print "svg .tick { fill: var(--soft); font-size: 11px; }"
    print "svg .row { font-size: 13px; } .timeline { min-width: 46rem; }"
    print "svg .bartext { fill: #fff; font-size: 11.5px; }"
    print "@media (prefers-color-scheme: dark) {"
    print "  svg .bartext { fill: #0d1117; } }"
    print "svg .reference + .bartext, svg .waiting + .bartext {"
    print "  fill: var(--fg); }"
    print "svg .marktext { fill: var(--mark); }"
    print ".grid { stroke: var(--rule); } .axis { stroke: var(--soft); }"
    print ".mark { stroke: var(--mark); stroke-width: 1.5;"
    print "  stroke-dasharray: 4 3; }"
    print ".curve { fill: none; stroke-linejoin: round; }"
    print ".curve.training { stroke: var(--training); stroke-width: 1.5; }"
    print ".curve.reference { stroke: var(--reference); stroke-width: 5; }"
    print ".dot.training { fill: var(--training); }"
    print ".dot.reference { fill: var(--reference); }"
    print ".bar.training { fill: var(--training); }"
    print ".bar.reference { fill: var(--reference); }"
    print ".bar.urgent { fill: var(--urgent); }"
    print ".bar.waiting { fill: var(--card); stroke: var(--training);"
    print "  stroke-dasharray: 3 3; }"
    print ".legend { color: var(--soft); font-size: .9rem; }"
    print ".key { display: inline-block; width: .8em; height: .8em;"
    print "  border-radius: 2px; margin: 0 .4em 0 0; }"
    print ".key:not(:first-child) { margin-left: 1.2em; }"
    print ".key.training { background: var(--training); }"
    print ".key.reference { background: var(--reference); }"
    print ".key.urgent { background: var(--urgent); }"
    print ".key.waiting { border: 1px dashed var(--training);"
    print "  box-sizing: border-box; }"
    print ".wide { overflow-x: auto; } table { border-collapse: collapse; }"
    print "td, th { padding: .25rem 1.4rem .25rem 0; text-align: left;"
    print "  vertical-align: top; border-bottom: 1px solid var(--rule); }"
    print "th { color: var(--soft); font-weight: 600; }"
    print ".events td:first-child { text-align: right; white-space: nowrap;"
    print "  color: var(--soft); font-variant-numeric: tabular-nums; }"
    print "footer { margin-top: 3rem; color: var(--soft);"
    print "  font-size: .88rem; }"
    print "</style>"
}

END {
    same = verdict == "identical"
    print "<!DOCTYPE html>"
    print "<html lang=\"en\"><head><meta charset=\"utf-8\">"
    print "<meta name=\"viewport\" content=\"width=device-width\">"
    print "<title>slurm-dt: demo report</title>"
    style()
    print "</head><body>"
    print "<h1>A training job was preempted, requeued and resumed</h1>"
    printf "<p class=\"lead\">Fashion-MNIST on %d nodes with %d ranks under " \
        "Slurm. In the middle a job of high priority took the nodes. The " \
        "training saved a checkpoint, left, was requeued, and ended with %s " \
        "weights as the same training undisturbed.</p>\n", nodes, ntasks,
        same ? "the same" : "<b>other</b>"
    print "<div class=\"tiles\">"
    tile(same ? "" : "bad", "weights " verdict,
        (same ? "bit for bit, " : "from the reference, ") \
            "<span class=\"digest\">" digest "</span>")
    tile("", "resumed at step " resumed, "of " steps ", nothing lost")
    tile("", "accuracy " accuracy " %", "on the 10,000 test images")
    print "</div>"
    timeline()
    curves()
    binding_table()
    event_table()
    printf "<footer>Made by <code>./bootstrap demo</code>%s. " \
        "GPUs are simulated by the sandbox; Slurm, PMIx, the network and " \
        "the training are real.</footer>\n",
        date == "" ? "" : ", " escape(date)
    print "</body></html>"
}
