#!/usr/bin/env python3
"""check-gpu-peer.py - one table of scripts/check-gpu: cekernels-bench and PyTorch measured in turn, row by row.

    check-gpu-peer.py gemm|conv|step --bench FILE --device cuda:0 [--side cuda|cpu] [--seconds N] [--quick]

A round measures all rows of one precision with us, then the same rows with PyTorch; medians over the rounds count, and
a ratio above 1 means that we are faster. Both sides get the same permission: f32 is --math=f32 and allow_tf32 off, tf32
is --math=tf32 and allow_tf32 on, bf16 and f16 sum in f32. PyTorch may have its faster memory layout, fused Adam,
cudnn.benchmark; its operands lie on the device already. Times are those of the clock, with a synchronisation behind
some milliseconds of work. The last line sums up. Exit status: 0 what could be measured was, 1 a value of ours was wrong
or something broke, 77 nothing to compare.
"""
import argparse
import contextlib
import json
import math
import re
import signal
import statistics
import subprocess
import sys
import time

import torch

ROUNDS = 5


def synchronize(side):
    if side == "cuda":
        torch.cuda.synchronize()


def clock(side, run, repeats):
    synchronize(side)
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    synchronize(side)
    return (time.perf_counter() - start) / repeats


def measure(side, run):
    """Seconds of one run: warmed up, over at least 10 ms, the median of five."""
    once = [clock(side, run, 1) for _ in range(3)][-1]
    repeats = max(1, min(10000, math.ceil(0.01 / max(once, 1e-9))))
    return statistics.median(clock(side, run, repeats) for _ in range(5))


def bench(args, table, *words):
    """The rows that a command of cekernels-bench prints; None where no device can do it."""
    command = [args.bench, *words, "-o", "jsonl", "-q", "-d", args.device]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == 3:
        table.skip(f"{' '.join(words)}: {done.stderr.strip()}")
        return None
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexit status {done.returncode}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def permit(tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


class Table:
    """Rows of medians, printed as they come."""

    def __init__(self, args, what):
        self.args, self.what, self.ratios, self.skipped = args, what, [], 0
        self.end = time.monotonic() + args.seconds
        print(f"{'row':<42} {'type':<5} {'ours ms':>10} {'theirs ms':>10} {'ratio':>6}  {'TFLOP/s':>8} {'theirs':>8}  "
              "ours, theirs")

    def row(self, name, kind, ours, theirs, work=0.0, note=""):
        a, b = statistics.median(ours), statistics.median(theirs)
        self.ratios.append(b / a)
        rates = f"{work / a / 1e12:8.2f} {work / b / 1e12:8.2f}" if work else f"{'':8} {'':8}"
        print(f"{name:<42} {kind:<5} {a * 1e3:10.4f} {b * 1e3:10.4f} {b / a:6.2f}  {rates}  {note}", flush=True)

    def skip(self, what):
        self.skipped += 1
        print(f"skipped: {what}", flush=True)

    def rounds(self):
        """At least one, at most ROUNDS, no further one beyond the time given."""
        for number in range(2 if self.args.quick else ROUNDS):
            if number == 0 or time.monotonic() < self.end:
                yield number

    def late(self):
        """Rows that are left out for want of time are said."""
        late = time.monotonic() >= self.end and bool(self.ratios)
        if late:
            self.skip("the rows that are left, for want of time")
        return late

    def conclude(self, aim):
        if not self.ratios:
            print("no row could be measured")
            return 77
        mean = math.exp(statistics.fmean(map(math.log, self.ratios)))
        below = sum(r < aim for r in self.ratios)
        print(f"{self.what}: {mean:.2f} x PyTorch {torch.__version__} (geometric mean of {len(self.ratios)} rows; "
              f"{below} below the aim of {aim}{', some skipped' if self.skipped else ''})")
        return 0


# ---- products ------------------------------------------------------------------------------------------------------

TYPES = {"f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
# The linear layers of mnist-cnn, batch 64: forward, both gradients, the last layer; its second convolution as one.
LAYERS = ["64x1024x25088:tb", "64x25088x1024", "1024x25088x64:ta", "64x10x1024:tb", "50176x128x576"]


def product(side, shape, dtype):
    m, n, k = map(int, shape.split(":")[0].split("x"))
    make = dict(device=side, dtype=dtype)
    a = torch.randn(k, m, **make).t() if ":ta" in shape else torch.randn(m, k, **make)
    b = torch.randn(n, k, **make).t() if ":tb" in shape else torch.randn(k, n, **make)
    c = torch.empty(m, n, **make)
    return lambda: torch.mm(a, b, out=c)


def gemm(args):
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    sides = [256, 512] if args.side == "cpu" else [1024, 2048, 4096, 8192]
    shapes = [f"{n}x{n}x{n}" for n in sides] + (LAYERS[3:4] if args.side == "cpu" else LAYERS)
    table = Table(args, "products")
    for kind, dtype in TYPES.items():
        if table.late():
            break
        permit(kind == "tf32")
        words = ["--math=tf32"] if kind == "tf32" else ["-t", kind] if kind != "f32" else ["--math=f32"]
        ours, theirs, algorithm = {s: [] for s in shapes}, {s: [] for s in shapes}, {}
        for _ in table.rounds():
            rows = bench(args, table, "gemm", "-s", ",".join(shapes), "-r", "5", *words)
            if rows is None:
                break
            for row in (r for r in rows if "median_ns" in r):
                ours[row["shape"]].append(row["median_ns"] * 1e-9)
                algorithm[row["shape"]] = row["algorithm"]
            for shape in shapes:
                theirs[shape].append(measure(args.side, product(args.side, shape, dtype)))
        for shape in (s for s in shapes if ours[s]):
            m, n, k = map(int, shape.split(":")[0].split("x"))
            table.row(shape, kind, ours[shape], theirs[shape], 2.0 * m * n * k, algorithm[shape])
    return table.conclude(1.0)


# ---- convolutions --------------------------------------------------------------------------------------------------

LAYOUTS = {"NHWC": torch.channels_last, "NCHW": torch.contiguous_format}
# Of ResNet-50, without bias: the stem, the four stages, a widening and a striding projection.
RESNET = ["ic64ih56oc64oh56kh3ph1", "ic128ih28oc128oh28kh3ph1", "ic64ih56oc256oh56kh1ph0", "ic256ih14oc256oh14kh3ph1",
          "ic512ih7oc512oh7kh3ph1", "ic3ih224oc64oh112kh7sh2ph3", "ic256ih56oc512oh28kh1sh2ph0"]
PASSES = ["forward", "data", "weights"]


def faster(times):
    """The layout whose median is the smallest."""
    return min(times, key=lambda name: statistics.median(times[name]))


def convolution(side, shape, direction, layout, dtype):
    """The run of one direction, and its floating-point operations."""
    p = {"sh": 1, **{word: int(number) for word, number in re.findall(r"([a-z]+)(\d+)", shape)}}
    x = torch.randn(p["mb"], p["ic"], p["ih"], p["ih"], device=side, dtype=dtype).to(memory_format=layout)
    w = torch.randn(p["oc"], p["ic"], p["kh"], p["kh"], device=side, dtype=dtype).to(memory_format=layout)
    stride, padding = [p["sh"]] * 2, [p["ph"]] * 2
    y = torch.nn.functional.conv2d(x, w, None, stride, padding)
    work = 2.0 * y.numel() * p["ic"] * p["kh"] ** 2
    if direction == "forward":
        return (lambda: torch.nn.functional.conv2d(x, w, None, stride, padding)), work
    mask = [direction == "data", direction == "weights", False]
    dy = torch.randn_like(y)
    return (lambda: torch.ops.aten.convolution_backward(
        dy, x, w, None, stride, padding, [1, 1], False, [0, 0], 1, mask)), work


def conv(args):
    torch.backends.cudnn.benchmark = True
    layers = RESNET[:1] if args.side == "cpu" else RESNET[:4] if args.quick else RESNET
    shapes = [f"mb{4 if args.side == 'cpu' else 32}{layer}" for layer in layers]
    table = Table(args, "convolutions")
    for kind in ["f32", "tf32", "bf16"]:
        permit(kind == "tf32")
        words = ["-t", kind] if kind == "bf16" else [f"--math={kind}"]
        for direction in PASSES:
            if table.late():
                return table.conclude(1.0)
            ours, algorithm = {s: [] for s in shapes}, {}
            theirs = {s: {layout: [] for layout in LAYOUTS} for s in shapes}
            work = {}
            for _ in table.rounds():
                rows = bench(args, table, "conv", "-s", ",".join(shapes), "--pass", direction, "-r", "5", *words)
                if rows is None:
                    break
                for row in (r for r in rows if "median_ns" in r):
                    ours[row["shape"]].append(row["median_ns"] * 1e-9)
                    algorithm[row["shape"]] = row["algorithm"]
                for shape in shapes:
                    for name, layout in LAYOUTS.items():
                        run, work[shape] = convolution(args.side, shape, direction, layout, TYPES[kind])
                        theirs[shape][name].append(measure(args.side, run))
            for shape in (s for s in shapes if ours[s]):
                best = faster(theirs[shape])
                table.row(f"{shape} {direction}", kind, ours[shape], theirs[shape][best], work[shape],
                          f"{algorithm[shape]}, {best}")
    return table.conclude(1.0)


# ---- a step of training --------------------------------------------------------------------------------------------


class Trained:
    """mnist-cnn, its loss and Adam, on one batch that stays on the device."""

    def __init__(self, side, batch, layout):
        n = torch.nn
        torch.manual_seed(0)
        self.model = n.Sequential(
            n.Conv2d(1, 64, 3, padding=1), n.ReLU(), n.Conv2d(64, 128, 3, padding=1), n.ReLU(), n.MaxPool2d(2),
            n.Flatten(), n.Linear(25088, 1024), n.ReLU(), n.Dropout(0.5), n.Linear(1024, 10)).to(side, memory_format=layout)
        self.loss = n.CrossEntropyLoss()
        flags = dict(fused=True, capturable=True) if side == "cuda" else dict(fused=True)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.001, **flags)
        self.x = torch.randn(batch, 1, 28, 28, device=side).to(memory_format=layout)
        self.y = torch.randint(0, 10, (batch,), device=side)

    def forward(self):
        return self.loss(self.model(self.x), self.y)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        value = self.forward()
        value.backward()
        self.optimizer.step()
        return value


def eager(side, batch, layout):
    return Trained(side, batch, layout).step


def graphed(side, batch, layout):
    """The whole step as one CUDA graph."""
    state = Trained(side, batch, layout)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            state.step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    state.optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        value = state.step()

    def run():
        graph.replay()
        return value
    return run


def compiled(side, batch, layout):
    state = Trained(side, batch, layout)
    state.forward = torch.compile(state.forward, mode="reduce-overhead")
    for _ in range(3):
        state.step().item()
    return state.step


@contextlib.contextmanager
def alarm(seconds):
    """A compiler gets no more than the time that is left."""
    def ring(number, frame):
        raise TimeoutError(f"not ready after {seconds:.0f} s")
    signal.signal(signal.SIGALRM, ring)
    signal.alarm(max(1, int(seconds)))
    try:
        yield
    finally:
        signal.alarm(0)


def steps_timed(run, count):
    """Each with its loss read before the next begins, as ours with --ahead=1."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run().item()
        times.append(time.perf_counter() - start)
    return times


def step(args):
    torch.backends.cudnn.benchmark = True
    permit(False)
    count, warmup = (8, 2) if args.side == "cpu" else (100, 20)
    table = Table(args, "steps of mnist-cnn")
    for batch in [64] if args.side == "cpu" or args.quick else [64, 256, 1024]:
        for name, build in {"eager": eager, "CUDA graph": graphed, "torch.compile": compiled}.items():
            if table.late():
                return table.conclude(1.3)
            try:
                if args.side == "cpu" and build is graphed:
                    raise RuntimeError("CUDA graphs are of GPUs")
                with alarm(table.end - time.monotonic()):
                    runs = {layout: build(args.side, batch, LAYOUTS[layout]) for layout in LAYOUTS}
            except Exception as error:  # whatever a compiler may lack is a row less, not a failure of ours
                why = (str(error).strip().splitlines() or [""])[0]
                table.skip(f"{name}, batch {batch}: {type(error).__name__}: {why}"[:160])
                continue
            ours, theirs = [], {layout: [] for layout in LAYOUTS}
            for _ in table.rounds():
                rows = bench(args, table, "train", "mnist-cnn", "--steps", str(count + warmup), "--log-every", "1",
                             "--ahead=1", "--batch", str(batch))
                if rows is None:
                    return table.conclude(1.3)
                ours += [r["seconds"] for r in rows if "loss" in r][warmup:]
                for layout, run in runs.items():
                    theirs[layout] += steps_timed(run, count + warmup)[warmup:]
            best = faster(theirs)
            table.row(f"batch {batch}, {name}", "f32", ours, theirs[best], note=best)
            del runs, run
    return table.conclude(1.3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=["gemm", "conv", "step"])
    parser.add_argument("--bench", required=True)
    parser.add_argument("--device", default="cuda:0", help="ours")
    parser.add_argument("--side", choices=["cuda", "cpu"], default="cuda", help="PyTorch's")
    parser.add_argument("--seconds", type=float, default=600, help="no row begins after them")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.side == "cuda" and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} has no CUDA device")
        return 77
    where = torch.cuda.get_device_name() if args.side == "cuda" else "the processor"
    print(f"{args.device}; PyTorch {torch.__version__} on {where}")
    with torch.enable_grad() if args.table == "step" else torch.no_grad():
        return {"gemm": gemm, "conv": conv, "step": step}[args.table](args)


if __name__ == "__main__":
    sys.exit(main())
