"""runner - a contender's side of the lines that `compare` exchanges with it (README.md), for runners in Python.

Owns standard input and output. A way of doing a problem is a function without arguments that does it once.
"""
import sys
import time
import traceback


class Cannot(Exception):
    """A problem or a variant that is not done here."""


def prepared(prepare, variant, problem):
    """The function, which has been called once, and the answer. What a library raises is told like what it lacks: its
    other ways may do, and what was raised in full goes to standard error."""
    try:
        once = prepare(variant, problem)
        once()
        return once, "ok"
    except Cannot as why:
        return None, f"cannot {why}"
    except Exception as error:  # whatever it is
        traceback.print_exc()
        return None, "cannot " + " ".join(f"{type(error).__name__}: {error}".split())[:200]


def serve(ready, prepare, drop=lambda: None):
    """prepare(variant, words) gives the function of a problem, or raises Cannot. drop() follows when all are gone."""
    print("ready", ready, flush=True)
    slots = {}
    for line in sys.stdin:
        request, *words = line.split()
        if request == "prepare" and len(words) >= 3:
            slot, variant, *problem = words
            slots.pop(slot, None)
            slots[slot], answer = prepared(prepare, variant, problem)
        elif request == "run" and len(words) == 2 and slots.get(words[0]):
            once, times = slots[words[0]], range(int(words[1]))
            start = time.perf_counter()
            for _ in times:
                once()
            answer = f"took {time.perf_counter() - start:.9f}"
        elif request == "drop":
            slots.clear()
            drop()
            answer = "ok"
        else:
            answer = f"wrong no request: {line.strip()}"
        print(answer, flush=True)


def absent(why):
    print("absent", why, flush=True)
    sys.exit(0)
