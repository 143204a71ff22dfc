"""What the tensors of a point hold: the value sets that a kernel's speed must not depend on.

  normal         random normal values; normal*S: with queries times S
  sink           every query's logits with the first four keys lie about 10 above its others
  rising         each tile of 128 keys has a largest logit 1 above that of the tile before; falling: 1 below
  FILE           q, k, v of a safetensors file, [heads, tokens, head_dim]; heads are repeated until there are enough
"""

from pathlib import Path

import safetensors_io

SINK_KEYS, SINK_LOGIT = 4, 14.0  # the largest of 16384 random logits is about 4
TILE_KEYS = 128
COMMON = 8.0  # how far queries lie along one direction; their other parts have a length of sqrt(d)
NAMES = ("normal", "sink", "rising", "falling")


def is_file(name):
    return name.endswith(".safetensors")


def tokens_of(name, n):
    """How many tokens a point on these values has, if it asks for n."""
    if not is_file(name):
        return n
    tensors, _ = safetensors_io.read(name)
    return tensors["k"].shape[1]


def query_factor(name):
    """S of normal*S; None: no such set."""
    kind, _, factor = name.partition("*")
    if kind != "normal":
        return None
    try:
        return float(factor or 1)
    except ValueError:
        return None


def check(name):
    """Raises ValueError where no such values exist."""
    if is_file(name):
        if not Path(name).is_file():
            raise ValueError(f"no such file: {name}")
    elif name not in NAMES and query_factor(name) is None:
        raise ValueError(f"expected {', '.join(NAMES)}, normal*S or FILE.safetensors, got {name}")


def make(torch, point):
    """q, k, v of a point on the GPU: [batch, heads, tokens, d]."""
    if is_file(point.values):
        return read(torch, point)
    torch.manual_seed(1)
    q, k, v = (torch.randn((point.batch, point.heads, tokens, point.d), device="cuda", dtype=torch.float32)
               for tokens in (point.queries, point.n, point.n))
    if point.values in ("sink", "rising", "falling"):
        direction = torch.nn.functional.normalize(torch.randn(point.d, device="cuda"), dim=0)
        q += COMMON * direction
        per_logit = direction * point.d ** 0.5 / COMMON  # what a key has to be moved by for one more
        if point.values == "sink":
            k[:, :, :SINK_KEYS] = SINK_LOGIT * per_logit
        else:
            tiles = torch.arange(point.n, device="cuda") // TILE_KEYS
            steps = tiles if point.values == "rising" else tiles.flip(0)
            k += steps[:, None] * per_logit
    else:
        q *= query_factor(point.values)
    return tuple(tensor.to(getattr(torch, TORCH_TYPES[point.dtype])) for tensor in (q, k, v))


TORCH_TYPES = {"bf16": "bfloat16", "f16": "float16"}


def read(torch, point):
    tensors, _ = safetensors_io.read(point.values)

    def load(name, tokens):
        stored = tensors[name]
        if stored.dtype != "BF16" or stored.shape[2] != point.d:
            raise ValueError(f"{point.values}: {name} is {stored.dtype} {stored.shape}, expected BF16 of head dim {point.d}")
        values = torch.frombuffer(bytearray(stored.data), dtype=torch.bfloat16).view(stored.shape).cuda()
        # Heads of a KV head stay beside each other; then whole groups are repeated.
        values = values.repeat_interleave(tensors["q"].shape[0] // stored.shape[0], dim=0)[:, -tokens:]
        heads = torch.arange(point.batch * point.heads, device="cuda") % values.shape[0]
        shape = (point.batch, point.heads, tokens, point.d)
        return values[heads].view(shape).to(getattr(torch, TORCH_TYPES[point.dtype])).contiguous()

    return load("q", point.queries), load("k", point.n), load("v", point.n)
