#!/usr/bin/env python3
"""Geometric means of tables in pages of docs/figures/, by section and of all: a row for each column of ratios.

usage: table_means.py PAGE.md... [--columns ratio,"batch 1"]

  table_means.py docs/figures/gpu_images.md docs/figures/gpu_others.md
"""
import argparse
import math
import pathlib
import re


def tables(page):
    """(section, names of columns, rows of cells) for each table of a page."""
    section, names, rows = "", None, []
    for line in [*page.read_text().splitlines(), ""]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if names is None:
                names = cells
            elif not set("".join(cells)) <= set("-"):
                rows.append(cells)
        elif names:
            yield section, names, rows
            names, rows = None, []
        if line.startswith("#"):
            section = line.strip("# ")


def describe(what, values):
    if values:
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"{what}: {len(values)}, {mean:.2f}, least {min(values):.2f}, {sum(value < 1 for value in values)} below 1.0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--columns", default="ratio,batch 1")
    options = parser.parse_args()
    everything = {column: [] for column in options.columns.split(",")}
    for section, names, rows in (table for page in options.pages for table in tables(page)):
        for column in [column for column in everything if column in names]:
            found = [row[names.index(column)] for row in rows if row[0] != "geometric mean, least"]
            values = [float(cell) for cell in found if re.fullmatch(r"\d+\.\d+", cell)]
            describe(f"{section}, {column}", values)
            everything[column] += values
    for column, values in everything.items():
        describe(f"all, {column}", values)


if __name__ == "__main__":
    main()
