"""Cases of strings for make_contrib_cases.py: tokens, texts that are moved, looked up, written and read."""
import numpy as np

f32 = np.float32


def standard(name, op, inputs, outputs=("y",), **more):
    return dict(name=name, op=op, inputs=inputs, outputs=outputs, domain="", **more)


def tokens():
    texts = lambda rng: {"x": np.array(["the cat, the hat", "", "caf\u00e9 na\u00efve; ok", "a"])}
    yield dict(name="tokenizer_letters", op="Tokenizer", inputs=texts, separators=[""], pad_value="#", mincharnum=1, mark=1)
    yield dict(name="tokenizer_separators", op="Tokenizer", inputs=texts, separators=[" ", "[,;]"], pad_value="#", mincharnum=1,
               mark=0)
    yield dict(name="tokenizer_least", op="Tokenizer", inputs=texts, separators=[" "], pad_value="", mincharnum=3, mark=1)
    yield dict(name="tokenizer_matches", op="Tokenizer", inputs=lambda rng: {"x": texts(rng)["x"].reshape(2, 2)},
               tokenexp="[a-z\u00e9]+", pad_value="#", mincharnum=2, mark=0)


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


def casts():
    string = 8
    yield standard("strings_to_floats", "Cast", lambda rng: {"x": np.array(["1.5", "-2e3", "NaN"])}, to=1)
    yield standard("strings_to_integers", "Cast", lambda rng: {"x": np.array(["15", "-2"])}, to=7)
    yield standard("strings_of_floats", "Cast", lambda rng: {"x": np.array([1.5, -2e20, 0.1, np.nan], f32)}, to=string)
    yield standard("strings_of_integers", "Cast", lambda rng: {"x": np.array([15, -2], np.int64)}, to=string)


def cases():
    for family in (tokens, moved, casts):
        yield from family()
