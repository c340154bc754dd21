"""A bar chart of ratios as SVG, for people who would rather look."""
BAR, GAP, LEFT, WIDTH = 16, 6, 240, 420


def draw(rows, path):
    """One bar a row: the best peer's time over Sylvite's. The line marks 1: equally fast."""
    most = max(1.5, max(row["ratio"] for row in rows))
    scale = WIDTH / most
    height = len(rows) * (BAR + GAP) + 50
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" '
             'font-family="sans-serif" font-size="12">',
             f'<text x="{LEFT}" y="18">best peer\'s time / Sylvite\'s time (longer is better)</text>']
    for i, row in enumerate(rows):
        y = 30 + i * (BAR + GAP)
        colour = "#3a7d44" if row["ratio"] >= 1 else "#b5483a"
        label = f"{row['model']}, {row['precision']}, {row['threads']} thread{'s' if row['threads'] > 1 else ''}"
        parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{label}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{row["ratio"] * scale:.1f}" height="{BAR}" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + row["ratio"] * scale + 5:.1f}" y="{y + 12}">{row["ratio"]:.2f}</text>')
    one = LEFT + scale
    parts.append(f'<line x1="{one:.1f}" y1="26" x2="{one:.1f}" y2="{height - 16}" stroke="black" stroke-dasharray="3"/>')
    parts.append("</svg>\n")
    with open(path, "w") as file:
        file.write("\n".join(parts))
