#!/usr/bin/env python3
"""Turns the sizes that an exporter baked into a model into names: one model for a range of sizes.

usage: open_sizes.py MODEL.onnx -o OUT.onnx [--keep NAME,...] [--input NAME=batch,3,height,width]...

Dimensions of inputs get the names batch, sequence, height and width by their place; --input says them for an input.
Then the graph is followed at several sizes at once (size_trials.py). Where the new sizes do not fit what the exporter
wrote, constants become what they were made of: targets of Reshape and Expand get 0, -1 or extents taken from the input,
runs of positions become Range, causal masks a comparison, uniform tensors a single element or Expand, and a table of just so
many rows is cut to the rows in use. Sizes that a network fixes, as a classifier of 7x7 features fixes its image, stay
numbers; --keep asks for that. Reports on stderr what is open. check_open_sizes.py checks the result.
"""

import argparse
import collections
import os
import shutil
import sys

import onnx
from onnx import TensorProto

from size_opening import Limited, Opening
from size_trials import Unfit

IMAGE = ("height", "width")
STEPS = (1, 8, 16, 32)  # an image may have to be of this many pixels more or fewer
INTEGERS = (TensorProto.INT64, TensorProto.INT32)
TRIALS = {
    "batch": (2, 3, 5, 7),
    "height": (3, 5, -1, 7),
    "width": (-1, 7, 4, 11),
}
OPEN_SIZES = {"height": 64, "width": 64}  # for names that the model has already
OTHER_TRIALS = ((11, -3, 29, -7), (-5, 17, -2, 31), (23, 13, -4, 7))


def dims_of(value):
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def guessed_names(value):
    """The dimensions of an input; a number stays one unless its place says what it is."""
    dims = dims_of(value)
    integers = value.type.tensor_type.elem_type in INTEGERS
    names = {2: ["batch", "sequence"] if integers else ["batch", None], 3: ["batch", None if integers else "sequence", None]}
    if len(dims) == 4 and not integers:
        last = dims[3] in (1, 3, 4) and dims[1] not in (1, 3, 4)
        names[4] = ["batch", *IMAGE, None] if last else ["batch", None, *IMAGE]
    guess = names.get(len(dims), ["batch"] + [None] * (len(dims) - 1))
    return [dim if isinstance(dim, str) else name or dim for dim, name in zip(dims, guess)]


def named_inputs(graph, given):
    """Names or numbers of every input's dimensions. Masks of a text model have its batch and its sequence."""
    constants = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value for value in graph.input if value.name not in constants}
    unknown = [name for name in given if name not in inputs]
    if unknown:
        raise SystemExit(f"open_sizes.py: the model has no input '{unknown[0]}' (its inputs: {', '.join(inputs)})")
    for name, dims in given.items():
        if len(dims) != len(dims_of(inputs[name])):
            raise SystemExit(f"open_sizes.py: --input {name}: {len(dims)} dimensions, but it has {len(dims_of(inputs[name]))}")
    named = {name: given.get(name) or guessed_names(value) for name, value in inputs.items()}
    texts = [name for name in named if "sequence" in named[name] and len(named[name]) == 2]
    if texts:
        rows = dims_of(inputs[texts[0]])[1]
        for name, value in inputs.items():
            if name not in given and name not in texts:
                named[name] = ["sequence" if dim == rows else "batch" if i == 0 else dim
                               for i, dim in enumerate(dims_of(value))]
    return named


def trial_numbers(name, original, order, step, limit):
    """The sizes of a name at every trial, the exported one first. Those of two names are never in proportion."""
    if name == "batch":
        return (original, *(number if number != original else 11 for number in TRIALS["batch"]))
    offsets = [offset * step for offset in TRIALS.get(name, OTHER_TRIALS[order % len(OTHER_TRIALS)])]
    if limit:
        return (original, *(limit - 1 - abs(offset) % max(limit // 2, 1) for offset in offsets))
    return (original, *(original + (offset if original + offset > original // 2 else -offset) for offset in offsets))


def named_trials(graph, named, step, limits):
    inputs = {value.name: dims_of(value) for value in graph.input}
    trials = {}
    for value, dims in named.items():
        for name, original in zip(dims, inputs[value]):
            if isinstance(name, str) and name not in trials:
                number = original if isinstance(original, int) and original > 0 else OPEN_SIZES.get(name, 8)
                trials[name] = trial_numbers(name, number, len(trials), step, limits.get(name))
    return trials


def fixed(named, graph, names):
    """The same with the exported numbers for these names; names of the model itself stay."""
    inputs = {value.name: dims_of(value) for value in graph.input}
    return {value: [old if new in names else new for new, old in zip(dims, inputs[value])]
            for value, dims in named.items()}


def opened(model, named, step):
    limits = {}
    while True:
        try:
            opening = Opening(model, named, named_trials(model.graph, named, step, limits))
            opening.follow()
            return opening
        except Limited as limit:
            if limit.name in limits:
                raise Unfit(f"'{limit.table}' has only {limit.rows} rows") from limit
            limits[limit.name] = limit.rows


def attempts(names, keep):
    """What to leave as it is, least first, and the step of an image's trials."""
    for more in ((), IMAGE, ("sequence",), ("sequence", *IMAGE)):
        if more and not set(more) & (set(names) - set(keep)):
            continue
        steps = STEPS if set(IMAGE) & (set(names) - set(keep) - set(more)) else (1,)
        yield from (((*keep, *more), step) for step in steps)


def open_model(model, keep, given):
    """The opening that leaves least as it is, its step, and why others did not do, by what they tried to open."""
    named = named_inputs(model.graph, given)
    names = list(dict.fromkeys(dim for dims in named.values() for dim in dims if isinstance(dim, str)))
    reasons = collections.OrderedDict()
    for left, step in attempts(names, keep):
        try:
            return opened(model, fixed(named, model.graph, left), step), step, reasons
        except Unfit as error:
            reasons.setdefault(", ".join(name for name in names if name not in left), str(error))
    raise SystemExit("open_sizes.py: no size can be open:\n" + "\n".join(f"  {k}: {v}" for k, v in reasons.items()))


def report(opening, step, reasons, named_before):
    for names, reason in reasons.items():
        print(f"not all of {names}: {reason}", file=sys.stderr)
    for name, numbers in opening.trials.items():
        limit = opening.limits.get(name)
        notes = ["as it was" if name in named_before else f"exported with {numbers[0]}"]
        notes += [f"at most {limit[0]}, the rows of '{limit[1]}'"] if limit else []
        notes += [f"in steps of {step}"] * (step > 1 and name in IMAGE)
        print(f"open: {name} ({'; '.join(notes)})", file=sys.stderr)
    if opening.unknown():
        print(f"warning: onnx does not know the shape of '{opening.unknown()}': sizes written behind it stay",
              file=sys.stderr)
    for name in opening.outputs_without("batch"):
        print(f"warning: output '{name}' does not grow with the batch", file=sys.stderr)


def copy_weights(model, source, target):
    """Files of weights, to the new model's folder."""
    tensors = [tensor for tensor in model.graph.initializer if tensor.data_location == TensorProto.EXTERNAL]
    places = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
    for place in sorted(places):
        old, new = os.path.join(source, place), os.path.join(target, place)
        if os.path.exists(old) and not os.path.exists(new):
            os.makedirs(os.path.dirname(new) or ".", exist_ok=True)
            shutil.copy(old, new)


def parse_input(text):
    name, separator, dims = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=DIMENSION,...")
    return name, [int(dim) if dim.lstrip("-").isdigit() else dim for dim in dims.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--keep", default="", help="names of sizes that stay numbers")
    parser.add_argument("--input", action="append", default=[], type=parse_input, metavar="NAME=DIMENSION,...")
    options = parser.parse_args()
    model = onnx.load(options.model, load_external_data=False)
    if len(model.functions) > 0:
        model = onnx.inliner.inline_local_functions(model)
    named_before = {dim for value in model.graph.input for dim in dims_of(value) if isinstance(dim, str)}
    keep = tuple(name for name in options.keep.split(",") if name)
    opening, step, reasons = open_model(model, keep, dict(options.input))
    result = opening.written()
    try:
        opening.verify(result)
    except (Unfit, onnx.shape_inference.InferenceError) as error:
        raise SystemExit(f"open_sizes.py: what was found does not fit at other sizes, please report it: {error}") from error
    copy_weights(result, os.path.dirname(options.model), os.path.dirname(options.output))
    onnx.save_model(result, options.output)
    report(opening, step, reasons, named_before)


if __name__ == "__main__":
    main()
