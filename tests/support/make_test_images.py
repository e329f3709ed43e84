#!/usr/bin/env python3
"""Makes the small valid and broken image files of tests/data/images and their manifest.

Needs NumPy and OpenCV. usage: make_test_images.py [FOLDER]
Without FOLDER it rewrites the files of the repository.
"""
import os
import struct
import sys
import zlib

import cv2
import numpy as np

import codec_images

WIDTH, HEIGHT = 21, 13
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
COLOUR_TYPES = {0: ("gray", 1, (1, 2, 4, 8, 16)), 2: ("rgb", 3, (8, 16)), 3: ("palette", 1, (1, 2, 4, 8)),
                4: ("graya", 2, (8, 16)), 6: ("rgba", 4, (8, 16))}


class Collection:
    """The files written so far, and their lines in the manifest."""

    def __init__(self, folder):
        self.folder = folder
        self.lines = ["file\tclass\twidth\theight\tnote"]
        os.makedirs(folder, exist_ok=True)

    def add(self, name, data, kind, width=WIDTH, height=HEIGHT, note=""):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(bytes(data))
        if kind == "malformed":
            width = height = "-"
        self.lines.append(f"{name}\t{kind}\t{width}\t{height}\t{note}")

    def finish(self):
        with open(os.path.join(self.folder, "manifest.tsv"), "w", encoding="ascii", newline="\n") as file:
            file.write("\n".join(self.lines) + "\n")


def samples(channels, depth, width=WIDTH, height=HEIGHT):
    """Returns samples of any size that differ in all directions and channels."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    return ((x * 2521 + y * 9677 + c * 21013 + x * y * 61) % (1 << depth)).astype(np.uint32)


# ---- PNG


def chunk(name, data, crc_error=0):
    crc = (zlib.crc32(name + data) ^ crc_error) & 0xFFFFFFFF
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)


def packed_rows(pixels, depth):
    """Returns rows with filter byte 0 and samples packed as PNG packs them."""
    out = b""
    for row in pixels.reshape(pixels.shape[0], -1):
        if depth == 16:
            data = row.astype(">u2").tobytes()
        elif depth == 8:
            data = row.astype(np.uint8).tobytes()
        else:
            bits = "".join(format(int(v), f"0{depth}b") for v in row)
            bits += "0" * (-len(bits) % 8)
            data = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
        out += b"\0" + data
    return out


def raw_image_data(pixels, depth, interlaced):
    if not interlaced:
        return packed_rows(pixels, depth)
    passes = [pixels[y0::dy, x0::dx] for x0, y0, dx, dy in ADAM7]
    return b"".join(packed_rows(part, depth) for part in passes if part.size)


def header(width, height, depth, colour_type, interlaced=False):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, int(interlaced)))


SIGNATURE = b"\x89PNG\r\n\x1a\n"
END = chunk(b"IEND", b"")


def palette_chunk(entries):
    return chunk(b"PLTE", bytes((i * k + 5 * k) % 256 for i in range(entries) for k in (37, 91, 151)))


def png(colour_type, depth, interlaced=False, before_data=b"", width=WIDTH, height=HEIGHT):
    channels = COLOUR_TYPES[colour_type][1]
    data = zlib.compress(raw_image_data(samples(channels, depth, width, height), depth, interlaced), 9)
    head = header(width, height, depth, colour_type, interlaced)
    if colour_type == 3:
        head += palette_chunk(1 << depth)
    return SIGNATURE + head + before_data + chunk(b"IDAT", data) + END


def add_good_png(files):
    for colour_type, (name, _, depths) in COLOUR_TYPES.items():
        for depth in depths:
            files.add(f"png_{name}{depth}.png", png(colour_type, depth), "valid", note=f"colour type {colour_type}")
            files.add(f"png_{name}{depth}_adam7.png", png(colour_type, depth, True), "valid",
                      note="the same, interlaced")
    files.add("png_trns_gray2.png", png(0, 2, before_data=chunk(b"tRNS", b"\0\1")), "valid",
              note="transparent gray value")
    files.add("png_trns_rgb8.png", png(2, 8, before_data=chunk(b"tRNS", bytes(6))), "valid", note="transparent colour")
    files.add("png_trns_palette4.png", png(3, 4, before_data=chunk(b"tRNS", bytes(range(9)))), "valid",
              note="palette with alpha")
    files.add("png_gamma.png", png(0, 8, before_data=chunk(b"gAMA", struct.pack(">I", 100000))), "valid",
              note="gAMA chunk: pixels as in png_gray8.png")
    for width, height in ((1, 1), (1, 9), (9, 1), (3, 2)):
        files.add(f"png_{width}x{height}_adam7.png", png(0, 8, True, width=width, height=height), "valid", width,
                  height, "interlaced with empty passes")
    good = png(0, 8)
    files.add("png_trailing.png", good + b"behind the end", "valid", note="bytes behind IEND")
    files.add("png_no_iend.png", good[:-12], "lenient", note="missing end chunk")
    profile = chunk(b"iCCP", b"bomb\0\0" + zlib.compress(bytes(1 << 22), 9))
    files.add("png_profile_bomb.png", png(0, 8, before_data=profile), "lenient",
              note="4 MiB of zeros as a colour profile")


def add_broken_png(files):
    good = png(2, 8)
    for cut in (7, 8, 20, 33, 45, len(good) // 2, len(good) - 18):
        files.add(f"png_cut_{cut}.png", good[:cut], "malformed", note=f"the first {cut} bytes")
    data = chunk(b"IDAT", zlib.compress(raw_image_data(samples(1, 8), 8, False)))
    gray = header(WIDTH, HEIGHT, 8, 0)
    files.add("png_crc_text.png", SIGNATURE + gray + chunk(b"gAMA", b"\0\1\0\0", 1) + data + END, "lenient",
              note="wrong checksum of a chunk that no pixel needs")
    files.add("png_crc_header.png", SIGNATURE + header(WIDTH, HEIGHT, 8, 0)[:-1] + b"\0" + data + END, "malformed",
              note="wrong checksum of IHDR")
    files.add("png_bomb.png", SIGNATURE + header(40000, 40000, 16, 6) + data + END, "malformed",
              note="1.6 gigapixels in a few bytes")
    files.add("png_side_2e31.png", SIGNATURE + header(0x80000000, 1, 8, 0) + data + END, "malformed", note="width 2^31")
    files.add("png_side_max.png", SIGNATURE + header(0x7FFFFFFF, 0x7FFFFFFF, 8, 0) + data + END, "malformed",
              note="2^62 pixels")
    files.add("png_interlace2.png", SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 2)) +
              data + END, "malformed", note="unknown interlacing")
    files.add("png_long_palette.png", SIGNATURE + header(WIDTH, HEIGHT, 8, 3) + palette_chunk(300) + data + END,
              "malformed", note="300 palette entries")
    files.add("png_short_palette.png", SIGNATURE + header(WIDTH, HEIGHT, 8, 3) + palette_chunk(3) + data + END,
              "lenient", note="indices beyond the palette")
    files.add("png_two_headers.png", SIGNATURE + gray + gray + data + END, "malformed", note="IHDR twice")
    files.add("png_zlib_garbage.png", SIGNATURE + gray + chunk(b"IDAT", bytes(range(200))) + END, "malformed",
              note="no zlib stream in IDAT")
    files.add("png_crlf.png", good.replace(b"\r\n", b"\n"), "malformed", note="line ends converted")


# ---- JPEG


def jpeg(image, *parameters):
    ok, data = cv2.imencode(".jpg", image, list(parameters))
    assert ok
    return data.tobytes()


def with_exif(data, tiff):
    body = b"Exif\0\0" + tiff
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + data[2:]


def exif_tiff(orientation, order=">", kind=3, count=1, directory=8):
    """Returns a TIFF structure with two entries, the second of which is the orientation."""
    mark = b"MM\0*" if order == ">" else b"II*\0"
    value = struct.pack(order + ("HH" if kind == 3 else "I"), *((orientation, 0) if kind == 3 else (orientation,)))
    entries = struct.pack(order + "HHII", 0x0100, 4, 1, 77) + struct.pack(order + "HHI", 0x0112, kind, count) + value
    return mark + struct.pack(order + "I", directory) + struct.pack(order + "H", 2) + entries + bytes(4)


def smooth_picture(width, height, channels):
    y, x = np.mgrid[0:height, 0:width]
    planes = [(40 + 3 * k + (x * (5 + k)) % 97 + (y * (7 + 2 * k)) % 89).astype(np.uint8) for k in range(channels)]
    return planes[0] if channels == 1 else np.dstack(planes)


def corner_picture():
    """Returns a distinct gray in each 8 x 8 block, so that every orientation gives a different picture."""
    blocks = (np.arange(6).reshape(2, 3) * 40 + 20).astype(np.uint8)
    return np.kron(blocks, np.ones((8, 8), np.uint8))


def scans(data):
    """Returns the offsets of all SOS markers and of the end marker. Entropy-coded data cannot contain them."""
    places = []
    at = 2
    while data[at + 1] != 0xD9:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2:at + 4])[0]
        if marker == 0xDA:
            places.append(at)
        at += 2 + length
        while marker == 0xDA and not (data[at] == 0xFF and data[at + 1] != 0 and not 0xD0 <= data[at + 1] <= 0xD7):
            at += 1
    return places + [at]


def add_good_jpeg(files):
    gray, colour = smooth_picture(WIDTH, HEIGHT, 1), smooth_picture(WIDTH, HEIGHT, 3)
    files.add("jpeg_gray.jpg", jpeg(gray), "valid", note="one component")
    files.add("jpeg_colour.jpg", jpeg(colour), "valid", note="YCbCr")
    files.add("jpeg_progressive.jpg", jpeg(colour, cv2.IMWRITE_JPEG_PROGRESSIVE, 1), "valid", note="progressive")
    files.add("jpeg_restart.jpg", jpeg(colour, cv2.IMWRITE_JPEG_RST_INTERVAL, 1), "valid", note="restart markers")
    files.add("jpeg_no_eoi.jpg", jpeg(gray)[:-2], "valid", note="missing end marker")
    files.add("jpeg_progressive_no_eoi.jpg", jpeg(colour, cv2.IMWRITE_JPEG_PROGRESSIVE, 1)[:-2], "valid",
              note="missing end marker")
    files.add("jpeg_trailing.jpg", jpeg(gray) + b"behind the end", "valid", note="bytes behind the end marker")
    corners = jpeg(corner_picture(), cv2.IMWRITE_JPEG_QUALITY, 100)
    for orientation in range(1, 9):
        order = "><"[orientation % 2]
        files.add(f"jpeg_exif{orientation}.jpg", with_exif(corners, exif_tiff(orientation, order)), "valid", 24, 16,
                  f"EXIF orientation {orientation}, stored size listed")
    broken = {"value9": exif_tiff(9), "value0": exif_tiff(0), "count0": exif_tiff(6, count=0),
              "long": exif_tiff(6, kind=4), "far": exif_tiff(6, directory=0xFFFFFFFF),
              "order": b"XX" + exif_tiff(6)[2:],
              "cut": exif_tiff(6)[:30], "short": exif_tiff(6)[:9]}
    for name, tiff in broken.items():
        files.add(f"jpeg_exif_{name}.jpg", with_exif(corners, tiff), "valid", 24, 16, "odd or damaged EXIF data")


def add_broken_jpeg(files):
    colour = smooth_picture(64, 48, 3)
    baseline, progressive = jpeg(colour), jpeg(colour, cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
    for cut in (2, 3, 20, 200, scans(baseline)[0] + 3, len(baseline) * 2 // 3, len(baseline) - 40):
        files.add(f"jpeg_cut_{cut}.jpg", baseline[:cut], "malformed", note=f"the first {cut} bytes")
    places = scans(progressive)
    for number in (1, 3, len(places) - 2):
        files.add(f"jpeg_cut_scan{number}.jpg", progressive[:places[number]], "malformed",
                  note=f"progressive, cut behind scan {number}")
    files.add("jpeg_cut_in_last_scan.jpg", progressive[:places[-1] - 20], "malformed", note="progressive")
    small = jpeg(smooth_picture(16, 16, 1), cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
    places = scans(small)
    bomb = small[:places[0]] + small[places[0]:places[1]] * 600 + small[places[1]:]
    files.add("jpeg_scan_bomb.jpg", bomb, "malformed", note="600 scans too many")
    frame = baseline.index(b"\xff\xc0")
    huge = bytearray(baseline)
    huge[frame + 5:frame + 9] = struct.pack(">HH", 40000, 40000)
    files.add("jpeg_bomb.jpg", huge, "malformed", note="1.6 gigapixels in a few bytes")
    sampling = bytearray(baseline)
    sampling[frame + 11] = 0x55
    files.add("jpeg_sampling.jpg", sampling, "malformed", note="sampling factors of 5")
    swapped = bytearray(baseline)
    swapped[len(baseline) // 2:len(baseline) // 2 + 2] = b"\xff\xd9"
    files.add("jpeg_early_eoi.jpg", swapped, "malformed", note="end marker in the middle")


# ---- PNM


def add_good_pnm(files):
    gray, rgb = samples(1, 8)[..., 0], samples(3, 8)
    bits = samples(1, 1)[..., 0]
    text = lambda values: "\n".join(" ".join(str(v) for v in row.reshape(-1)) for row in values).encode()
    size = f"{WIDTH} {HEIGHT}\n".encode()
    files.add("pnm_p1.pbm", b"P1\n" + size + "\n".join("".join(map(str, row)) for row in bits).encode(), "valid",
              note="text bits without spaces")
    files.add("pnm_p2.pgm", b"P2 # comment\n" + size + b"# another\n255\n" + text(gray), "valid", note="text gray")
    files.add("pnm_p3.ppm", b"P3\n" + size + b"255\n" + text(rgb) + b"\n", "valid", note="text colour")
    files.add("pnm_p4.pbm", b"P4\n" + size + np.packbits(bits.astype(np.uint8), axis=1).tobytes(), "valid", note="bits")
    files.add("pnm_p5.pgm", b"P5\n" + size + b"255\n" + gray.astype(np.uint8).tobytes(), "valid", note="gray")
    files.add("pnm_p6.ppm", b"P6\n" + size + b"255\n" + rgb.astype(np.uint8).tobytes(), "valid", note="colour")
    for kind, name, channels in ((b"P5", "pnm_p5_16.pgm", 1), (b"P6", "pnm_p6_16.ppm", 3)):
        data = samples(channels, 16).astype(">u2").tobytes()
        files.add(name, kind + b"\n" + size + b"65535\n" + data, "valid", note="16 bits")
    data = (gray % 101).astype(np.uint8).tobytes()
    files.add("pnm_max100.pgm", b"P5\n" + size + b"100\n" + data, "valid", note="maximum 100")
    data = (gray * 3).astype(">u2").tobytes()
    files.add("pnm_max1000.pgm", b"P5\n" + size + b"1000\n" + data, "valid", note="maximum 1000")
    first = b"P5\n" + size + b"255\n" + gray.astype(np.uint8).tobytes()
    files.add("pnm_several.pgm", first + b"P5 2 2 255\nabcd", "valid", note="two pictures, the first counts")
    for tuple_type, depth, top in (("BLACKANDWHITE", 1, 1), ("GRAYSCALE", 1, 255), ("GRAYSCALE_ALPHA", 2, 255),
                                   ("RGB", 3, 255), ("RGB_ALPHA", 4, 65535), ("BLACKANDWHITE_ALPHA", 2, 1)):
        head = (f"P7\nWIDTH {WIDTH}\nHEIGHT {HEIGHT}\n# comment\nDEPTH {depth}\nMAXVAL {top}\n"
                f"TUPLTYPE {tuple_type}\nENDHDR\n")
        data = samples(depth, 16 if top > 255 else 8) % (top + 1)
        data = data.astype(">u2" if top > 255 else np.uint8).tobytes()
        files.add(f"pam_{tuple_type.lower()}.pam", head.encode() + data, "valid", note=tuple_type)


def add_broken_pnm(files):
    broken = {"magic": b"P", "only_magic": b"P5\n", "no_height": b"P5\n21", "no_max": b"P5\n21 13\n",
              "zero": b"P5\n0 13\n255\n",
              "overflow": b"P6\n4294967295 4294967295\n255\nabc", "overflow64": b"P5\n99999999999999999999 1\n255\nabc",
              "max65536": b"P5\n1 1\n65536\nabcd", "no_space": b"P5\n1 1\n255abc", "letter": b"P2\n2 1\n255\n12 x",
              "text_cut": b"P2\n3 1\n255\n1 2", "text_above": b"P2\n3 1\n100\n1 2 101",
              "above": b"P5\n3 1\n100\nab\xff",
              "bit2": b"P1\n3 1\n012", "bits_cut": b"P4\n9 2\nabc", "cut16": b"P5\n2 1\n256\nabc"}
    for name, data in broken.items():
        files.add(f"pnm_{name}.pgm", data, "malformed")
    pam = b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\n"
    files.add("pam_depth.pam", pam.replace(b"DEPTH 3", b"DEPTH 2") + bytes(6), "malformed", note="RGB of depth 2")
    depth5 = pam.replace(b"DEPTH 3", b"DEPTH 5").replace(b"TUPLTYPE RGB\n", b"")
    files.add("pam_depth5.pam", depth5 + bytes(10), "malformed", note="no meaning known")
    files.add("pam_type.pam", pam.replace(b"RGB", b"CMYK") + bytes(6), "malformed", note="unknown tuple type")
    files.add("pam_no_end.pam", pam[:-7] + bytes(6), "malformed", note="no ENDHDR")
    files.add("pam_no_width.pam", pam.replace(b"WIDTH 2\n", b"") + bytes(6), "malformed", note="no WIDTH")
    files.add("pam_line.pam", pam.replace(b"HEIGHT", b"HIGHT") + bytes(6), "malformed", note="unknown header line")
    files.add("pam_cut.pam", pam + bytes(5), "malformed", note="a byte too few")
    files.add("empty.pgm", b"", "malformed", note="zero bytes")
    files.add("zeros.png", bytes(600), "malformed", note="nothing but zeros")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "data", "images")
    files = Collection(folder)
    for part in (add_good_png, add_broken_png, add_good_jpeg, add_broken_jpeg, add_good_pnm, add_broken_pnm):
        part(files)
    codec_images.add_good_tiff(files, samples, corner_picture())
    codec_images.add_broken_tiff(files, samples)
    codec_images.add_webp(files, samples, corner_picture(), exif_tiff)
    codec_images.add_bmp(files, samples)
    files.finish()


if __name__ == "__main__":
    main()
