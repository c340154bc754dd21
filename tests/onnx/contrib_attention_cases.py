"""Cases of com.microsoft for make_contrib_cases.py: attention, rotary embeddings."""
import numpy as np

f32 = np.float32
BATCH, LENGTH, HEADS, SIZE = 2, 4, 2, 4
HIDDEN = HEADS * SIZE


def floats(rng, *dims):
    return rng.standard_normal(dims).astype(f32)


def attention_inputs(mask=None, past=0, bias=False, biased=True, v_hidden=HIDDEN):
    def make(rng):
        return {"x": floats(rng, BATCH, LENGTH, 6), "w": floats(rng, 6, 2 * HIDDEN + v_hidden) * f32(0.5),
                "b": floats(rng, 2 * HIDDEN + v_hidden) if biased else None, "mask": mask,
                "past": floats(rng, 2, BATCH, HEADS, past, SIZE) if past else None,
                "attention_bias": floats(rng, 1, HEADS, LENGTH, LENGTH + past) if bias else None}
    return make


def integers(*rows):
    return np.array(rows, np.int32)


def fused():
    def row(name, **more):
        return dict(name="attention" + name, op="Attention", num_heads=HEADS) | more
    flags = integers([1, 1, 1, 0], [1, 1, 0, 0])
    yield row("", inputs=attention_inputs())
    yield row("_no_bias", inputs=attention_inputs(biased=False), scale=0.2)
    yield row("_lengths", inputs=attention_inputs(integers(4, 2)))
    yield row("_ends_starts", inputs=attention_inputs(integers(4, 3, 1, 0)))
    yield row("_flags", inputs=attention_inputs(flags))
    yield row("_flags_filter", inputs=attention_inputs(flags), mask_filter_value=-1.0)
    yield row("_flags_3d", inputs=attention_inputs(np.tril(np.ones((BATCH, LENGTH, LENGTH), np.int32))))
    yield row("_causal", inputs=attention_inputs(), unidirectional=1)
    yield row("_causal_flags", inputs=attention_inputs(flags), unidirectional=1)
    yield row("_past", inputs=attention_inputs(past=3), outputs=("y", "present"), unidirectional=1)
    yield row("_past_flags", inputs=attention_inputs(integers([0, 1, 1, 1, 1, 1, 1], [1] * 7), past=3),
              outputs=("y", "present"))
    yield row("_scores_bias", inputs=attention_inputs(bias=True))
    yield row("_sizes", inputs=attention_inputs(v_hidden=4), qkv_hidden_sizes=[HIDDEN, HIDDEN, 4])


def multi_head():
    def inputs(keys=5, bias=False, mask=None, scores=False, past=0, cross=False, packed=""):
        def make(rng):
            q = floats(rng, BATCH, LENGTH, HIDDEN)
            k, v = floats(rng, BATCH, keys, HIDDEN), floats(rng, BATCH, keys, HIDDEN)
            if cross:
                k, v = (x.reshape(BATCH, keys, HEADS, SIZE).transpose(0, 2, 1, 3).copy() for x in (k, v))
            if packed == "qkv":
                q, k, v = floats(rng, BATCH, LENGTH, HEADS, 3, SIZE), None, None
            if packed == "kv":
                k, v = floats(rng, BATCH, keys, HEADS, 2, SIZE), None
            cache = (floats(rng, BATCH, HEADS, past, SIZE) for _ in range(2)) if past else (None, None)
            return {"q": q, "k": k, "v": v, "b": floats(rng, 3 * HIDDEN) if bias else None, "mask": mask,
                    "scores": floats(rng, BATCH, 1, LENGTH, keys + past) if scores else None} | dict(
                        zip(("past_key", "past_value"), cache))
        return make

    def row(name, **more):
        return dict(name="multi_head" + name, op="MultiHeadAttention", num_heads=HEADS) | more
    yield row("", inputs=inputs())
    yield row("_bias", inputs=inputs(bias=True), scale=0.3)
    yield row("_lengths", inputs=inputs(mask=integers(5, 2)))
    yield row("_flags", inputs=inputs(mask=integers([1, 1, 1, 1, 0], [1, 1, 0, 0, 0])), mask_filter_value=-100.0)
    yield row("_scores", inputs=inputs(scores=True))
    yield row("_cross", inputs=inputs(cross=True))

    def unpacked(i):
        parts = [i["q"][:, :, :, n].reshape(BATCH, LENGTH, HIDDEN) for n in range(3)]
        return i | dict(zip("qkv", parts))

    def unpacked_keys(i):
        return i | {n: i["k"][:, :, :, at].transpose(0, 2, 1, 3).copy() for at, n in enumerate("kv")}
    yield row("_packed", inputs=inputs(keys=LENGTH, packed="qkv"), reference=unpacked)
    yield row("_packed_bias", inputs=inputs(keys=LENGTH, packed="qkv", bias=True), reference=unpacked)
    yield row("_packed_keys", inputs=inputs(packed="kv"), reference=unpacked_keys)
    yield row("_causal", inputs=inputs(keys=LENGTH), unidirectional=1)
    yield row("_past", inputs=inputs(keys=LENGTH, past=3), outputs=("y", "present_key", "present_value"), unidirectional=1)


def grouped():
    # ONNX Runtime rotates heads of 16 elements and more only; the others are small.
    def shape(rotary):
        return (2, 1, 16) if rotary else (4, 2, 8)

    def inputs(length, past=0, seqlens=(), total=0, packed=False, rotary=False, positions=None, scores=False, sink=False,
               norm=False, batch=BATCH):
        heads, kv_heads, size = shape(rotary)

        def make(rng):
            q, k, v = (floats(rng, batch, length, n * size) for n in (heads, kv_heads, kv_heads))
            if packed:
                q, k, v = np.concatenate([q, k, v], 2), None, None
            angles = np.outer(np.arange(8), 1 / 10.0 ** np.arange(size // 2)).astype(f32)
            return {"q": q, "k": k, "v": v, "past_key": floats(rng, batch, kv_heads, past, size) if past else None,
                    "past_value": floats(rng, batch, kv_heads, past, size) if past else None,
                    "seqlens": np.array(seqlens, np.int32), "total": np.array(total, np.int32),
                    "cos": np.cos(angles) if rotary else None, "sin": np.sin(angles) if rotary else None,
                    "positions": positions, "scores": floats(rng, batch, 1, length, total) if scores else None,
                    "sink": floats(rng, heads) if sink else None, "ks": None, "vs": None,
                    "q_norm": floats(rng, size) if norm else None, "k_norm": floats(rng, size) if norm else None}
        return make

    def row(name, known=False, **more):
        weights = ("total", "seqlens", "cos", "sin") if known else ("total", "cos", "sin")
        heads, kv_heads, _ = shape("do_rotary" in more)
        return dict(name="grouped" + name, op="GroupQueryAttention", num_heads=heads, kv_num_heads=kv_heads,
                    outputs=("y", "present_key", "present_value"), weights=weights) | more
    both = dict(length=3, seqlens=(2, 2), total=3)
    prompt = dict(length=3, seqlens=(2,), total=3, batch=1)
    later = dict(length=1, past=4, seqlens=(4, 4), total=5)
    yield row("_prompt", inputs=inputs(**both))
    yield row("_prompt_packed", inputs=inputs(**prompt, packed=True))
    yield row("_prompt_rotary", inputs=inputs(**prompt, rotary=True), do_rotary=1)
    yield row("_prompt_interleaved", inputs=inputs(**prompt, rotary=True, packed=True), do_rotary=1, rotary_interleaved=1)
    yield row("_prompt_window", inputs=inputs(**prompt), local_window_size=2)
    yield row("_prompt_softcap", inputs=inputs(**prompt), softcap=5.0, scale=0.5)
    yield row("_prompt_scores", inputs=inputs(**prompt, scores=True))
    yield row("_prompt_sink", inputs=inputs(**prompt, sink=True))
    yield row("_prompt_smooth", inputs=inputs(**prompt), smooth_softmax=1)

    def normed(i):
        def norm(x, scale):
            parts = x.reshape(*x.shape[:2], -1, 16)
            parts = parts / np.sqrt((parts * parts).mean(-1, keepdims=True) + 1e-6) * scale
            return parts.reshape(x.shape).astype(f32)
        return i | {"q": norm(i["q"], i["q_norm"]), "k": norm(i["k"], i["k_norm"]), "q_norm": None, "k_norm": None}
    yield row("_prompt_norm", inputs=inputs(**prompt, rotary=True, norm=True), do_rotary=1, reference=normed)
    yield row("_later", inputs=inputs(**later))
    yield row("_later_known", known=True, inputs=inputs(**later, rotary=True), do_rotary=1)
    yield row("_later_rotary", inputs=inputs(**later, rotary=True), do_rotary=1)
    yield row("_later_ragged", inputs=inputs(length=1, past=4, seqlens=(4, 2), total=5, rotary=True), do_rotary=1)
    yield row("_later_buffer", inputs=inputs(length=1, past=8, seqlens=(5, 3), total=6))
    yield row("_later_window", inputs=inputs(length=1, past=6, seqlens=(6, 4), total=7), local_window_size=3)
    yield row("_chunk", inputs=inputs(length=2, past=3, seqlens=(4,), total=5, batch=1, rotary=True), do_rotary=1)
    yield row("_positions", inputs=inputs(**both, rotary=True, positions=np.array([[0, 1, 2], [2, 3, 4]], np.int64)),
              do_rotary=1)


def rotary():
    def inputs(dims, positions, half):
        def make(rng):
            angles = np.outer(np.arange(10), 1 / 10.0 ** np.arange(half)).astype(f32)
            return {"x": floats(rng, *dims), "positions": np.array(positions, np.int64), "cos": np.cos(angles),
                    "sin": np.sin(angles)}
        return make
    ids = [[0, 1, 2], [4, 5, 6]]
    yield dict(name="rotary", op="RotaryEmbedding", inputs=inputs((2, 3, 16), ids, 4))
    yield dict(name="rotary_offset", op="RotaryEmbedding", inputs=inputs((2, 3, 16), [2], 4))
    yield dict(name="rotary_interleaved", op="RotaryEmbedding", inputs=inputs((2, 3, 16), ids, 4), interleaved=1)
    yield dict(name="rotary_4d", op="RotaryEmbedding", inputs=inputs((2, 2, 3, 8), ids, 4))
    yield dict(name="rotary_partial", op="RotaryEmbedding", inputs=inputs((2, 3, 16), ids, 2), num_heads=2,
               rotary_embedding_dim=4)
    gemma = lambda rng: {"emb": floats(rng, 1, 3, 8)} | {n: floats(rng, 1, 2, 3, 8) for n in ("q", "qr", "k", "kr")}

    def turned(i):
        c, s = np.cos(i["emb"])[:, None], np.sin(i["emb"])[:, None]
        return [i["q"] * c + i["qr"] * s, i["k"] * c + i["kr"] * s]
    yield dict(name="gemma_rotary", op="GemmaRotaryEmbedding", inputs=gemma, outputs=("q_out", "k_out"), expected=turned)


def cases():
    for family in (fused, multi_head, grouped, rotary):
        yield from family()
