"""Pictures of the gallery, by the standard library and NumPy alone: PNG files of pixels, SVG files of curves."""

import struct
import zlib
from html import escape
from pathlib import Path

import numpy as np

COLOURS = ("#1f6fb4", "#d1582c", "#3a923a", "#8458a8", "#7f6a00")


def write_png(path, pixels):
    """Write pixels as a PNG: uint8 of shape [rows, columns, 3] in colour, or [rows, columns] in grey."""
    pixels = np.ascontiguousarray(pixels, np.uint8)
    rows, columns = pixels.shape[:2]
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)  # filter 0: as they are

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def colours(values, low, high):
    """Colours of numbers from `low` (dark blue) through green to `high` (yellow): uint8 of the shape and 3."""
    stops = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], float)
    place = np.clip((np.asarray(values, float) - low) / (high - low or 1.0), 0, 1) * (len(stops) - 1)
    left = np.minimum(place.astype(int), len(stops) - 2)
    part = (place - left)[..., np.newaxis]
    return np.round(stops[left] * (1 - part) + stops[left + 1] * part).astype(np.uint8)


def write_svg(path, width, height, elements):
    """Write an SVG on a light ground, of elements as text; what does not fit is cut off by the picture's edge."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    text = "\n".join([f'{head} font-family="sans-serif" font-size="13" fill="#222222">', ground, *elements, "</svg>", ""])
    Path(path).write_text(text, encoding="utf-8")


def label(x, y, text, anchor="middle"):
    """The SVG element of a text."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def polyline(points, colour, width=1.5):
    """The SVG element of a line through points [n, 2]."""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def ticks(low, high):
    """Round numbers that begin at or below `low`, end at or above `high`, and are at most nine."""
    size = 10.0 ** np.floor(np.log10((high - low) or 1.0))
    step = next(size * part for part in (0.2, 0.25, 0.5, 1.0, 2.0) if (high - low) / (size * part) <= 7)
    return step * np.arange(np.floor(low / step), np.ceil(high / step) + 1)


def write_chart(path, title, axes, curves, dots=()):
    """Write an SVG of curves: `axes` are the texts of x and y, `curves` and `dots` triples of a name, x and y.

    Colours follow the order of the curves, then of the dots.
    """
    width, height, left, right, top, bottom = 640, 400, 60, 25, 60, 50
    every_x, every_y = (ticks(min(values), max(values)) for values in _extremes([*curves, *dots]))

    def placed(x, y):
        across = left + (np.asarray(x, float) - every_x[0]) / (every_x[-1] - every_x[0]) * (width - left - right)
        down = height - bottom - (np.asarray(y, float) - every_y[0]) / (every_y[-1] - every_y[0]) * (height - top - bottom)
        return np.stack([across, down], axis=1)

    elements = [label(width / 2, 20, title), label(width / 2, height - 10, axes[0]), label(12, top - 16, axes[1], "start")]
    for x, place in zip(every_x, placed(every_x, every_y[0] + 0 * every_x)[:, 0], strict=True):
        elements.append(f'<path d="M{place:.1f} {top}V{height - bottom}" stroke="#dddddd"/>')
        elements.append(label(round(place, 1), height - bottom + 18, f"{x:.6g}"))
    for y, place in zip(every_y, placed(every_x[0] + 0 * every_y, every_y)[:, 1], strict=True):
        elements.append(f'<path d="M{left} {place:.1f}H{width - right}" stroke="#dddddd"/>')
        elements.append(label(left - 6, round(place, 1) + 4, f"{y:.6g}", "end"))
    for number, (name, x, y) in enumerate([*curves, *dots]):
        points, colour = placed(x, y), COLOURS[number % len(COLOURS)]
        circles = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in points)
        elements.append(polyline(points, colour) if number < len(curves) else f'<g fill="{colour}">{circles}</g>')
        elements.append(f'<g fill="{colour}">{label(width - right - 170 * number, top - 16, name, "end")}</g>')
    write_svg(path, width, height, elements)


def _extremes(series):
    """The least and the greatest number of all series, of x and of y."""
    return [[extreme(one[place]) for one in series for extreme in (np.min, np.max)] for place in (1, 2)]
