"""compare_peer.py - what the scripts that hold us against PyTorch share: running our side, files that both read, verdicts."""
import json
import os
import struct
import subprocess
import sys

import numpy as np
import torch

failures = []
TRANSFORM = 64  # plugin.h: what a transform may be off by, in errors of a sum without one


def math_add(parser):
    """--math, of scripts that compare under strict and shortly again under the default, in which devices may transform."""
    parser.add_argument("--math", choices=("strict", "f32"), help="one of both alone: all comparisons under strict, or those that "
                        "show transforms under f32, our default, with bounds %d times as wide" % TRANSFORM)


def passes(args):
    """Each math that is asked for, which `args` has meanwhile."""
    wanted = args.math
    for args.math in [wanted] if wanted else ["strict", "f32"]:
        print(f"math {args.math}")
        yield args.math
    args.math = wanted


def bound(args, strict):
    """Of what is computed in f32, where a device may have transformed it."""
    return strict * (TRANSFORM if args.math == "f32" else 1)


def verdict(what, value, bound):
    good = value <= bound
    print(f"  {what:<52} {value:10.3g}  (at most {bound:g}) {'' if good else '  <-- NOT WITHIN'}", flush=True)
    if not good:
        failures.append(what)


def end():
    """The exit status."""
    print("all within their bounds" if not failures else f"{len(failures)} outside their bounds")
    return 1 if failures else 0


def relative(ours, theirs):
    return float(torch.linalg.vector_norm(ours - theirs) / max(float(torch.linalg.vector_norm(theirs)), 1e-300))


def write_idx(path, array):
    with open(path, "wb") as f:
        f.write(struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(">" + "I" * array.ndim, *array.shape))
        f.write(array.astype(np.uint8).tobytes())


def write_images(folder, images, labels):
    """For --data: the same for training and for testing."""
    for part in ("train", "t10k"):
        write_idx(os.path.join(folder, f"{part}-images-idx{images.ndim}-ubyte".replace("idx4", "idx3")), images)
        write_idx(os.path.join(folder, f"{part}-labels-idx1-ubyte"), labels)
    return ["--data", folder]


def run_steps(bench, name, steps, options):
    """What `train` tells of each step, batches in the rows' order."""
    command = [bench, "train", name, "--steps", str(steps), "--log-every", "1", "-o", "jsonl", "--shuffle", "no",
               "--seed", "1", "-q", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(command)}\n{done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [line for line in lines if "loss" in line]
