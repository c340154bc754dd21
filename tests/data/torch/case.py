"""One operation as a captured graph, with inputs and what torch computed of them."""

import torch

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64", torch.int64: "i64",
          torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128"}
inf = float("inf")
aten = torch.ops.aten


def type_text(value):
    return "none" if value is None else f"{DTYPES[value.dtype]}[{','.join(map(str, value.shape))}]"


def numbers(tensor):
    values = tensor.clone().contiguous().flatten()  # the clone of zeros that were not written has memory
    if values.dtype == torch.bool:
        values = values.to(torch.int64)
    return " ".join(repr(value) for value in values.tolist())


def dense_strides(tensor):
    strides, step = [], 1
    for extent in reversed(tensor.shape):
        strides.insert(0, step)
        step *= extent
    return strides


def real(*shape, dtype=torch.float32, low=-2.0, high=2.0):
    """Multiples of 1/64, so that texts are short."""
    steps = torch.randint(int(low * 64), int(high * 64) + 1, shape)
    return (steps.double() / 64).to(dtype)


def whole(*shape, low=-5, high=6, dtype=torch.int64):
    return torch.randint(low, high, shape).to(dtype)


def truth(*shape):
    return torch.randint(0, 2, shape).bool()


class Case:
    def __init__(self, name, op, *arguments, results=None, strided=(), **keywords):
        self.name = name
        self.op = op
        self.inputs = []
        words = [self.literal(argument, strided) for argument in arguments]
        words += [f"{key}={self.literal(value, strided)}" for key, value in keywords.items()]
        value = op(*arguments, **keywords)
        outputs = list(value) if isinstance(value, (tuple, list)) else [value]
        is_tuple = isinstance(value, (tuple, list))
        wanted = results if results is not None else [i for i, output in enumerate(outputs) if output is not None]
        types = f"({', '.join(map(type_text, outputs))})" if is_tuple else type_text(outputs[0])
        self.lines = [f"%{name}: {types} = {op}({', '.join(words)})"]
        self.returned = []
        self.answers = [outputs[i] for i in wanted]
        for i in wanted:
            if is_tuple:
                self.lines.append(f"%{name}_{i}: {type_text(outputs[i])} = getitem(%{name}, {i})")
            self.returned.append(f"%{name}_{i}" if is_tuple else f"%{name}")

    def literal(self, value, strided):
        if isinstance(value, torch.Tensor):
            name = f"{self.name}_x{len(self.inputs)}"
            self.inputs.append((name, value))
            return f"%{name}"
        if value is None or isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (int, float)):
            return repr(value)
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(self.literal(each, strided) for each in value) + "]"
        if isinstance(value, torch.dtype):
            return DTYPES[value]
        return "'" + str(value).replace("torch.", "") + "'"

    def text(self):
        head = [f"# case {self.name}"]
        declared = []
        for name, value in self.inputs:
            dense = list(value.stride()) == dense_strides(value) or value.numel() <= 1
            strides = "" if dense else f" strides [{','.join(map(str, value.stride()))}]"
            declared.append(f"%{name}: {type_text(value)}{strides}")
            head.append(f"# %{name} = {numbers(value)}")
        head += [f"# = {numbers(answer)}" for answer in self.answers]
        return "\n".join([*head, f"torch {self.name}({', '.join(declared)}) {{", *(f"  {line}" for line in self.lines),
                          f"  return {', '.join(self.returned)}", "}", ""])


class ComplexCase:
    """An operation on complex numbers, which are given and answered as pairs of real ones: `arguments` are tensors, numbers or
    lists, and those that are complex are views of pairs."""

    def __init__(self, name, op, *arguments, **keywords):
        self.name = name
        self.inner = Case(name, op, *arguments, **keywords)

    def text(self):
        declared, head, before = [], [], []
        for name, value in self.inner.inputs:
            given = torch.view_as_real(value) if value.is_complex() else value
            inner_name = f"{name}_pairs" if value.is_complex() else name
            declared.append(f"%{inner_name}: {type_text(given)}")
            head.append(f"# %{inner_name} = {numbers(given)}")
            if value.is_complex():
                before.append(f"%{name}: {type_text(value)} = aten.view_as_complex.default(%{inner_name})")
        after, returned = [], []
        for name, answer in zip(self.inner.returned, self.inner.answers):
            returned.append(f"{name}_pairs" if answer.is_complex() else name)
            pairs = torch.view_as_real(answer.resolve_conj()) if answer.is_complex() else answer
            head.append(f"# = {numbers(pairs)}")
            if answer.is_complex():
                after.append(f"{name}_pairs: {type_text(pairs)} = aten.view_as_real.default({name})")
        lines = "\n".join(f"  {line}" for line in [*before, *self.inner.lines, *after])
        return "\n".join([f"# case {self.name}", *head, f"torch {self.name}({', '.join(declared)}) {{", lines,
                          f"  return {', '.join(returned)}", "}", ""])
