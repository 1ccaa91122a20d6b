# torch.sh - weights that PyTorch itself saved, however it laid them out, give the results that the same weights give as
# safetensors; what it saved beside state dicts is refused. Skipped without a Python that has torch ($PYTHON, or python3).
. "$top_srcdir/tests/cli/lib.sh"
"${PYTHON:-python3}" -c 'import torch' 2>/dev/null || { echo "no Python with torch (PYTHON=...)"; exit 77; }

"${PYTHON:-python3}" - "$scratch" <<'EOF' || exit 99
import collections, json, struct, sys
import torch

def path(name):
    return sys.argv[1] + "/" + name

torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
header, values = {}, b""
for name, tensor in state.items():
    data = tensor.numpy().tobytes()
    header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(values), len(values) + len(data)]}
    values += data
text = json.dumps(header).encode()
with open(path("plain.safetensors"), "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + values)

whole = torch.arange(100.0)  # a storage that is shared, larger than what is looked at, and looked at otherwise
whole[10:26] = state["0.weight"].t().reshape(-1)
parts = {**state, "0.weight": whole[10:26].view(2, 8).t()}
optimizer = torch.optim.Adam(net.parameters())
net(torch.ones(1, 2)).sum().backward()
optimizer.step()  # moments, which are tensors too
counted = collections.OrderedDict(parts)
counted["1.num_batches_tracked"] = torch.tensor(7)

torch.save(parts, path("state.pt"))
torch.save(counted, path("counted.pth"))
torch.save({"epoch": 3, "lr": 0.1, "model": parts, "optimizer": optimizer.state_dict()}, path("checkpoint.pt"))
torch.save({"module." + k: torch.nn.Parameter(v) for k, v in parts.items()}, path("parallel.pt"))
torch.save({k: v.double() for k, v in parts.items()}, path("double.pt"))
torch.save(net, path("network.pt"))
torch.save({"a": parts, "b": parts}, path("two.pt"))
torch.save(parts, path("protocol.pt"), pickle_protocol=4)
torch.save(parts, path("former.pt"), _use_new_zipfile_serialization=False)
torch.save([1, 2], path("list.pt"))
EOF

awk 'BEGIN { print "a,b,y"; for (i = 0; i < 60; i++) print i % 7 "," i % 5 "," i % 3 }' >"$scratch/t.csv"
model='linear:8 relu linear:1'
predict="predict --csv=$scratch/t.csv --target=y -d cpu --json"
results() { # without what differs from run to run
    sed -E 's/"[a-z_]*(seconds|per_second)[a-z_]*": *[^,}]*//g; s/"load": *"[^"]*"//' "$scratch/out"
}
run 0 $predict "$model" --load="$scratch/plain.safetensors"
results >"$scratch/expected"
for file in state.pt counted.pth checkpoint.pt parallel.pt double.pt; do
    run 0 $predict "$model" --load="$scratch/$file"
    results | cmp -s - "$scratch/expected" || wrong "$file: other results than with safetensors"
done
refused 5 'network.pt: its pickle wants torch.nn.modules.container.Sequential' $predict "$model" --load="$scratch/network.pt"
refused 5 "two.pt: both 'a' and 'b' hold tensors" $predict "$model" --load="$scratch/two.pt"
refused 5 'protocol.pt: pickle of protocol 4' $predict "$model" --load="$scratch/protocol.pt"
refused 5 'former.pt: the form in which torch.save wrote before' $predict "$model" --load="$scratch/former.pt"
refused 5 'list.pt: holds a list, not a state dict' $predict "$model" --load="$scratch/list.pt"
finish
