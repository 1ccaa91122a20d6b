"""picture - ratios as a drawing: a row for each problem, a dot for each peer with the interval that it lies in.

SVG for the report: bars of speed would not show how sure they are, nor do they fit training beside products.
"""
import html
import math

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"]  # of full dots, then of hollow ones
# The rounder ones first: others stand where there is room between them.
TICKS = [n * 10.0**e for some in ((1,), (2, 5), (3, 7, 1.5, 4, 8, 6, 9)) for e in range(-3, 5) for n in some]
LEFT, RIGHT, WIDE, ROOM = 270, 20, 900, 40
LEGEND, LINE = 30, 18  # how far below the upper edge the legend's first line is, and the next one below it


def text(x, y, what, anchor="start", colour="#222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{html.escape(what)}</text>'


def line(x1, y1, x2, y2, colour, width=1.0):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"/>')


def dot(x, y, radius, index):
    colour = COLOURS[index % len(COLOURS)]
    full = colour if index < len(COLOURS) else "#fff"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{full}" stroke="{colour}"/>'


def legend_places(peers):
    """Where each peer's dot is, in lines no wider than the drawing."""
    x, y = LEFT, LEGEND
    for peer in peers:
        wide = 24 + 7 * len(peer)
        if x > LEFT and x + wide > WIDE:
            x, y = LEFT, y + LINE
        yield x, y
        x += wide


def ratios(title, rows):
    """`rows`: of each problem its name and, by peer, (ratio, low, high); the last two None where they are not known.
    The axis is logarithmic and has 1, where both are equally fast."""
    peers = list(dict.fromkeys(peer for _, values in rows for peer in values))
    seen = [v for _, values in rows for three in values.values() for v in three if v] + [1.0]
    low, high = math.log(min(min(seen), 0.8) / 1.05), math.log(max(max(seen), 1.25) * 1.05)
    row = 8 + 6 * max(2, len(peers))
    legend = list(legend_places(peers))
    top = legend[-1][1] + 14 if legend else LEGEND
    foot, tall = top + row * len(rows), top + row * len(rows) + 40

    def place(value):
        return LEFT + (math.log(value) - low) / (high - low) * (WIDE - LEFT - RIGHT)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{tall}" viewBox="0 0 {WIDE} {tall}" '
           'font-family="sans-serif" font-size="12">', f'<rect width="{WIDE}" height="{tall}" fill="#fff"/>',
           text(10, 16, title)]
    told = []
    for tick in (t for t in TICKS if low <= math.log(t) <= high):
        if any(abs(place(tick) - place(t)) < ROOM for t in told):
            continue
        told.append(tick)
        out += [line(place(tick), top, place(tick), foot, "#222" if tick == 1 else "#ddd"),
                text(place(tick), foot + 15, f"{tick:g}", "middle")]
    out.append(text((LEFT + WIDE - RIGHT) / 2, foot + 33, "ours / peer: right of 1 ours is faster", "middle"))
    for index, (peer, (x, y)) in enumerate(zip(peers, legend)):
        out += [dot(x, y, 4, index), text(x + 8, y + 4, peer)]
    for number, (name, values) in enumerate(rows):
        y = top + row * number
        out.append(text(LEFT - 8, y + row / 2 + 4, name, "end"))
        for peer, (value, least, most) in values.items():
            index = peers.index(peer)
            at, colour = y + row * (index + 1) / (len(peers) + 1), COLOURS[index % len(COLOURS)]
            if least and most:
                out.append(line(place(least), at, place(most), at, colour, 1.5))
            out.append(dot(place(value), at, 3, index))
    return "\n".join([*out, "</svg>", ""])
