"""Small valid and broken TIFF, WebP and BMP files for make_test_images.py. Its TIFF writer covers every kind that the
reader knows: byte orders, strips and tiles, planes, depths, compressions. Their pixels equal the PNG and PNM files in
the same folder."""
import struct
import zlib

import cv2
import numpy as np

BYTE, ASCII, SHORT, LONG = 1, 2, 3, 4
SIZES = {BYTE: 1, ASCII: 1, SHORT: 2, LONG: 4}
NONE, LZW, DEFLATE, PACKBITS = 1, 5, 8, 32773
MIN_IS_WHITE, MIN_IS_BLACK, RGB, PALETTE, CMYK = 0, 1, 2, 3, 5


def packbits(data):
    """Encodes a row as literal runs."""
    return b"".join(bytes([len(data[i:i + 128]) - 1]) + data[i:i + 128] for i in range(0, len(data), 128))


COMPRESSORS = {NONE: bytes, DEFLATE: lambda data: zlib.compress(data, 9)}


def sample_rows(pixels, bits, order):
    """Returns rows of samples, each padded to whole bytes."""
    rows = pixels.reshape(pixels.shape[0], -1)
    if bits == 16:
        return [row.astype(order + "u2").tobytes() for row in rows]
    if bits == 8:
        return [row.astype(np.uint8).tobytes() for row in rows]
    spread = rows[..., None] >> np.arange(bits - 1, -1, -1) & 1
    return [np.packbits(row.reshape(-1).astype(np.uint8)).tobytes() for row in spread]


def tiff(pixels, bits, photometric, order="<", compression=NONE, rows_per_strip=5, tile=None, planes=False, extra=()):
    """Returns a file of pixels [H, W, C]. tile: (width, height); extra: entries (tag, kind, values), which replace others."""
    height, width, channels = pixels.shape
    parts = [pixels[..., k:k + 1] for k in range(channels)] if planes and channels > 1 else [pixels]
    pieces = []
    for part in parts:
        if tile:
            padded = np.zeros((-(-height // tile[1]) * tile[1], -(-width // tile[0]) * tile[0], part.shape[2]), part.dtype)
            padded[:height, :width] = part
            blocks = [padded[y:y + tile[1], x:x + tile[0]] for y in range(0, padded.shape[0], tile[1])
                      for x in range(0, padded.shape[1], tile[0])]
        else:
            blocks = [part[y:y + rows_per_strip] for y in range(0, height, rows_per_strip)]
        for block in blocks:
            rows = sample_rows(block, bits, order)
            pieces.append(b"".join(map(packbits, rows)) if compression == PACKBITS else
                          COMPRESSORS[compression](b"".join(rows)))
    entries = {256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, [bits] * channels), 259: (SHORT, [compression]),
               262: (SHORT, [photometric]), 277: (SHORT, [channels]), 284: (SHORT, [2 if len(parts) > 1 else 1])}
    if tile:
        entries.update({322: (SHORT, [tile[0]]), 323: (SHORT, [tile[1]]), 324: (LONG, pieces),
                        325: (LONG, [len(p) for p in pieces])})
    else:
        entries.update({273: (LONG, pieces), 278: (LONG, [rows_per_strip]), 279: (LONG, [len(p) for p in pieces])})
    entries.update({tag: (kind, values) for tag, kind, values in extra})
    return write_tiff(entries, pieces, order)


def write_tiff(entries, pieces, order):
    """Writes header, data, directory, then long values. For an entry whose values are pieces of data, stores their
    offsets."""
    data, places = b"", []
    for piece in pieces:
        places.append(8 + len(data))
        data += piece + bytes(len(piece) % 2)
    directory = 8 + len(data)
    behind = directory + 2 + 12 * len(entries) + 4
    body, tail = struct.pack(order + "H", len(entries)), b""
    for tag in sorted(entries):
        kind, values = entries[tag]
        values = places if values is pieces else values
        packed = struct.pack(order + str(len(values)) + {BYTE: "B", SHORT: "H", LONG: "I"}[kind], *values)
        if len(packed) > 4:
            place = behind + len(tail)
            tail += packed + bytes(len(packed) % 2)
            packed = struct.pack(order + "I", place)
        body += struct.pack(order + "HHI", tag, kind, len(values)) + packed.ljust(4, b"\0")
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return mark + struct.pack(order + "I", directory) + data + body + bytes(4) + tail


def colour_map(entries):
    """Returns the palette of the PNG files in TIFF's 16 bits: all reds, all greens, all blues."""
    colours = [[(i * k + 5 * k) % 256 * 257 for i in range(entries)] for k in (37, 91, 151)]
    return [(320, SHORT, sum(colours, []))]


def add_good_tiff(files, samples, corners):
    for bits in (1, 2, 4, 8, 16):
        files.add(f"tiff_gray{bits}.tif", tiff(samples(1, bits), bits, MIN_IS_BLACK, "<>"[bits % 4 == 0]), "valid",
                  note="strips")
        if bits < 16:
            files.add(f"tiff_palette{bits}.tif", tiff(samples(1, bits), bits, PALETTE, extra=colour_map(1 << bits)),
                      "valid", note="palette")
    white = (255 - samples(1, 8).astype(int)).astype(np.uint32)
    files.add("tiff_white.tif", tiff(white, 8, MIN_IS_WHITE), "valid", note="0 is white: pixels as in tiff_gray8.tif")
    for bits in (8, 16):
        for order, name in (("<", "little"), (">", "big")):
            files.add(f"tiff_rgb{bits}_{name}.tif", tiff(samples(3, bits), bits, RGB, order), "valid", note=name)
        files.add(f"tiff_planes{bits}.tif", tiff(samples(3, bits), bits, RGB, planes=True), "valid", note="planes")
        files.add(f"tiff_tiles{bits}.tif", tiff(samples(3, bits), bits, RGB, tile=(16, 16)), "valid", note="tiles")
        files.add(f"tiff_tiled_planes{bits}.tif", tiff(samples(3, bits), bits, RGB, tile=(16, 16), planes=True), "valid",
                  note="tiles of planes")
    alpha = [(338, SHORT, [2])]
    files.add("tiff_rgba8.tif", tiff(samples(4, 8), 8, RGB, extra=alpha), "valid", note="alpha")
    files.add("tiff_graya8.tif", tiff(samples(2, 8), 8, MIN_IS_BLACK, extra=alpha), "valid", note="alpha")
    files.add("tiff_graya8_planes.tif", tiff(samples(2, 8), 8, MIN_IS_BLACK, planes=True, extra=alpha), "valid")
    files.add("tiff_packbits.tif", tiff(samples(3, 8), 8, RGB, compression=PACKBITS), "valid", note="packbits")
    files.add("tiff_deflate.tif", tiff(samples(3, 8), 8, RGB, compression=DEFLATE), "valid", note="deflate")
    encoded = cv2.imencode(".tif", np.ascontiguousarray(samples(3, 8)[..., ::-1].astype(np.uint8)),
                           [cv2.IMWRITE_TIFF_COMPRESSION, LZW])[1]
    files.add("tiff_lzw.tif", encoded.tobytes(), "valid", note="LZW with a predictor")
    for orientation in range(1, 9):
        data = tiff(corners[..., None].astype(np.uint32), 8, MIN_IS_BLACK, extra=[(274, SHORT, [orientation])])
        files.add(f"tiff_turned{orientation}.tif", data, "valid", 24, 16, f"orientation {orientation}, stored size listed")


def add_broken_tiff(files, samples):
    good = tiff(samples(3, 8), 8, RGB)
    for cut in (4, 8, 9, len(good) // 2, len(good) - 30):
        files.add(f"tiff_cut_{cut}.tif", good[:cut], "malformed", note=f"the first {cut} bytes")
    broken = {"no_size": [(256, LONG, [0])], "huge": [(256, LONG, [0x7FFFFFFF]), (257, LONG, [0x7FFFFFFF])],
              "bomb": [(256, LONG, [40000]), (257, LONG, [40000])], "bits": [(258, SHORT, [12] * 3)],
              "signed": [(339, SHORT, [2] * 3)], "float": [(339, SHORT, [3] * 3)], "cmyk": [(262, SHORT, [CMYK])],
              "compression": [(259, SHORT, [999])], "strips_far": [(273, LONG, [0xFFFFFF00] * 3)],
              "strips_short": [(279, LONG, [1] * 3)]}
    for name, extra in broken.items():
        files.add(f"tiff_{name}.tif", tiff(samples(3, 8), 8, RGB, extra=extra), "malformed")
    loop = bytearray(tiff(samples(1, 8), 8, MIN_IS_BLACK, tile=(16, 16), extra=[(322, SHORT, [0])]))
    files.add("tiff_tile0.tif", loop, "malformed", note="tiles without width")


def webp_chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def webp_extended(data, flags, width, height, more):
    """Returns the same picture with a VP8X header and further chunks after it."""
    head = bytes([flags, 0, 0, 0]) + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = b"WEBP" + webp_chunk(b"VP8X", head) + data[12:] + more
    return b"RIFF" + struct.pack("<I", len(body)) + body


def add_webp(files, samples, corners, exif_tiff):
    rgb = np.ascontiguousarray(samples(3, 8)[..., ::-1].astype(np.uint8))
    lossless = cv2.imencode(".webp", rgb, [cv2.IMWRITE_WEBP_QUALITY, 101])[1].tobytes()
    lossy = cv2.imencode(".webp", rgb, [cv2.IMWRITE_WEBP_QUALITY, 80])[1].tobytes()
    alpha = cv2.imencode(".webp", np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)]),
                         [cv2.IMWRITE_WEBP_QUALITY, 101])[1].tobytes()
    files.add("webp_lossless.webp", lossless, "valid", note="pixels as in png_rgb8.png")
    files.add("webp_lossy.webp", lossy, "valid")
    files.add("webp_alpha.webp", alpha, "valid", note="pixels as in png_rgb8.png")
    picture = cv2.imencode(".webp", np.dstack([corners] * 3), [cv2.IMWRITE_WEBP_QUALITY, 101])[1].tobytes()
    for orientation in range(1, 9):
        payload = (b"Exif\0\0" if orientation % 2 else b"") + exif_tiff(orientation)
        data = webp_extended(picture, 8, 24, 16, webp_chunk(b"EXIF", payload))
        files.add(f"webp_exif{orientation}.webp", data, "valid", 24, 16, f"EXIF orientation {orientation}")
    files.add("webp_exif_cut.webp", webp_extended(picture, 8, 24, 16, webp_chunk(b"EXIF", exif_tiff(6)[:20])), "valid", 24,
              16, "damaged EXIF")
    for cut in (12, 20, 30, len(lossless) // 2):
        files.add(f"webp_cut_{cut}.webp", lossless[:cut], "malformed", note=f"the first {cut} bytes")
    files.add("webp_lossy_cut.webp", lossy[:len(lossy) // 2], "malformed")
    files.add("webp_animation.webp", webp_extended(picture, 2, 24, 16, b""), "malformed", note="says it is an animation")


def bmp(pixels, bits, header=40, compression=0, palette=b"", masks=b"", from_top=False, colours=0):
    """Returns a BMP. pixels: rows of bytes as stored, from the top."""
    height = len(pixels)
    rows = [row + bytes(-len(row) % 4) for row in (pixels if from_top else pixels[::-1])]
    data = b"".join(rows)
    size = (21, 13)
    if header == 12:
        head = struct.pack("<IHHHH", 12, *size, 1, bits)
    else:
        head = struct.pack("<IiiHHIIiiII", header, size[0], -height if from_top else height, 1, bits, compression, len(data),
                           2835, 2835, colours, 0)
        head += masks if header > 40 else b""
        head += bytes(header - len(head))
        head += masks if header == 40 else b""
    place = 14 + len(head) + len(palette)
    return b"BM" + struct.pack("<IHHI", place + len(data), 0, 0, place) + head + palette + data


def add_bmp(files, samples):
    colours = lambda count: b"".join(bytes((i * k + 5 * k) % 256 for k in (151, 91, 37)) + b"\0" for i in range(count))
    bgr = [row[:, ::-1].astype(np.uint8).tobytes() for row in samples(3, 8)]
    bgra = [np.dstack([row[None, :, ::-1], np.full((1, 21, 1), 7)]).astype(np.uint8).tobytes() for row in samples(3, 8)]
    for bits in (1, 4, 8):
        rows = sample_rows(samples(1, bits), bits, "<")
        files.add(f"bmp_palette{bits}.bmp", bmp(rows, bits, palette=colours(1 << bits)), "valid", note="palette")
    core = b"".join(colours(256)[i:i + 3] for i in range(0, 1024, 4))
    files.add("bmp_core.bmp", bmp(sample_rows(samples(1, 8), 8, "<"), 8, 12, palette=core), "valid", note="OS/2 header")
    files.add("bmp_24.bmp", bmp(bgr, 24), "valid")
    files.add("bmp_24_top.bmp", bmp(bgr, 24, from_top=True), "valid", note="rows from the top")
    files.add("bmp_32.bmp", bmp(bgra, 32), "valid")
    masks = struct.pack("<III", 0xFF0000, 0xFF00, 0xFF)
    files.add("bmp_32_masks.bmp", bmp(bgra, 32, compression=3, masks=masks), "valid")
    files.add("bmp_32_v5.bmp", bmp(bgra, 32, 124, compression=3, masks=masks), "valid", note="V5 header")
    rgb = samples(3, 8)
    high = ((rgb[..., 0] >> 3) << 11 | (rgb[..., 1] >> 2) << 5 | rgb[..., 2] >> 3).astype("<u2")
    files.add("bmp_565.bmp", bmp([row.tobytes() for row in high], 16, compression=3,
                                 masks=struct.pack("<III", 0xF800, 0x07E0, 0x001F)), "valid")
    high = ((rgb[..., 0] >> 3) << 10 | (rgb[..., 1] >> 3) << 5 | rgb[..., 2] >> 3).astype("<u2")
    files.add("bmp_555.bmp", bmp([row.tobytes() for row in high], 16), "valid")
    good = bmp(bgr, 24)
    for cut in (18, 30, 54, len(good) - 1):
        files.add(f"bmp_cut_{cut}.bmp", good[:cut], "malformed", note=f"the first {cut} bytes")
    patch = lambda at, kind, value: good[:at] + struct.pack("<" + kind, value) + good[at + struct.calcsize(kind):]
    eight = bmp(sample_rows(samples(1, 8), 8, "<"), 8, palette=colours(3), colours=3)
    holes = bmp(bgra, 32, compression=3, masks=struct.pack("<III", 0xF0F000, 0xFF00, 0xFF))
    broken = {"width0": patch(18, "i", 0), "width_negative": patch(18, "i", -21), "huge": patch(18, "i", 0x7FFFFFFF),
              "height_min": patch(22, "i", -0x80000000), "planes": patch(26, "H", 3), "bits": patch(28, "H", 13),
              "rle": patch(30, "I", 1), "data_far": patch(10, "I", 0xFFFFFFF0), "palette_short": eight, "mask_holes": holes,
              "palette_long": bmp(bgr, 8, colours=300)}
    for name, data in broken.items():
        files.add(f"bmp_{name}.bmp", data, "malformed")
