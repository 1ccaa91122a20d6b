# onnx.sh - ONNX's own cases of the operators that are computed when a file is read, their inputs as weights: what we compute
# equals what ONNX says, and nothing but types that are not read is refused. Skipped without a Python that has onnx ($PYTHON,
# or python3).
set -u
"${PYTHON:-python3}" -c 'import onnx' 2>/dev/null || { echo "no Python with onnx (PYTHON=...)"; exit 77; }
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

"${PYTHON:-python3}" -W ignore - "$top_builddir/tests/onnx_folded" "$scratch" <<'EOF'
import subprocess, sys
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

OPERATORS = set("""Constant Shape ConstantOfShape Identity Gather Concat Slice Unsqueeze Squeeze Reshape Expand Cast Where Range
    Add Sub Mul Div Mod Min Max Neg Sqrt Equal Less LessOrEqual Greater GreaterOrEqual And Or Not Trilu CastLike""".split())
LEAST = 135  # cases that have to be equal: as many as with onnx 1.23, less a few

cases = {}
for case in load_model_tests(kind="node"):
    model = case.model
    if model is None or len(model.graph.node) != 1 or model.graph.node[0].op_type not in OPERATORS or not case.data_sets:
        continue
    inputs, outputs = case.data_sets[0]
    try:
        tensors = [t if isinstance(t, onnx.TensorProto) else numpy_helper.from_array(np.asarray(t)) for t in inputs]
        output = outputs[0] if not isinstance(outputs[0], onnx.TensorProto) else numpy_helper.to_array(outputs[0])
    except Exception:
        continue  # sequences and types that NumPy does not have
    for value, tensor in zip(model.graph.input, tensors):
        tensor.name = value.name
    model.graph.initializer.extend(tensors)
    operators = model.opset_import[0]  # And, Or and Not have cases of before 13, and have been the same ever since
    version = max(13, operators.version)
    if onnx.defs.get_schema(model.graph.node[0].op_type, version).since_version <= operators.version:
        operators.version = version
    path = f"{sys.argv[2]}/{case.name}.onnx"
    onnx.save(model, path)
    cases[path] = np.asarray(output)

equal = unknown = refused = 0
wrong = []
run = subprocess.run([sys.argv[1], *cases], capture_output=True, text=True)
for line in run.stdout.splitlines():
    path, answer = line.split("|", 1)
    if answer == "not known":
        unknown += 1
    elif answer.startswith("refused"):
        refused += 1
        if not answer.endswith("of ONNX's, is not read"):
            wrong.append(line)
    else:
        _, sizes, values = answer.split("|")
        values = np.array([float(v) for v in values.split()])
        expected = cases[path].astype(np.float64)
        if tuple(int(s) for s in sizes.split()) == expected.shape and np.allclose(values, expected.ravel(), 1e-6, 0, True):
            equal += 1
        else:
            wrong.append(line)
print(f"{len(cases)} cases: {equal} equal, {unknown} not known, {refused} of types that are not read, {len(wrong)} wrong")
print("\n".join(wrong))
sys.exit(run.returncode != 0 or bool(wrong) or equal < LEAST or equal + unknown + refused != len(cases))
EOF
