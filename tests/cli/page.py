"""page.py FILE.html - whether a page of `report` is valid HTML, strictly read; says what is not, exit status 1.

What the page consists of is written down below, element by element: what HTML allows of it and no more. Whatever stands
there besides, is not closed, not quoted, not escaped, used twice, points at nothing or lies beside the paper is wrong.
"""
import re
import sys
import xml.etree.ElementTree as tree

SVG = "http://www.w3.org/2000/svg"
TEXT = "text"  # in place of children
INSIDE = {
    "html": {"head", "body"},
    "head": {"meta", "title", "style"},
    "body": {"h1", "h2", "p", "div", "pre", "svg"},
    "div": {"table"},
    "table": {"tr"},
    "tr": {"th", "td"},
    "svg": {"title", "rect", "path", "circle", "text"},
    **{leaf: TEXT for leaf in ("title", "style", "h1", "h2", "p", "pre", "th", "td", "text")},
    **{empty: set() for empty in ("meta", "rect", "path", "circle")},
}
ATTRIBUTES = {
    "html": {"lang"},
    "meta": {"charset", "name", "content"},
    "svg": {"viewBox", "role", "font-family", "fill"},
    "rect": {"x", "y", "width", "height", "fill"},
    "circle": {"cx", "cy", "r", "fill"},
    "path": {"d", "fill", "stroke", "stroke-width", "stroke-linejoin"},
    "text": {"x", "y", "font-size", "text-anchor", "transform"},
}
EVERYWHERE = {"class", "id", "href"}
NUMBERS = {"x", "y", "width", "height", "cx", "cy", "r", "font-size", "stroke-width"}
NUMBER = r"-?\d+(?:\.\d+)?"


def name_of(element, within_svg):
    """Its name: of SVG's below <svg>, of HTML's elsewhere."""
    space, _, name = element.tag.rpartition("}")
    wanted = SVG if within_svg or name == "svg" else ""
    assert space.lstrip("{") == wanted, f"<{name}> is of the namespace '{space[1:]}', not '{wanted}'"
    return name


def look(element, within_svg=False):
    """An element, its attributes and all below it."""
    name = name_of(element, within_svg)
    within_svg = within_svg or name == "svg"
    allowed = INSIDE[name]
    for key, value in element.attrib.items():
        assert key in ATTRIBUTES.get(name, set()) | EVERYWHERE, f"<{name}> has no attribute {key}"
        if key in NUMBERS:
            assert re.fullmatch(NUMBER, value), f"<{name} {key}=\"{value}\"> is no number"
            assert key in ("x", "y", "cx", "cy") or float(value) >= 0, f"<{name} {key}=\"{value}\"> is below 0"
    if allowed != TEXT:
        for text in (element.text, *(child.tail for child in element)):
            assert not (text or "").strip(), f"text within <{name}>: {text.strip()}"
    for child in element:
        below = child.tag.rpartition("}")[2]
        assert allowed != TEXT and below in allowed, f"<{below}> within <{name}>"
        look(child, within_svg)


def look_at_picture(svg):
    """It has a name, and all that is drawn lies on the paper."""
    assert svg.get("role") == "img" and svg[0].tag == f"{{{SVG}}}title" and svg[0].text, "an <svg> without a name"
    left, top, width, height = map(float, svg.get("viewBox").split())
    assert left == top == 0 and width > 0 and height > 0, "a viewBox without an area"
    for element in svg.iter():
        name = element.tag.rpartition("}")[2]
        at = [float(element.get(key, 0)) for key in (("cx", "cy") if name == "circle" else ("x", "y"))]
        points = [at]
        if name == "rect":
            points.append([at[0] + float(element.get("width")), at[1] + float(element.get("height"))])
        if name == "text":  # letters are half as wide as high, or nearly
            length = len(element.text or "") * float(element.get("font-size")) * 0.45
            before = {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor")]
            points = [[at[0] - before * length, at[1]], [at[0] + (1 - before) * length, at[1]]]
        if name == "path":
            assert re.fullmatch(rf"M{NUMBER},{NUMBER}( {NUMBER},{NUMBER})+", element.get("d")), "a path of another form"
            points = [list(map(float, point.split(","))) for point in element.get("d")[1:].split(" ")]
        if "transform" in element.attrib:
            moved = re.fullmatch(rf"translate\(({NUMBER}),({NUMBER})\) rotate\(-90\)", element.get("transform"))
            assert moved, "a transform of another form"
            points = [list(map(float, moved.groups()))]
        for x, y in points:
            assert -1 <= x <= width + 1 and -1 <= y <= height + 1, f"<{name}> at {x},{y} of {width} x {height}"


def look_at_page(text):
    """All of it."""
    head, page = text.split("\n", 1)
    assert head == "<!DOCTYPE html>", f"it begins with {head}"
    assert '<meta charset="utf-8">' in text[:1024], "its coding is told too late"
    outside = re.sub(r"<svg.*?</svg>", "", page, flags=re.S)
    assert "/>" not in outside, "HTML has no <element/>"
    root = tree.fromstring(re.sub(r"<(meta [^<>]*)>", r"<\1/>", page))
    assert root.tag == "html" and root.get("lang"), "no language"
    look(root)
    assert [child.tag for child in root] == ["head", "body"], "not a head and a body"
    assert len(root.findall("head/title")) == 1 and len(root.findall("body/h1")) == 1, "not one title and one <h1>"
    for table in root.iter("table"):
        assert {len(row) for row in table} == {len(table[0])}, "rows of unequal length"
        assert {cell.tag for cell in table[0]} == {"th"}, "a table without a heading"
    for svg in root.iter(f"{{{SVG}}}svg"):
        look_at_picture(svg)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids)), "an id twice"
    for element in root.iter():
        target = element.get("href", "")
        assert not target or (target[0] == "#" and target[1:] in ids), f"nothing is at {target}"
        style = f".{element.get('class', 'wide')}{{"
        assert style in root.find("head/style").text, f"no style is {style}"


try:
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        look_at_page(file.read())
except (AssertionError, UnicodeDecodeError, tree.ParseError) as error:
    sys.exit(f"{sys.argv[1]}: {error}")
