#!/usr/bin/env python3
"""Write what the fuzz target starts from: small models of the ONNX node tests and the hostile models.

usage: make_seeds.py FOLDER [CASES]

CASES is a folder that graph_fuzz --save wrote. Files of more than 4 KB are left out. Needs numpy and onnx.
"""
import argparse
import pathlib
import shutil
import tempfile

import onnx

import hostile_case
import hostile_models

LARGEST = 4096


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("cases", type=pathlib.Path, nargs="?")
    options = parser.parse_args()
    target = options.folder
    target.mkdir(parents=True, exist_ok=True)
    models = {}
    for kind in ("node", "simple", "pytorch-operator"):
        for path in (pathlib.Path(onnx.__file__).parent / "backend/test/data" / kind).glob("*/model.onnx"):
            models[f"{kind}_{path.parent.name}"] = path
    for path in options.cases.glob("*/model.onnx") if options.cases else ():
        models[f"random_{path.parent.name}"] = path
    with tempfile.TemporaryDirectory() as root:
        hostile_models.add_all_cases()
        for group, name, write, _ in hostile_case.CASES:
            if group == "size":  # they take seconds
                continue
            folder = pathlib.Path(root, f"{group}_{name}")
            folder.mkdir()
            models[folder.name] = pathlib.Path(write(folder))
        small = {name: path for name, path in models.items() if path.is_file() and path.stat().st_size <= LARGEST}
        for name, path in small.items():
            shutil.copyfile(path, target / name)
    print(f"{len(small)} files")


if __name__ == "__main__":
    main()
