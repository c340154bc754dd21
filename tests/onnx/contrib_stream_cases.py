"""Cases of residual streams, routers, block-sparse attention and embedded words, for make_contrib_cases.py."""
import numpy as np

f32 = np.float32


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(f32)


def streams():
    shapes = {"grouped": ((2, 3, 4, 6), {}), "flat": ((2, 3, 24), {"num_branches": 4})}
    for name, (shape, more) in shapes.items():
        for kind, gates in (("stream", (2, 3, 4)), ("feature", (2, 3, 4, 6))):
            yield dict(name=f"pre_mix_{name}_{kind}", op="HyperConnectionPreMix", reduction_scale=0.5, **more,
                       inputs=lambda rng, shape=shape, gates=gates: {"x": floats(rng, *shape), "gates": floats(rng, *gates)})
            yield dict(name=f"post_mix_{name}_{kind}", op="HyperConnectionPostMix", **more,
                       inputs=lambda rng, shape=shape, gates=gates: {
                           "x": floats(rng, *shape), "block": floats(rng, 2, 3, 6), "gates": floats(rng, *gates),
                           "mix": floats(rng, 2, 3, 4, 4)})
    yield dict(name="post_mix_unmixed", op="HyperConnectionPostMix", inputs=lambda rng: {
        "x": floats(rng, 2, 4, 6), "block": floats(rng, 2, 6), "gates": floats(rng, 2, 4, 1)})
    gate = lambda rng: {"key": floats(rng, 2, 3, 4, 8), "query": floats(rng, 2, 3, 4, 8), "value": floats(rng, 2, 3, 8),
                        "key_scale": floats(rng, 4, 8), "query_scale": floats(rng, 4, 8)}
    yield dict(name="engram_gate", op="EngramGate", inputs=gate)
    yield dict(name="engram_gate_normed", op="EngramGate", outputs=("y", "normed"), epsilon=1e-4,
               inputs=lambda rng: gate(rng) | {"scale": floats(rng, 4, 8)})


def routers():
    inputs = lambda rng: {"x": floats(rng, 2, 3, 16), "bias": floats(rng, 16) / 4}
    yield dict(name="group_router", op="MoEGroupRouter", inputs=inputs, top_k=3, n_group=4, topk_group=2)
    yield dict(name="group_router_plain", op="MoEGroupRouter", inputs=inputs, top_k=2)
    yield dict(name="group_router_wide", op="MoEGroupRouter", inputs=inputs, top_k=6, n_group=8, topk_group=3, group_topk=5,
               router_sentinel=-50.0)


def words():
    """Longest, shorter than a window, empty, with a character behind the end."""
    spelled = np.array([[1, 2, 3, 4, 5, 6], [2, 0, 0, 0, 0, 0], [0, 3, 0, 0, 0, 0], [3, 4, 0, 5, 0, 0]], np.int32)
    yield dict(name="embedded_words", op="WordConvEmbedding", conv_window_size=3, embedding_size=5, char_embedding_size=4,
               weights=("w", "b", "e"), inputs=lambda rng: {"x": spelled, "w": floats(rng, 5, 1, 3, 4), "b": floats(rng, 5),
                                                           "e": floats(rng, 7, 4)})


def sparse():
    """Blocks of 16 tokens in a cache of 64; two layouts for four heads. ONNX Runtime takes only inputs that are its outputs."""
    heads, kv_heads, size = 4, 2, 16
    rows = np.array([[0, 1, 3, 5, 8], [0, 1, 3, 6, 9]], np.int32)
    columns = np.array([[0, 0, 1, 1, 2, 1, 2, 3, -1], [0, 0, 1, 0, 1, 2, 0, 2, 3]], np.int32)

    def given(tokens, totals, packed=False, rotary=False):
        def make(rng):
            batch = len(totals)
            q, k, v = (floats(rng, batch, tokens, n * size) for n in (heads, kv_heads, kv_heads))
            if packed:
                q, k, v = np.concatenate([q, k, v], 2), None, None
            caches = [np.zeros((batch, kv_heads, 64, size), f32) for _ in range(2)]
            for row, total in enumerate(totals):
                for cache in caches:
                    cache[row, :, :total - tokens] = floats(rng, kv_heads, total - tokens, size)
            angles = np.outer(np.arange(64), 1 / 10.0 ** np.arange(size // 2)).astype(f32)
            return {"q": q, "k": k, "v": v, "past_k": caches[0], "past_v": caches[1], "rows": rows, "columns": columns,
                    "total": np.array(max(totals), np.int32), "totals": np.array(totals, np.int32),
                    "cos": np.cos(angles) if rotary else None, "sin": np.sin(angles) if rotary else None}
        return make

    def turned(x, i, at, interleaved):
        if i["cos"] is None:
            return x
        cos, sin = i["cos"][at], i["sin"][at]
        a, b = (x[..., ::2], x[..., 1::2]) if interleaved else np.split(x, 2, -1)
        parts = a * cos - b * sin, a * sin + b * cos
        return np.stack(parts, -1).reshape(x.shape) if interleaved else np.concatenate(parts, -1)

    def answers(scale=size ** -0.5, interleaved=False):
        def compute(i):
            q, k, v = np.split(i["q"], [heads * size, (heads + kv_heads) * size], 2) if i["k"] is None else (i["q"], i["k"], i["v"])
            batch, tokens = q.shape[:2]
            q, k, v = (x.reshape(batch, tokens, -1, size).transpose(0, 2, 1, 3) for x in (q, k, v))
            keys, values, y = i["past_k"].copy(), i["past_v"].copy(), np.zeros(q.shape)
            for row, total in enumerate(i["totals"]):
                at = np.arange(total - tokens, total)
                keys[row, :, at] = turned(k[row], i, at, interleaved).transpose(1, 0, 2)
                values[row, :, at] = v[row].transpose(1, 0, 2)
                for head in range(heads):
                    for token, place in enumerate(at):
                        ends, blocks = rows[head % 2], columns[head % 2]
                        seen = blocks[ends[place // 16]:ends[place // 16 + 1]]
                        those = [key for key in range(place + 1) if key // 16 in seen]
                        own = keys[row, head // 2, those].astype(np.float64)
                        scores = own @ turned(q[row, head, token], i, place, interleaved) * scale
                        shares = np.exp(scores - scores.max())
                        y[row, head, token] = shares / shares.sum() @ values[row, head // 2, those]
            return [y.transpose(0, 2, 1, 3).reshape(batch, tokens, -1).astype(f32), keys, values]
        return compute

    def row(name, weights=("rows", "columns", "total", "cos", "sin"), expected=answers(), **more):
        return dict(name="sparse_attention" + name, op="SparseAttention", num_heads=heads, kv_num_heads=kv_heads,
                    sparse_block_size=16, outputs=("y", "keys", "values"), weights=weights, expected=expected,
                    tolerances={"atol": 1e-5}) | more
    yield row("_prompt", inputs=given(50, (50, 50)))
    yield row("_prompt_packed", inputs=given(40, (40,), packed=True), scale=0.4, expected=answers(0.4))
    yield row("_prompt_rotary", inputs=given(40, (40,), rotary=True), do_rotary=1)
    yield row("_later", inputs=given(1, (40, 23)))
    yield row("_later_known", inputs=given(1, (40, 40)), weights=("rows", "columns", "total", "totals"))
    yield row("_later_rotary", inputs=given(1, (40, 23), rotary=True), do_rotary=1, rotary_interleaved=1,
              expected=answers(interleaved=True))


def cases():
    for family in (streams, routers, words, sparse):
        yield from family()
