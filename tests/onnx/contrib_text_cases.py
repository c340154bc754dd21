"""Cases of strings for make_contrib_cases.py: texts that are moved and looked up."""
import numpy as np


def standard(name, op, inputs, outputs=("y",), **more):
    return dict(name=name, op=op, inputs=inputs, outputs=outputs, domain="", **more)


def moved():
    x = lambda rng: {"x": np.array([["a", "b", "c"], ["d", "e", ""]])}
    with_integers = lambda name, values: lambda rng: x(rng) | {name: np.array(values, np.int64)}
    yield standard("strings_reshape", "Reshape", with_integers("shape", [3, -1]), weights=("shape",))
    yield standard("strings_transpose", "Transpose", x, perm=[1, 0])
    yield standard("strings_shape", "Shape", x)
    yield standard("strings_concat", "Concat", lambda rng: x(rng) | {"z": np.array([["p"], ["q"]])}, axis=1)
    yield standard("strings_gather", "Gather", with_integers("i", [2, 0, -1]), axis=1)
    yield standard("strings_where", "Where", lambda rng: {"c": np.array([[True, False, False], [False, True, True]])} | x(rng)
                   | {"z": np.array([["no"]])})
    yield dict(name="strings_chosen", op="ArrayFeatureExtractor", domain="ai.onnx.ml", weights=("x",),
               inputs=lambda rng: {"x": np.array([["no", "yes", "maybe"]]), "i": np.array([1, 0, 2, 1], np.int64)})


def cases():
    for family in (moved,):
        yield from family()
