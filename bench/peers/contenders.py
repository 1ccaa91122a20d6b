"""contenders - who is compared with whom on this machine: runners, their environments, their ways to do a problem.

A peer counts at its best: how its threads wait (asleep, or turning round a loop), for which processor its kernels were
chosen, the layout of images, eager or compiled. Each of these is a contender; the report tells which was the best.
"""
import glob
import os
import shlex
import sys

from turns import Contender, Runner

HERE = os.path.dirname(os.path.abspath(__file__))
PEAK = "peak f32 1000000000"  # of fma: so many operations are a call
WAITING = {"asleep": {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"},
           "spinning": {"OMP_WAIT_POLICY": "active", "KMP_BLOCKTIME": "infinite"}}
# As the tutorials write it: eager, planes of channels, Adam without options, the loss asked for at each step.
TUTORIAL = "eager+nchw+adam+item"
TRAINING = [TUTORIAL, "eager+nhwc+adam", "eager+nchw+fused", "eager+nhwc+fused", "compile+nchw+fused",
            "compile+nhwc+fused"]
INFERENCE = ["eager+nchw", "eager+nhwc", "compile+nchw", "compile+nhwc"]
FLAT = ("mlp", "lstm", "gpt")  # no images, no layouts


def openblas_cores():
    """The kernels of OpenBLAS that this processor runs. By itself it knows no newer ones than itself, and may fall
    back to slow ones."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    except OSError:
        flags = set()
    cores = {"own choice": None}
    for core, flag in (("Haswell", "avx2"), ("Zen", "avx2"), ("SkylakeX", "avx512dq"), ("Cooperlake", "avx512_bf16"),
                       ("SapphireRapids", "amx_bf16")):
        if flag in flags:
            cores[core] = core
    return cores


def mkl_library(python, given):
    """libmkl_rt of PyPI's package beside that Python, or what was given; a name to fail with where there is none."""
    if given:
        return given
    found = sorted(glob.glob(os.path.join(os.path.dirname(os.path.dirname(python)), "lib", "libmkl_rt.so*")))
    return found[-1] if found else "libmkl_rt.so"


class Field:
    """Everybody: the runners, and for a problem the contenders (ours first) and the peers that they belong to."""

    def __init__(self, options, log):
        self.options, self.log = options, log
        threads = str(options.threads)
        self.env = {name: threads for name in (
            "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "CEKERNELS_CPU_THREADS")}
        self.env |= {"MKL_DYNAMIC": "FALSE", "OMP_DYNAMIC": "FALSE", "PYTHONDONTWRITEBYTECODE": "1",
                     "CEKERNELS_PLUGINS": "=" + options.device.split(":")[0],
                     "PEERS_DIR": os.path.abspath(options.output),
                     "CEKERNELS_PLUGIN_PATH": os.path.abspath(os.path.join(options.build, "plugins", ".libs"))}
        self.runners = {}
        if options.runner:
            for given in options.runner:
                name, _, command = given.partition("=")
                self.add(name, shlex.split(command))
        else:
            self.add_all()

    def add(self, name, command, **env):
        self.runners[name] = Runner(name, command, self.env | env, self.log, self.options.patience, self.options.cpus)

    def add_waiting(self, name, command, **env):
        """In both ways of waiting; a single thread waits for nobody."""
        for way, more in WAITING.items() if self.options.threads > 1 else [("", {})]:
            self.add(f"{name}, {way}" if way else name, command, **env, **more)

    def add_all(self):
        built, python = os.path.join(os.path.abspath(self.options.build), "bench", "peers"), self.options.python
        self.add("ours", [os.path.join(built, "ours"), self.options.device])
        self.add("peak", [os.path.join(built, "fma"), str(self.options.threads)])
        blas = os.path.join(built, "blas")
        for name, core in openblas_cores().items():
            self.add(f"OpenBLAS, {name}", [blas, self.options.openblas],
                     **({"OPENBLAS_CORETYPE": core} if core else {}))
        self.add_waiting("BLIS", [blas, self.options.blis])
        mkl = mkl_library(python, self.options.mkl)
        self.add_waiting("MKL", [blas, mkl], LD_LIBRARY_PATH=":".join(filter(None, [os.path.dirname(mkl), os.environ.get("LD_LIBRARY_PATH")])))
        self.add_waiting("oneDNN", [blas, self.options.onednn])
        self.add_waiting("PyTorch", [python, os.path.join(HERE, "torch_runner.py"), str(self.options.threads)],
                         TORCHINDUCTOR_COMPILE_THREADS="1", TORCHINDUCTOR_FREEZING="1")
        self.add("ONNX Runtime", [python, os.path.join(HERE, "onnxruntime_runner.py"), str(self.options.threads)])

    def of(self, name):
        return [r for n, r in self.runners.items() if n == name or n.startswith(name + ", ")]

    def enter(self, problem):
        """Contenders, ours first, and peers: names with the contenders that they are the best of."""
        slots = {}
        found = {}

        def contender(runner, variant="-", instead=None):
            key = runner.name, variant
            if key not in found:
                slot = slots[runner] = slots.get(runner, -1) + 1
                found[key] = Contender(runner, variant, slot, instead)
            return found[key]

        ours = contender(self.runners["ours"])
        peers = {}
        if self.options.runner:
            for name, r in self.runners.items():
                if name != "ours":
                    peers.setdefault(name.split(", ")[0], []).append(contender(r))
            return [ours, *(c for c in found.values() if c is not ours)], peers

        def peer(name, runners, variants=("-",)):
            peers[name] = [contender(r, v) for r in self.of(runners) for v in variants]

        def ways(variants):
            return [v for v in variants if problem.words[2] not in FLAT or "nhwc" not in v]

        if problem.sort in ("gemm", "conv"):
            contender(self.runners["peak"], instead=PEAK)
        if problem.words[1] != "f32":
            peer("ours in f32", "ours", ["f32"])
        elif problem.sort == "gemm":
            for name in ("OpenBLAS", "BLIS", "MKL"):
                peer(name, name)
            peer("oneDNN", "oneDNN", ["sgemm", "matmul"])
        if problem.sort == "gemm":
            peer("PyTorch", "PyTorch")
        elif problem.sort == "conv":
            peer("PyTorch", "PyTorch", ["nchw", "nhwc"])
        elif problem.sort == "train":
            peer("PyTorch as in tutorials", "PyTorch", [TUTORIAL])
            peer("PyTorch", "PyTorch", ways(TRAINING))
        elif problem.sort == "infer":
            peer("PyTorch", "PyTorch", ways(INFERENCE))
            peer("ONNX Runtime", "ONNX Runtime", ["spinning", "asleep"] if self.options.threads > 1 else ["asleep"])
        return list(found.values()), peers

    def is_there(self, contender):
        """Whether the runner of a contender, by its name, had begun."""
        names = [name for name, runner in self.runners.items() if runner.about]
        return any(contender == name or contender.startswith(name + ", ") for name in names)

    def end(self):
        for runner in self.runners.values():
            runner.end()


def default_python():
    return os.environ.get("PYTHON", sys.executable)
