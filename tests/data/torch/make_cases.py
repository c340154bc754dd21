"""Writes the cases of this folder anew: captured graphs of one operation each, with inputs, and what torch computed.

usage: make_cases.py [FOLDER]; needs torch, transformers, and the package sylvite on the path. A file FAMILY.cases holds cases one after another. Each begins with a line
"# case NAME"; lines "# %name = numbers" give inputs, "# = numbers" the results in order, row by row; "# near" follows where
results may differ by more than rounding.
"""

import pathlib
import random
import sys

import torch

from cases_complex import complex
from cases_linalg import linalg, special
from cases_places import creation, gather, shape
from cases_products import matmul, window
from cases_values import draws, normalization, pointwise, reduction


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for family in (pointwise, shape, creation, matmul, reduction, normalization, window, gather, draws, complex, special,
                   linalg):
        torch.manual_seed(1)
        random.seed(1)
        (folder / f"{family.__name__}.cases").write_text("".join(case.text() for case in family()))


if __name__ == "__main__":
    main()
