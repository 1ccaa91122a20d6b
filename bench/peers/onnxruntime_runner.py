"""onnxruntime_runner - ONNX Runtime as a contender: predictions of the models that ours has exported to $PEERS_DIR.

    onnxruntime_runner.py THREADS

Variants: spinning, asleep: how its threads wait.
"""
import os
import sys

import runner

try:
    import numpy
    import onnxruntime
except ImportError as error:
    runner.absent(f"{sys.executable}: {error}")


def prepare(variant, words):
    if words[:2] != ["infer", "f32"]:
        raise runner.Cannot("infer f32 alone")
    path = os.path.join(os.environ["PEERS_DIR"], words[2] + ".onnx")
    if not os.path.exists(path):
        raise runner.Cannot(f"{path} is not there")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(sys.argv[1])
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if variant == "spinning" else "0")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    wanted = session.get_inputs()[0]
    shape = [int(words[3]), *wanted.shape[1:]]
    random = numpy.random.default_rng(1)
    x = random.random(shape, dtype=numpy.float32) if wanted.type == "tensor(float)" else random.integers(0, 256, shape)
    x = {wanted.name: x.astype({"tensor(int32)": numpy.int32}.get(wanted.type, x.dtype))}
    return lambda: session.run(None, x)


runner.serve(f"ONNX Runtime {onnxruntime.__version__}", prepare)
