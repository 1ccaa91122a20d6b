#!/usr/bin/env python3
"""check-gpu-together.py - PyTorch and cekernels in one process, on one device; then a fault of PyTorch's on it.

    check-gpu-together.py --library libcekernels.so [--device cuda:0] [--side cuda|cpu] [--rounds N]

Both multiply the same matrices, in turn and then from two threads at once, and each is held against products in double:
nothing of one may change what the other computes, nor its device. Then PyTorch runs a kernel off its memory, which ends
the context that both share: cekernels must answer DEVICE_LOST from then on, at once, and give everything back. On a
processor, where nothing can be provoked, that is left out. The last line sums up. Exit status: 0 all was so, 1 not.
"""
import argparse
import ctypes
import sys
import threading
import time

import torch

F32, DEVICE_LOST, SIDE, BOUND = 1, 5, 192, 1e-5  # of sums of 192 products of numbers below 1, relative to their size
WAIT = 10  # seconds: an answer that takes longer is none


class Library:
    """The few calls of cekernels.h that are needed."""

    def __init__(self, path, device):
        self.c = ctypes.CDLL(path)
        self.c.cek_error_text.restype = ctypes.c_char_p
        self.engine, self.device = ctypes.c_void_p(), ctypes.c_void_p()
        self.must(self.c.cek_engine_create(None, ctypes.byref(self.engine)))
        self.must(self.c.cek_engine_find(self.engine, device.encode(), ctypes.byref(self.device)))

    def must(self, status):
        if status:
            sys.exit(f"cekernels: status {status}: {self.c.cek_error_text().decode()}")

    def tensor(self, host):
        out = ctypes.c_void_p()
        shape = (ctypes.c_int64 * host.dim())(*host.shape)
        self.must(self.c.cek_tensor_from_host(self.device, F32, host.dim(), shape, ctypes.c_void_p(host.data_ptr()), ctypes.byref(out)))
        return out

    def product(self, a, b, to):
        """a @ b into the host's `to`; the first status that is not 0."""
        out = ctypes.c_void_p()
        status = self.c.cek_matmul(a, b, ctypes.byref(out))
        if not status:
            status = self.c.cek_tensor_read(out, ctypes.c_void_p(to.data_ptr()), ctypes.c_uint64(to.numel() * 4))
        self.c.cek_tensor_free(out)
        return status

    def close(self, tensors):
        for tensor in tensors:
            self.c.cek_tensor_free(tensor)
        self.c.cek_engine_free(self.engine)


def apart(got, want):
    return ((got.double().cpu() - want).abs().max() / want.abs().max()).item()


def compared(what, worst):
    print(f"{what}: at most {worst:.2e} from products in double")
    if not worst <= BOUND:
        sys.exit(f"{what}: {worst:.2e} is more than {BOUND:.0e}")


def lost(ours, a, b, to):
    """PyTorch's index is beyond its table: the kernel ends the context."""
    try:
        torch.zeros(4, device="cuda")[torch.tensor([1 << 20], device="cuda")].sum().item()
        sys.exit("PyTorch took an index beyond its table: nothing was provoked")
    except RuntimeError as error:
        print(f"PyTorch: {str(error).splitlines()[0]}")
    for call in ("the first", "the next"):
        start = time.monotonic()
        status = ours.product(a, b, to)
        text = ours.c.cek_error_text().decode()
        if status != DEVICE_LOST or time.monotonic() - start > WAIT:
            sys.exit(f"behind the fault {call} call answers {status} after {time.monotonic() - start:.1f} s: {text}")
    print(f"cekernels: {text}")
    return ", its fault is our DEVICE_LOST"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="path", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--side", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--rounds", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    x, y = torch.rand(SIDE, SIDE) - 0.5, torch.rand(SIDE, SIDE) - 0.5
    want, to = x.double() @ y.double(), torch.empty(SIDE, SIDE)
    theirs = [side.to(args.side) for side in (x, y)]
    ours = Library(args.path, args.device)
    a, b = ours.tensor(x), ours.tensor(y)

    worst, done = [0.0, 0.0], [0]

    def we(rounds):
        for _ in range(rounds):
            to.zero_()
            ours.must(ours.product(a, b, to))
            worst[0] = max(worst[0], apart(to, want))

    def they(rounds):
        for _ in range(rounds):
            worst[1] = max(worst[1], apart(theirs[0] @ theirs[1], want))
            done[0] += 1

    for _ in range(args.rounds):
        we(1)
        they(1)
    compared("cekernels in turn", worst[0])
    compared("PyTorch in turn", worst[1])
    thread = threading.Thread(target=they, args=(args.rounds,))
    thread.start()
    we(args.rounds)
    thread.join()
    if done[0] != 2 * args.rounds:
        sys.exit(f"PyTorch ended after {done[0]} of {2 * args.rounds} products")
    compared("cekernels beside", worst[0])
    compared("PyTorch beside", worst[1])
    told = lost(ours, a, b, to) if args.side == "cuda" else ", no fault to be had on a processor"
    ours.close([a, b])
    print(f"{args.rounds} products each in turn and at once in one process{told}")


if __name__ == "__main__":
    main()
