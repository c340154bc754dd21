"""Cases of norms, gates and recurrences of decoders with linear attention, for make_contrib_cases.py."""
import numpy as np

f32 = np.float32


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(f32)


def norms():
    for activation in ("silu", "sigmoid"):
        yield dict(name=f"gated_rms_norm_{activation}", op="GatedRMSNorm", activation=activation, epsilon=1e-4,
                   inputs=lambda rng: {"x": floats(rng, 2, 3, 24), "scale": floats(rng, 8), "gate": floats(rng, 2, 3, 24)})
    for name, shape, more in (("grouped", (2, 4, 6), {}), ("flat", (3, 24), {"num_branches": 4})):
        for width in (6, 24):
            yield dict(name=f"branchwise_rms_norm_{name}_{width}", op="BranchwiseRMSNorm", epsilon=1e-5, **more,
                       inputs=lambda rng, shape=shape, width=width: {"x": floats(rng, *shape), "scale": floats(rng, width)})
    yield dict(name="branchwise_rms_norm_plain", op="BranchwiseRMSNorm", epsilon=1e-5,
               inputs=lambda rng: {"x": floats(rng, 2, 4, 6)})


def gates():
    yield dict(name="scaled_silu", op="ScaledSiLU", inputs=lambda rng: {"x": floats(rng, 3, 7)}, alpha=1.7)
    yield dict(name="scaled_silu_scale", op="ScaledSiLU", inputs=lambda rng: {"x": floats(rng, 3, 7), "scale": np.array(0.6, f32)})
    yield dict(name="gated_add", op="GatedAdd",
               inputs=lambda rng: {"x": floats(rng, 2, 3, 8), "y2": floats(rng, 2, 3, 8), "gate": floats(rng, 2, 3, 1)})
    yield dict(name="linear_attention_gate", op="LinearAttentionGate", outputs=("decay", "beta"),
               inputs=lambda rng: {"a": floats(rng, 2, 5, 4), "bias": floats(rng, 4), "scale": -np.abs(floats(rng, 4)),
                                   "b": floats(rng, 2, 5, 4)})


def delta_nets():
    """7 tokens of 2 sequences; 4 heads of values for 2 of keys."""
    def tokens(rng, batch=2, steps=7, wide=6, deep=8, gate=1):
        rows = batch * steps
        unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)
        return {"q": unit(floats(rng, rows, 2, deep)), "k": unit(floats(rng, rows, 2, deep)), "v": floats(rng, rows, 4, wide),
                "ends": None, "decay": -np.abs(floats(rng, *((rows, 4, gate) if gate > 1 else (rows, 4)))),
                "beta": 1 / (1 + np.exp(-floats(rng, rows, 4))), "state": floats(rng, batch, 4, wide, deep)}
    outputs = ("y", "last")
    for rule in ("linear", "gated", "delta", "gated_delta"):
        def given(rng, rule=rule):
            inputs = tokens(rng)
            if rule in ("linear", "delta"):
                inputs["decay"] = None
            if rule in ("linear", "gated"):
                inputs["beta"] = None
            return inputs
        yield dict(name=f"delta_net_{rule}", op="GatedDeltaNet", inputs=given, outputs=outputs, update_rule=rule,
                   tolerances={"atol": 1e-5})
    yield dict(name="delta_net_wide_decay", op="GatedDeltaNet", inputs=lambda rng: tokens(rng, gate=8), outputs=outputs,
               tolerances={"atol": 1e-5})
    yield dict(name="delta_net_token", op="GatedDeltaNet", inputs=lambda rng: tokens(rng, 3, 1), outputs=outputs, scale=0.7,
               tolerances={"atol": 1e-5})

    def batched(rng):
        inputs = tokens(rng)
        for name in ("q", "k", "v", "decay", "beta"):
            inputs[name] = inputs[name].reshape(2, 7, *inputs[name].shape[1:])
        return inputs
    yield dict(name="delta_net_batched", op="GatedDeltaNet", inputs=batched, outputs=outputs, tolerances={"atol": 1e-5})
    for activation in ("softplus", "sigmoid"):
        yield dict(name=f"delta_net_{activation}", op="GatedDeltaNet", outputs=outputs, gate_activation=activation,
                   beta_activation="sigmoid", qk_l2_norm=1, tolerances={"atol": 1e-5},
                   inputs=lambda rng: tokens(rng) | {"a_log": floats(rng, 4), "bias": floats(rng, 4)})

    def packed(rng):
        inputs = tokens(rng)
        rows = [inputs[name].reshape(14, -1) for name in ("q", "k", "v")]
        return {"q": np.concatenate(rows, 1), "k": None, "v": None} | {k: inputs[k] for k in ("ends", "decay", "beta", "state")}
    yield dict(name="delta_net_packed", op="GatedDeltaNet", inputs=packed, outputs=outputs, tolerances={"atol": 1e-5})


def rotaries():
    def inputs(rng, shape=(2, 5, 24)):
        angles = np.arange(20)[:, None] / 50 ** (np.arange(4) / 4)
        return {"x": floats(rng, *shape), "at": rng.integers(0, 20, (3, 2, 5)).astype(np.int64), "cos": np.cos(angles).astype(f32),
                "sin": np.sin(angles).astype(f32)}
    for layout in (0, 1):
        yield dict(name=f"multimodal_rotary_{layout}", op="MRotaryEmbedding", inputs=inputs, num_heads=3, mrope_section=[2, 1, 1],
                   mrope_layout=layout)
    yield dict(name="multimodal_rotary_heads", op="MRotaryEmbedding", inputs=lambda rng: inputs(rng, (2, 3, 5, 8)),
               mrope_section=[1, 2, 1], interleaved=1)


def tokens_behind_others():
    """One token of 2 sequences with 3 heads of 4, 5 tokens behind it in a buffer with room for 8."""
    outputs = ("y", "keys", "values")
    names = ("q", "k", "v", "mask", "scores", "past_k", "past_v", "length", "beams", "beam", "bias")

    def given(rng, **more):
        values = dict.fromkeys(names) | {"q": floats(rng, 2, 1, 12), "k": floats(rng, 2, 1, 12), "v": floats(rng, 2, 1, 12)}
        values |= {"past_k": floats(rng, 2, 3, 8, 4), "past_v": floats(rng, 2, 3, 8, 4), "length": np.array([5], np.int32)}
        return values | {name: more[name](rng) for name in more}
    mask = lambda rng: np.array([[1, 1, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1]], np.int32)
    cases = {"plain": {}, "mask": dict(mask=mask), "bias": dict(bias=lambda rng: floats(rng, 36))}
    for name, more in cases.items():
        yield dict(name=f"token_attention_{name}", op="DecoderMaskedMultiHeadAttention", num_heads=3, outputs=outputs,
                   past_present_share_buffer=1, inputs=lambda rng, more=more: given(rng, **more), tolerances={"atol": 1e-5})
    yield dict(name="token_attention_cross", op="DecoderMaskedMultiHeadAttention", num_heads=3, tolerances={"atol": 1e-5},
               inputs=lambda rng: dict.fromkeys(names[:7]) | {"q": floats(rng, 2, 1, 12), "k": floats(rng, 2, 3, 7, 4),
                                                              "v": floats(rng, 2, 3, 7, 4)})


def cases():
    for family in (norms, gates, delta_nets, rotaries, tokens_behind_others):
        yield from family()
