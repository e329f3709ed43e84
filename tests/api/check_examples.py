"""Runs the example programs on pictures of known geometry: windows of one canvas of random discs.

usage: check_examples.py FOLDER_OF_PROGRAMS [FOLDER_OF_SCRIPTS]

With a folder of Python scripts, runs the scripts instead of the programs of the same names, with this Python; they must
also print the same output.
"""
import contextlib
import importlib.util
import pathlib
import random
import runpy
import subprocess
import sys
import tempfile

WIDTH, HEIGHT = 520, 330


def make_canvas():
    """Returns rows of gray values: discs of many sizes, each covering the earlier ones."""
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
    """Writes a magnified window with `zoom` pixels for one of the canvas, interpolated bilinearly."""
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


def run_script(script, arguments):
    """Runs a script as a program, in this process, which has its packages loaded."""
    out, errors = (tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2))  # of which one asks for the descriptor
    status, before, sys.argv = 0, sys.argv, [str(script), *map(str, arguments)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            status = end.code or 0
        finally:
            sys.argv = before
    printed = []
    for file in (out, errors):
        with file:
            file.flush()
            file.buffer.seek(0)
            printed.append(file.buffer.read())
    return subprocess.CompletedProcess(script, status, *printed)


class Programs:
    """The examples by name: compiled programs, or scripts."""

    def __init__(self, folder, scripts=None):
        self.folder, self.scripts = pathlib.Path(folder), scripts and pathlib.Path(scripts)

    def start(self, name, *arguments, **streams):
        if self.scripts and not streams:
            return run_script(self.scripts / f"{name}.py", arguments)
        command = [sys.executable, "-B", self.scripts / f"{name}.py"] if self.scripts else [self.folder / name]
        return subprocess.run([*command, *arguments], check=False, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams})

    def run(self, name, *arguments):
        done = self.start(name, *arguments)
        assert done.returncode == 0, f"{name} {arguments} ended with {done.returncode}: {done.stderr.decode()}"
        if self.scripts:
            self.compare(done.stdout, Programs(self.folder).run(name, *arguments))
        return done.stdout

    def compare(self, printed, expected):
        """Compares outputs byte for byte. Gray values of a panorama may differ by the rounding of sums."""
        if printed.startswith(b"P6"):
            assert printed.split(b"\n")[0] == expected.split(b"\n")[0] and len(printed) == len(expected)
            assert all(-1 <= a - b <= 1 for a, b in zip(printed, expected)), "the panoramas differ"
        else:
            assert printed == expected, "the script prints something else than the program"


def check_extract(programs):
    lines = programs.run("extract_features", "@scene:200x150").decode().splitlines()
    assert 100 < len(lines) <= 1000
    for line in lines:
        x, y, sigma, angle = map(float, line.split())
        assert -1 < x < 200 and -1 < y < 150 and sigma > 0 and 0 <= angle < 6.3


def check_cut(programs):
    sheet = programs.run("cut_patches", "@scene:200x150")
    header = b"P5\n320 320\n255\n"
    assert sheet.startswith(header) and len(sheet) == len(header) + 320 * 320
    pixels = sheet[len(header):]
    for row in range(10):  # gives each patch structure
        for column in range(10):
            values = [pixels[(32 * row + y) * 320 + 32 * column + x] for y in range(8, 24) for x in range(8, 24)]
            assert max(values) - min(values) > 8, f"patch {column}, {row} is flat"


def check_arrays(programs, canvas, path):
    """Checks the jobs on arrays against sums made here. The filter's last output has two taps beyond the end."""
    sum_line, tiles, values, filtered = programs.run("array_jobs", path).decode().splitlines()
    rows = [row[:360] for row in canvas[:300]]
    means = [sum(sum(row[x:x + 40]) for row in rows[y:y + 40]) / (40 * len(rows[y:y + 40])) for y in range(0, 300, 40) for x in range(0, 360, 40)]
    assert sum_line == f"sum {sum(map(sum, rows))}"
    assert tiles.startswith(f"72 tiles, the brightest: {means.index(max(means))}, mean {max(means):.6f}, ")
    assert values.startswith(f"values of 0: {sum(row.count(0) for row in rows)}, of 255: {sum(row.count(255) for row in rows)};")
    signal = [i % 1000 / 1000 + i * 7919 % 101 / 10100 for i in (0, 1, 2, 9999997, 9999998, 9999999)]
    numbers = [float(word) for word in filtered.replace(",", "").split() if word[0].isdigit()]
    assert abs(numbers[0] - sum(signal[:3]) / 5) < 1e-15 and abs(numbers[1] - sum(signal[3:]) / 5) < 1e-15


def check_match(programs, one, two, dx, dy):
    pairs = [tuple(map(float, line.split())) for line in programs.run("match_photos", one, two).decode().splitlines()]
    assert len(pairs) > 50, f"{len(pairs)} matches"
    failed = programs.start("match_photos", one, two + ".absent")
    assert failed.returncode == 1 and (two + ".absent").encode() in failed.stderr, failed.stderr
    good = sum(abs(a - dx - c) < 1 and abs(b - dy - d) < 1 for a, b, c, d in pairs)
    assert good > 0.95 * len(pairs), f"{good} of {len(pairs)} matches are where they should be"


def check_stitch(programs, canvas, photos, corners, sizes):
    """Checks the panorama of `photos`, which are windows of the canvas at `corners` with `sizes` in canvas pixels. The
    panorama must be the rectangle around the windows, and its content must be the canvas everywhere."""
    picture = programs.run("stitch_photos", *photos)
    header, pixels = picture.split(b"\n", 1)
    width, height = map(int, header.split()[1:3])
    left, top = (min(corner[axis] for corner in corners) for axis in (0, 1))
    right, bottom = (max(corner[axis] + size[axis] for corner, size in zip(corners, sizes)) for axis in (0, 1))
    assert abs(width - (right - left)) <= 4 and abs(height - (bottom - top)) <= 4, f"{width}x{height}"
    assert len(pixels) == 3 * width * height
    for (x0, y0), size in zip(corners, sizes):  # every photograph is in the panorama
        close = total = 0
        for y in range(y0 + 20, min(y0 + size[1], top + height) - 20, 3):
            for x in range(x0 + 20, min(x0 + size[0], left + width) - 20, 3):
                total += 1
                close += abs(pixels[3 * ((y - top) * width + x - left)] - canvas[y][x]) < 40
        assert close > 0.85 * total, f"{close} of {total} pixels are those of the photograph at {x0}, {y0}"


def check_follow(programs, frames, step):
    places = {}
    steps = good = 0
    for line in programs.run("follow_video", *frames).decode().splitlines():
        frame, track, x, y = line.split()
        before = places.get((int(frame) - 1, track))
        places[(int(frame), track)] = (float(x), float(y))
        if before:
            steps += 1
            good += abs(before[0] - step - float(x)) < 1 and abs(before[1] - float(y)) < 1
    assert {frame for frame, _ in places} == set(range(2, len(frames) + 1))
    assert steps > 100 and good > 0.95 * steps, f"{good} of {steps} steps are right"


def main():
    programs = Programs(*sys.argv[1:])
    if programs.scripts and not importlib.util.find_spec("numpy"):
        print(f"skipped: {sys.executable} has no NumPy")
        sys.exit(77)
    canvas = make_canvas()
    check_extract(programs)
    check_cut(programs)
    with tempfile.TemporaryDirectory(prefix="hartsift-examples-") as folder:
        folder = pathlib.Path(folder)
        one = write_window(folder / "one.pgm", canvas, 0, 0, 360, 300)
        two = write_window(folder / "two.pgm", canvas, 130, 20, 360, 300)
        check_arrays(programs, canvas, one)
        check_match(programs, one, two, 130, 20)
        check_stitch(programs, canvas, [one, two], [(0, 0), (130, 20)], [(360, 300)] * 2)
        close = write_zoomed(folder / "close.pgm", canvas, 140, 15, 350, 300, 1.25)
        check_stitch(programs, canvas, [close, one], [(140, 15), (0, 0)], [(280, 240), (360, 300)])
        corners = [(0, 10), (90, 0), (190, 25), (270, 5)]  # the first and the last do not overlap
        chain = [write_window(folder / f"chain{x}.pgm", canvas, x, y, 240, 290) for x, y in corners]
        check_stitch(programs, canvas, chain, corners, [(240, 290)] * 4)
        frames = [write_window(folder / f"frame{i}.pgm", canvas, 8 * i, 10, 320, 240) for i in range(7)]
        check_follow(programs, frames, 8)
        broken = programs.start("stitch_photos", one, "absent.jpg")
        assert broken.returncode == 1 and b"absent.jpg" in broken.stderr
        for absent in range(3):
            names = [frames[0], frames[1], frames[2], frames[3]]
            names[absent] = "absent.jpg"
            lost = programs.start("follow_video", *names)
            assert lost.returncode == 1 and b"absent.jpg" in lost.stderr, lost.stderr
        for program in ("follow_video", "stitch_photos", "match_photos"):
            alone = programs.start(program)
            assert alone.returncode == 2 and b"usage" in alone.stderr
        unread = programs.start("extract_features", "absent.jpg")
        assert unread.returncode == 1 and b"absent.jpg" in unread.stderr
        deep = folder / "deep.pgm"
        deep.write_bytes(b"P5 360 300 65535\n" + b"".join(bytes([v, v]) for row in canvas[:300] for v in row[:360]))
        with open("/dev/full", "wb") as full:
            lost = programs.start("stitch_photos", one, one, stdout=full)
        assert lost.returncode == 1 and b"cannot be written" in lost.stderr, lost
        refused = programs.start("stitch_photos", one, deep)
        assert refused.returncode == 1 and not refused.stdout, "16-bit pictures are not drawn as bytes"
    print("all examples did what they say")


if __name__ == "__main__":
    main()
