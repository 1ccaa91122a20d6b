"""report - what was measured: results for programs, a table and pictures for people."""
import math
import os
import platform
import time

import picture
from figures import geometric_mean, median, quantile, ratio
from turns import LEFT


def result(problem, contenders, peers, threads):
    """All there is to say of a problem, as JSON has it: times in seconds a call."""
    ours = contenders[0]
    peak = next((c for c in contenders if c.instead and c.times), None)
    peak_flops = int(peak.instead.split()[2]) / median(peak.times) if peak else None
    out = {"group": problem.group, "problem": problem.text, "threads": threads, "flop": problem.flop(),
           "peak_flops": peak_flops, "contenders": {}, "peers": {}}
    for c in contenders:
        out["contenders"][c.name] = {"calls": c.calls, "seconds": c.times, "text": c.text, "why": c.why}
    rounds = len(ours.times)
    for name, ways in peers.items():
        whole = [c for c in ways if c.times and len(c.times) == rounds]
        if ours.why or not whole:
            why = next((c.why for c in ways if c.why), "is not there")
            out["peers"][name] = {"why": ours.why or why}
            continue
        best = min(whole, key=lambda c: median(c.times))
        value, low, high = ratio(ours.times, best.times)
        out["peers"][name] = {"best": best.name, "median": median(best.times), "ratio": value,
                              **({"low": low, "high": high} if math.isfinite(high) else {"low": None, "high": None})}
    if not ours.why:
        out["ours"] = {"median": median(ours.times), "quartiles": [quantile(ours.times, q) for q in (0.25, 0.75)],
                       "text": ours.text}
    else:
        out["why"] = ours.why
    return out


def span(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.4g} {unit}"
    return f"{seconds * 1e6:.4g} us"


def interval(peer):
    if peer["high"] is None:
        return f"{peer['ratio']:.2f}"
    return f"{peer['ratio']:.2f} [{peer['low']:.2f}, {peer['high']:.2f}]"


def line(r):
    """One result on one line of a terminal."""
    if "ours" not in r:
        return f"{r['problem']}: not measured: {r['why']}"
    text = f"{r['problem']}: {span(r['ours']['median'])}"
    if r["flop"]:
        text += f", {r['flop'] / r['ours']['median'] * 1e-9:.1f} GFLOP/s"
        if r["peak_flops"] and " f32 " in r["problem"]:
            text += f" ({100 * r['flop'] / r['ours']['median'] / r['peak_flops']:.0f} % of peak)"
    for name, peer in r["peers"].items():
        text += f"; {name}: {interval(peer)}" if "ratio" in peer else f"; {name}: {peer['why']}"
    return text


def sums(results, key):
    """Rows of geometric means: what is summed up, the peer, how many, the mean, the least and where."""
    found = {}
    for r in results:
        for name, peer in r["peers"].items():
            if "ratio" in peer:
                found.setdefault((key(r), name), []).append((peer["ratio"], r["problem"]))
    return [(what, name, len(list_), geometric_mean([v for v, _ in list_]), *min(list_))
            for (what, name), list_ in found.items()]


def machine():
    name = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            name = next((text.split(":", 1)[1].strip() for text in lines if text.startswith("model name")), "")
    except OSError:
        pass
    return f"{name or platform.machine()}, {platform.system()} {platform.release()}"


def cell(r, name):
    peer = r["peers"].get(name)
    if peer is None:
        return ""
    if "ratio" not in peer:
        return "-"
    flops = r["flop"] / peer["median"] * 1e-9 if r["flop"] else 0
    speed = f"{flops:.0f}" if flops >= 100 else f"{flops:.3g}" if flops else span(peer["median"])
    return f"{speed} / {interval(peer)}"


def table(results):
    names = list(dict.fromkeys(name for r in results for name in r["peers"]))
    speeds = any(r["flop"] for r in results)
    head = ["problem", "ours"] + (["GFLOP/s", "% of peak"] if speeds else []) + names
    rows = [head, ["---"] * len(head)]
    for r in results:
        if "ours" not in r:
            rows.append([r["problem"], r["why"]] + [""] * (len(head) - 2))
            continue
        low, high = r["ours"]["quartiles"]
        row = [r["problem"], f"{span(r['ours']['median'])} ({span(low)} to {span(high)})"]
        if r["flop"]:
            flops = r["flop"] / r["ours"]["median"]
            row += [f"{flops * 1e-9:.1f}",
                    f"{100 * flops / r['peak_flops']:.0f}" if r["peak_flops"] and " f32 " in r["problem"] else ""]
        elif speeds:
            row += ["", ""]
        rows.append(row + [cell(r, name) for name in names])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def markdown(results, field, options, keys, pictures):
    """The report. A cell of a peer: its GFLOP/s (or time) / how many times as fast we are [95 % interval]."""
    out = [f"# Peers, {time.strftime('%Y-%m-%d')}", "",
           f"{machine()}; {options.threads} thread(s) each; {options.rounds} rounds in shuffled order (seed "
           f"{options.seed}), turns of 20 ms or one call; medians."
           + (f" Beside {options.busy} process(es) that keep a core busy each." if options.busy else ""),
           "", "Ours / peer is the median over the rounds of the peer's time by ours (above 1: we are faster), with "
           "its 95 % interval; before it the peer's GFLOP/s, or its time, at its best.", "", "## Summary", "",
           "| what | peer | problems | ours / peer, geometric mean | least | where |", "|---|---|---|---|---|---|"]
    out += [f"| {what} | {name} | {count} | {mean:.2f} | {least:.2f} | {where} |"
            for what, name, count, mean, least, where in sums(results, lambda r: keys[r["problem"], r["group"]])]
    for group in dict.fromkeys(r["group"] for r in results):
        out += ["", f"## {group}", "", table([r for r in results if r["group"] == group])]
        if group in pictures:
            out += ["", f"![{group}]({pictures[group]})"]
    best = {}
    for r in results:
        for name, peer in r["peers"].items():
            if "best" in peer:
                ways = best.setdefault(name, {})
                ways[peer["best"]] = ways.get(peer["best"], 0) + 1
    out += ["", "## Which way was the best", ""]
    out += [f"- {name}: " + ", ".join(f"{way} ({count})" for way, count in sorted(ways.items(), key=lambda w: -w[1]))
            for name, ways in best.items()]
    lost = [(name, r["problem"], c["why"]) for r in results for name, c in r["contenders"].items()
            if c["why"] and c["why"] != LEFT and field.is_there(name)]
    if lost:
        out += ["", "## Left out", ""] + [f"- {name}: {problem}: {why}" for name, problem, why in lost]
    out += ["", "## Who took part", ""]
    for name, runner in field.runners.items():
        state = runner.about or (f"not there: {runner.absent}" if runner.absent else "")
        failed = "".join(f"; FAILED: {text}" for text in runner.failures)
        out.append(f"- {name}: {state or 'not asked'}{failed}")
    return "\n".join(out) + "\n"


def plot(results, folder):
    """A picture of each group's ratios; their names by group."""
    pictures = {}
    for group in dict.fromkeys(r["group"] for r in results):
        rows = [(r["problem"], {name: (peer["ratio"], peer["low"], peer["high"])
                                for name, peer in r["peers"].items() if "ratio" in peer})
                for r in results if r["group"] == group and "ours" in r]
        if any(values for _, values in rows):
            pictures[group] = f"{group}.svg"
            with open(os.path.join(folder, pictures[group]), "w", encoding="utf-8") as out:
                out.write(picture.ratios(f"{group}: how many times as fast, with 95 % intervals", rows))
    return pictures
