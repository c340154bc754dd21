"""Opens small models with benchmarks/sizes/open_sizes.py and compares them with the same models as made for other sizes.

usage: opened_models.py SYLVITE_COMMAND WORK_FOLDER

Each has the sizes written into its constants, as exporters do that trace a model at one size. By the onnx package's
evaluator, the opened model must give at other sizes what the model written for those gives; so must the command.
"""

import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from run_model import run_model
from text_models import made_model

SCRIPT = pathlib.Path(__file__).parents[2] / "benchmarks" / "sizes" / "open_sizes.py"


def ints(*numbers):
    return np.array(numbers, np.int64)


def text_model(b, s):
    """A causal mask, positions and kinds of words as constants, products over flattened rows, a mask by Expand."""
    text = f"""text (int64[{b}, {s}] ids, int64[{b}, {s}] mask) => (float[{b}, {s}, 8] y) {{
      flat_ids = Reshape <allowzero = 1> (ids, by_rows)
      words = Gather <axis = 0> (w50x8, flat_ids)
      rows = Gather <axis = 0> (w40x8, places)
      kinds = Gather <axis = 0> (w2x8, zeros)
      x0 = Add(words, rows)
      x = Add(x0, kinds)
      seen1 = Cast <to = 9> (mask)
      seen2 = Unsqueeze(seen1, l1_2)
      seen3 = Expand(seen2, whole)
      seen = And(past, seen3)
      zero = Constant <value = float {{0.0}}> ()
      least = Constant <value = float {{-1e30}}> ()
      bias = Where(seen, zero, least)
      slopes = Mul(distances, zero)
      x2 = Reshape(x, flat)
      qkv = Gemm(x2, w8x24)
      qkv3 = Reshape(qkv, wide)
      q, k, v = Split <axis = 2, num_outputs = 3> (qkv3)
      q4 = Reshape <allowzero = 1> (q, heads)
      k4 = Reshape <allowzero = 1> (k, heads)
      v4 = Reshape <allowzero = 1> (v, heads)
      qt = Transpose <perm = [0, 2, 1, 3]> (q4)
      kt = Transpose <perm = [0, 2, 3, 1]> (k4)
      vt = Transpose <perm = [0, 2, 1, 3]> (v4)
      scores = MatMul(qt, kt)
      sloped = Add(scores, slopes)
      masked = Add(sloped, bias)
      p = Softmax(masked)
      o = MatMul(p, vt)
      ot = Transpose <perm = [0, 2, 1, 3]> (o)
      y0 = Reshape(ot, joined)
      y = Add(y0, x)
    }}"""
    place = np.arange(s)
    return made_model(text, [
        ("by_rows", ints(-1, s)), ("places", place[None]), ("zeros", np.zeros([1, s], np.int64)),
        ("whole", ints(b, 1, s, s)), ("past", (place[None] <= place[:, None])[None, None]),
        ("distances", np.zeros([1, 2, s, s], np.float32)), ("flat", ints(b * s, 8)), ("wide", ints(b, s, 24)),
        ("heads", ints(b, s, -1, 4)), ("joined", ints(b, s, 8))])


def table_model(b, s):
    """Positions that were cut out of their table: a size can only become smaller."""
    table = np.random.default_rng(1).standard_normal([1, 8, 6]).astype(np.float32)[:, :s]
    text = f"""table (float[{b}, {s}, 6] x) => (float[{b}, {s}, 6] y) {{
      y = Add(x, positions)
    }}"""
    return made_model(text, [("positions", table)])


def image_model(b, h, w):
    """Channels that are shuffled, and Resize to the size of another value."""
    h2, w2 = (h + 1) // 2, (w + 1) // 2
    text = f"""image (float[{b}, 3, {h}, {w}] x) => (float[{b}, 5] y, float[{b}, 8, {h}, {w}] z) {{
      c = Conv <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x, w8x3x3x3)
      s = Conv <kernel_shape = [1, 1], strides = [2, 2]> (x, w8x3x1x1)
      a = Add(c, s)
      parts = Reshape(a, split)
      turned = Transpose <perm = [0, 2, 1, 3, 4]> (parts)
      shuffled = Reshape(turned, whole)
      up = Resize <mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric">
                  (shuffled, , , sizes)
      same = Conv <kernel_shape = [1, 1]> (x, w8x3x1x1_b)
      z = Add(up, same)
      mean = ReduceMean <keepdims = 1> (z, l2_3)
      row = Reshape(mean, flat)
      y = Gemm(row, w8x5)
    }}"""
    return made_model(text, [("split", ints(b, 2, 4, h2, w2)), ("whole", ints(b, 8, h2, w2)),
                             ("sizes", ints(b, 8, h, w)), ("flat", ints(b, 8))])


def patches_model(b):
    """Rows before the batch, a token before the rows: of a fixed image, as vision transformers are."""
    text = f"""patches (float[{b}, 3, 8, 8] x) => (float[{b}, 6] y) {{
      c = Conv <kernel_shape = [4, 4], strides = [4, 4]> (x, w6x3x4x4)
      flat = Reshape(c, rows)
      tokens = Transpose <perm = [0, 2, 1]> (flat)
      all = Concat <axis = 1> (token, tokens)
      placed = Add(all, w1x5x6)
      first = Transpose <perm = [1, 0, 2]> (placed)
      qkv = MatMul(first, w6x18)
      apart = Reshape(qkv, threes)
      one = Unsqueeze(apart, l0)
      turned = Transpose <perm = [3, 1, 2, 0, 4]> (one)
      three = Squeeze(turned, lm2)
      q = Gather <axis = 0> (three, n0)
      k = Gather <axis = 0> (three, n1)
      v = Gather <axis = 0> (three, n2)
      q3 = Reshape(q, heads)
      k3 = Reshape(k, heads)
      v3 = Reshape(v, heads)
      qt = Transpose <perm = [1, 0, 2]> (q3)
      kt = Transpose <perm = [1, 2, 0]> (k3)
      vt = Transpose <perm = [1, 0, 2]> (v3)
      q4 = Reshape(qt, four)
      k4 = Reshape(kt, four_turned)
      v4 = Reshape(vt, four)
      s = MatMul(q4, k4)
      p = Softmax(s)
      o = MatMul(p, v4)
      ot = Transpose <perm = [2, 0, 1, 3]> (o)
      o2 = Reshape(ot, products)
      out = Gemm <transB = 1> (o2, w6x6)
      out3 = Reshape(out, back)
      batch_first = Transpose <perm = [1, 0, 2]> (out3)
      sum = Add(batch_first, placed)
      y = Gather <axis = 1> (sum, n0)
    }}"""
    token = np.broadcast_to(np.float32([[[3, 1, 4, 1, 5, 9]]]), [b, 1, 6])
    return made_model(text, [
        ("rows", ints(b, 6, 4)), ("token", token), ("threes", ints(5, b, 3, 6)), ("heads", ints(5, b * 3, 2)),
        ("four", ints(b, 3, 5, 2)), ("four_turned", ints(b, 3, 2, 5)), ("products", ints(b * 5, 6)),
        ("back", ints(5, b, 6))])


def classifier_model(b, h, w):
    """Features of one size only."""
    text = f"""classifier (float[{b}, 3, {h}, {w}] x) => (float[{b}, 7] y) {{
      c = Conv <kernel_shape = [3, 3], strides = [2, 2]> (x, w4x3x3x3)
      row = Reshape(c, flat)
      y = Gemm(row, w64x7)
    }}"""
    return made_model(text, [("flat", ints(b, 4 * ((h - 1) // 2) * ((w - 1) // 2)))])


def recurrent_model(b, s):
    """States of the batch, positions by Slice of a table, a token of the batch by Tile."""
    text = f"""steps (float[{b}, {s}, 6] x) => (float[{s}, 1, {b}, 4] y, float[{b}, {s + 1}, 6] z) {{
      rows = Slice(w1x20x6, l0, ends, l1)
      placed = Add(x, rows)
      first = Transpose <perm = [1, 0, 2]> (placed)
      y, h, c = LSTM <hidden_size = 4> (first, w1x16x6, w1x16x4, , , state, state)
      token = Tile(w1x1x6, repeats)
      z = Concat <axis = 1> (token, placed)
    }}"""
    return made_model(text, [("ends", ints(s)), ("state", np.full([1, b, 4], 0.5, np.float32)), ("repeats", ints(b, 1, 1))])


def pyramid_model(b, h, w):
    """Channels last; a coarse level as large again, on top of a fine one."""
    h2, w2, h4, w4 = (h + 1) // 2, (w + 1) // 2, (h + 3) // 4, (w + 3) // 4
    text = f"""pyramid (float[{b}, {h}, {w}, 3] x) => (float[{b}, {h2 * w2}, 4] y) {{
      image = Transpose <perm = [0, 3, 1, 2]> (x)
      fine = Conv <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (image, w4x3x3x3)
      coarse = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (fine)
      up = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (coarse, , , sizes)
      both = Add(fine, up)
      last = Transpose <perm = [0, 2, 3, 1]> (both)
      y = Reshape(last, flat)
    }}"""
    assert (h4, w4) == ((h2 + 1) // 2, (w2 + 1) // 2)
    return made_model(text, [("sizes", ints(b, 4, h2, w2)), ("flat", ints(b, h2 * w2, 4))])


MODELS = {  # how it is made, at which sizes it is exported and tried, what the script says
    text_model: ({"batch": 1, "sequence": 6}, [(3, 5), (2, 40), (1, 1)], "sequence (exported with 6; at most 40"),
    table_model: ({"batch": 1, "sequence": 8}, [(3, 5), (2, 1)], "sequence (exported with 8; at most 8"),
    image_model: ({"batch": 1, "height": 12, "width": 10}, [(2, 7, 13), (3, 30, 8)], "open: width (exported with 10)"),
    recurrent_model: ({"batch": 1, "sequence": 7}, [(3, 5), (2, 19)], "sequence (exported with 7; at most 20"),
    pyramid_model: ({"batch": 1, "height": 16, "width": 16}, [(2, 7, 13), (3, 31, 8)], "open: width (exported with 16)"),
    patches_model: ({"batch": 1}, [(3,), (2,)], "not all of batch, height, width: Add 'placed'"),
    classifier_model: ({"batch": 1}, [(4,)], "not all of batch, height, width: Gemm 'y'"),
}
FIXED = {classifier_model: (9, 9)}


def unchanged(model):
    return model


def with_constant_nodes(model):
    """The same without initializers, as some exporters write it."""
    nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in model.graph.initializer]
    nodes += model.graph.node
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(nodes)
    return model


def drawn_inputs(model):
    random = np.random.default_rng(0)
    arrays = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            arrays[value.name] = random.standard_normal(shape).astype(np.float32)
        else:
            arrays[value.name] = random.integers(0, 50, shape)
    if "mask" in arrays:  # every row sees its first word
        arrays["mask"] = (arrays["mask"] > 20).astype(np.int64)
        arrays["mask"][:, 0] = 1
    return arrays


def differs(actual, expected):
    return any(a.shape != e.shape or not np.allclose(a, e, rtol=1e-3, atol=1e-4) for a, e in zip(actual, expected))


def problems(command, folder, make, form):
    exported, tried, said = MODELS[make]
    rest = FIXED.get(make, ())
    folder.mkdir()
    onnx.save(form(make(*exported.values(), *rest)), folder / "model.onnx")
    done = subprocess.run([sys.executable, SCRIPT, folder / "model.onnx", "-o", folder / "opened.onnx"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0 or said not in done.stderr:
        yield f"{make.__name__}: expected '{said}', the script says: {done.stderr}"
        return
    opened = onnx.load(folder / "opened.onnx")
    for sizes in [tuple(exported.values()), *tried]:
        made = make(*sizes, *rest)
        arrays = drawn_inputs(made)
        expected = ReferenceEvaluator(made).run(None, arrays)
        try:
            if differs(ReferenceEvaluator(opened).run(None, arrays), expected):
                yield f"{make.__name__} at {sizes}: differs"
            elif differs(run_model(command, folder, "opened.onnx", arrays, len(expected)), expected):
                yield f"{make.__name__} at {sizes}: the command differs"
        except (RuntimeError, ValueError) as error:
            yield f"{make.__name__} at {sizes}: {error}"


def main():
    command, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = [line for make in MODELS for form in (unchanged, with_constant_nodes)
             for line in problems(command, folder / f"{make.__name__}_{form.__name__}", make, form)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
