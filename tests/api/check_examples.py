"""Runs the example programs on pictures whose geometry is known: windows of one canvas of random discs.

usage: check_examples.py FOLDER_OF_PROGRAMS
"""
import pathlib
import random
import subprocess
import sys
import tempfile

WIDTH, HEIGHT = 520, 330


def make_canvas():
    """Rows of gray values: discs of many sizes, each hiding what lies below."""
    values = random.Random(7)
    canvas = [bytearray([128]) * WIDTH for _ in range(HEIGHT)]
    for i in range(900):
        radius = int(40 / (1 + 0.02 * i)) + values.randrange(3, 7)
        x, y, gray = values.randrange(WIDTH), values.randrange(HEIGHT), values.randrange(256)
        for row in range(max(0, y - radius), min(HEIGHT, y + radius + 1)):
            half = int((radius * radius - (row - y) ** 2) ** 0.5)
            left, right = max(0, x - half), min(WIDTH, x + half + 1)
            canvas[row][left:right] = bytes([gray]) * (right - left)
    return canvas


def write_window(path, canvas, x, y, width, height):
    rows = b"".join(bytes(row[x:x + width]) for row in canvas[y:y + height])
    path.write_bytes(b"P5 %d %d 255\n" % (width, height) + rows)
    return str(path)


def write_zoomed(path, canvas, x, y, width, height, zoom):
    """A window seen closer: `zoom` pixels for one of the canvas, bilinear."""
    rows = bytearray()
    for j in range(height):
        top, v = divmod(y + j / zoom, 1)
        upper, lower = canvas[int(top)], canvas[int(top) + 1]
        for i in range(width):
            left, u = divmod(x + i / zoom, 1)
            left = int(left)
            rows.append(int((1 - v) * ((1 - u) * upper[left] + u * upper[left + 1])
                            + v * ((1 - u) * lower[left] + u * lower[left + 1]) + 0.5))
    path.write_bytes(b"P5 %d %d 255\n" % (width, height) + rows)
    return str(path)


def run(*command):
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr.decode()}"
    return done.stdout


def check_extract(programs):
    lines = run(programs / "extract_features", "@scene:200x150").decode().splitlines()
    assert 100 < len(lines) <= 1000
    for line in lines:
        x, y, sigma, angle = map(float, line.split())
        assert -1 < x < 200 and -1 < y < 150 and sigma > 0 and 0 <= angle < 6.3


def check_match(programs, one, two, dx, dy):
    pairs = [tuple(map(float, line.split())) for line in run(programs / "match_photos", one, two).decode().splitlines()]
    assert len(pairs) > 50, f"{len(pairs)} matches"
    good = sum(abs(a - dx - c) < 1 and abs(b - dy - d) < 1 for a, b, c, d in pairs)
    assert good > 0.95 * len(pairs), f"{good} of {len(pairs)} matches are where they should be"


def check_stitch(programs, canvas, photos, corners, sizes):
    """photos: windows of the canvas at `corners`, `sizes` in its pixels; the panorama is the rectangle around them, and all of it
    continues the canvas."""
    picture = run(programs / "stitch_photos", *photos)
    header, pixels = picture.split(b"\n", 1)
    width, height = map(int, header.split()[1:3])
    left, top = (min(corner[axis] for corner in corners) for axis in (0, 1))
    right, bottom = (max(corner[axis] + size[axis] for corner, size in zip(corners, sizes)) for axis in (0, 1))
    assert abs(width - (right - left)) <= 4 and abs(height - (bottom - top)) <= 4, f"{width}x{height}"
    assert len(pixels) == 3 * width * height
    for (x0, y0), size in zip(corners, sizes):  # every photograph is there
        close = total = 0
        for y in range(y0 + 20, min(y0 + size[1], top + height) - 20, 3):
            for x in range(x0 + 20, min(x0 + size[0], left + width) - 20, 3):
                total += 1
                close += abs(pixels[3 * ((y - top) * width + x - left)] - canvas[y][x]) < 40
        assert close > 0.85 * total, f"{close} of {total} pixels are those of the photograph at {x0}, {y0}"


def check_follow(programs, frames, step):
    places = {}
    steps = good = 0
    for line in run(programs / "follow_video", *frames).decode().splitlines():
        frame, track, x, y = line.split()
        before = places.get((int(frame) - 1, track))
        places[(int(frame), track)] = (float(x), float(y))
        if before:
            steps += 1
            good += abs(before[0] - step - float(x)) < 1 and abs(before[1] - float(y)) < 1
    assert {frame for frame, _ in places} == set(range(2, len(frames) + 1))
    assert steps > 100 and good > 0.95 * steps, f"{good} of {steps} steps are right"


def main():
    programs = pathlib.Path(sys.argv[1])
    canvas = make_canvas()
    check_extract(programs)
    with tempfile.TemporaryDirectory(prefix="hartsift-examples-") as folder:
        folder = pathlib.Path(folder)
        one = write_window(folder / "one.pgm", canvas, 0, 0, 360, 300)
        two = write_window(folder / "two.pgm", canvas, 130, 20, 360, 300)
        check_match(programs, one, two, 130, 20)
        check_stitch(programs, canvas, [one, two], [(0, 0), (130, 20)], [(360, 300)] * 2)
        close = write_zoomed(folder / "close.pgm", canvas, 140, 15, 350, 300, 1.25)
        check_stitch(programs, canvas, [close, one], [(140, 15), (0, 0)], [(280, 240), (360, 300)])
        corners = [(0, 10), (90, 0), (190, 25), (270, 5)]  # the first and the last have nothing in common with each other
        chain = [write_window(folder / f"chain{x}.pgm", canvas, x, y, 240, 290) for x, y in corners]
        check_stitch(programs, canvas, chain, corners, [(240, 290)] * 4)
        frames = [write_window(folder / f"frame{i}.pgm", canvas, 8 * i, 10, 320, 240) for i in range(7)]
        check_follow(programs, frames, 8)
        broken = subprocess.run([programs / "stitch_photos", one, "absent.jpg"], capture_output=True, check=False)
        assert broken.returncode == 1 and b"absent.jpg" in broken.stderr
        for absent in range(3):
            names = [frames[0], frames[1], frames[2], frames[3]]
            names[absent] = "absent.jpg"
            lost = subprocess.run([programs / "follow_video", *names], capture_output=True, check=False)
            assert lost.returncode == 1 and b"absent.jpg" in lost.stderr, lost.stderr
        for program in ("follow_video", "stitch_photos", "match_photos"):
            alone = subprocess.run([programs / program], capture_output=True, check=False)
            assert alone.returncode == 2 and b"usage" in alone.stderr
        unread = subprocess.run([programs / "extract_features", "absent.jpg"], capture_output=True, check=False)
        assert unread.returncode == 1 and b"absent.jpg" in unread.stderr
        deep = folder / "deep.pgm"
        deep.write_bytes(b"P5 360 300 65535\n" + b"".join(bytes([v, v]) for row in canvas[:300] for v in row[:360]))
        with open("/dev/full", "wb") as full:
            lost = subprocess.run([programs / "stitch_photos", one, one], stdout=full, stderr=subprocess.PIPE, check=False)
        assert lost.returncode == 1 and b"cannot be written" in lost.stderr, lost
        refused = subprocess.run([programs / "stitch_photos", one, deep], capture_output=True, check=False)
        assert refused.returncode == 1 and not refused.stdout, "16-bit pictures are not drawn as bytes"
    print("all examples did what they say")


if __name__ == "__main__":
    main()
