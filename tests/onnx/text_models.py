"""Models from text in onnx's own language. A name that says so is a constant: n5 a number, l1_m1_4 a list of numbers, w16x4
a random weight (w16x4_a another one), which is the same in every model.
"""

import re
import zlib

import numpy as np
import onnx
from onnx import numpy_helper


def named_constant(name):
    if re.fullmatch(r"n\d+", name):
        return np.int64(name[1:])
    if re.fullmatch(r"lm?\d+(_m?\d+)*", name):
        return np.array([int(word.replace("m", "-")) for word in name[1:].split("_")], np.int64)
    if re.fullmatch(r"w\d+(x\d+)*(_\w)?", name):
        shape = [int(word) for word in name[1:].split("_")[0].split("x")]
        random = np.random.default_rng(zlib.crc32(name.encode()))
        return random.standard_normal(shape).astype(np.float32) * np.float32(0.3)
    return None


def made_model(text, constants=()):
    """`constants`: further ones, (name, array)."""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {17 if "axes = [" in text else 18}]>\n{text}')
    graph = model.graph
    inner = [node for node in graph.node for attribute in node.attribute for node in attribute.g.node]
    made = {name for node in graph.node for name in node.output}
    for name in dict.fromkeys(name for node in [*graph.node, *inner] for name in node.input if name not in made):
        array = named_constant(name)
        if array is not None:
            graph.initializer.append(numpy_helper.from_array(array, name))
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants)
    onnx.checker.check_model(model)
    return model
