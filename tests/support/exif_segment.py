"""Makes JPEGs with an EXIF segment for tests: orientation, focal length, GPS position."""
import struct

BYTE, ASCII, SHORT, LONG, RATIONAL = 1, 2, 3, 4, 5
_WIDTHS = {BYTE: "B", ASCII: "B", SHORT: "H", LONG: "I", RATIONAL: "II"}


def _directory(entries, at):
    """Returns the bytes of a directory that begins at `at`. Entries are (tag, type, values) in the order of tags."""
    head, tail = struct.pack(">H", len(entries)), b""
    outside = at + 2 + 12 * len(entries) + 4
    for tag, kind, values in sorted(entries):
        count = len(values) // len(_WIDTHS[kind])
        data = struct.pack(f">{_WIDTHS[kind] * count}", *values)
        if len(data) > 4:
            data, tail = struct.pack(">I", outside + len(tail)), tail + data
        head += struct.pack(">HHI", tag, kind, count) + data.ljust(4, b"\0")
    return head + bytes(4) + tail


def with_exif(jpeg, first=(), exif=(), gps=()):
    """Returns the file with a segment of these entries before all other segments."""
    pointers = [(0x8769, LONG, [0])] * bool(exif) + [(0x8825, LONG, [0])] * bool(gps)
    at = 8 + len(_directory([*first, *pointers], 8))
    places, tail = [], b""
    for tag, entries in ((0x8769, exif), (0x8825, gps)):
        if entries:
            places.append((tag, LONG, [at + len(tail)]))
            tail += _directory(entries, at + len(tail))
    segment = b"Exif\0\0MM\0*\0\0\0\x08" + _directory([*first, *places], 8) + tail
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + jpeg[2:]


def orientation(value):
    return [(0x0112, SHORT, [value])]


def camera_model(make, model):
    return [(0x010F, ASCII, [*make.encode(), 0]), (0x0110, ASCII, [*model.encode(), 0])]


def equivalent_focal_length(millimetres):
    """Returns the entry of the focal length in 35 mm equivalent."""
    return [(0xA405, SHORT, [millimetres])]


def focal_plane(millimetres, pixels_per_unit, unit):
    """Returns entries of a focal length and the resolution of the sensor."""
    return [(0x920A, RATIONAL, [round(millimetres * 1000), 1000]), (0xA20E, RATIONAL, [round(pixels_per_unit * 1000), 1000]),
            (0xA210, SHORT, [unit])]


def position(latitude, longitude, altitude=None):
    """Returns the entries of a GPS position in degrees and metres."""
    def degrees(value):
        whole, minutes = divmod(round(abs(value) * 3600e4), 3600 * 10000)
        return [whole, 1, *divmod(minutes, 60 * 10000)[:1], 1, minutes % (60 * 10000), 10000]

    entries = [(1, ASCII, [ord("S" if latitude < 0 else "N"), 0]), (2, RATIONAL, degrees(latitude)),
               (3, ASCII, [ord("W" if longitude < 0 else "E"), 0]), (4, RATIONAL, degrees(longitude))]
    if altitude is not None:
        entries += [(5, BYTE, [int(altitude < 0)]), (6, RATIONAL, [round(abs(altitude) * 100), 100])]
    return entries
