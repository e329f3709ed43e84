"""Takes frames of a video for a reconstruction: at a given rate, the sharpest frame of each moment."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import struct
import subprocess
import zlib
from typing import IO, TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, NamedTuple, Optional, Tuple

import numpy as np

from ._errors import ArgumentError, FileError
from ._project import write_json

if TYPE_CHECKING:
    import numpy.typing as npt

VIDEO_ENDINGS = (".3gp", ".avi", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".webm", ".wmv")
DONE = "frames.json"  #: file in the folder of frames: their source, and their number once they are complete
_PROGRAM_FRAMES = 6  # frames of each moment that the program ffmpeg passes on
_CHECKED = 1 / 4, 3 / 4  # part of a moment whose frames are compared, so that chosen frames are at least half a moment apart


class Frame(NamedTuple):
    """A frame of a video.

    Attributes:
        seconds: its time.
        read: gives its pixels, uint8 [height, width, 3], RGB.
    """

    seconds: float
    read: "Callable[[], npt.NDArray[np.uint8]]"


def sharpness(picture: "npt.NDArray[np.uint8]") -> float:
    """Returns the variance of the Laplacian of the green channel; a sharper picture has a larger value."""
    gray = picture[:, :, 1].astype(np.int16)
    if min(gray.shape) < 3:
        return 0.0
    laplacian = gray[:-2, 1:-1] + gray[2:, 1:-1] + gray[1:-1, :-2] + gray[1:-1, 2:] - 4 * gray[1:-1, 1:-1]
    return float(laplacian.var(dtype=np.float64))


def sharpest_frames(frames: Iterable[Frame], rate: float) -> "Iterator[Tuple[int, npt.NDArray[np.uint8]]]":
    """Gives the sharpest frame of each moment, with the moment's number. Moment i is from i / rate to (i + 1) / rate seconds.

    Frames in the middle half of a moment are compared; if there are none, the one nearest to the middle is taken.

    Args:
        frames: frames in the order of time.
        rate: moments per second.
    """
    moment, best, picture = -1, (False, 0.0), None
    for frame in frames:
        number = int(frame.seconds * rate)
        if number != moment and picture is not None:
            yield moment, picture
            picture = None
        moment = number
        phase = frame.seconds * rate - number
        is_checked = _CHECKED[0] <= phase < _CHECKED[1]
        if not is_checked and picture is not None and (best[0] or -abs(phase - 0.5) <= best[1]):
            continue
        pixels = frame.read()
        value = (is_checked, sharpness(pixels) if is_checked else -abs(phase - 0.5))
        if picture is None or value > best:
            best, picture = value, pixels
    if picture is not None:
        yield moment, picture


def write_png(path: pathlib.Path, picture: "npt.NDArray[np.uint8]") -> None:
    """Writes uint8 [height, width, 3] as PNG; the file appears complete or not at all."""
    height, width = picture.shape[:2]
    rows = np.empty((height, 1 + 3 * width), np.uint8)
    rows[:, 0] = 2  # filter 2: a row is stored as its difference to the row above
    flat = picture.reshape(height, -1)
    rows[0, 1:] = flat[0]
    np.subtract(flat[1:], flat[:-1], out=rows[1:, 1:])
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows.tobytes(), 3)), (b"IEND", b""))
    new = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(new, "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n")
            for name, data in parts:
                file.write(struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)))
        new.replace(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        new.unlink(missing_ok=True)


def _frames_by_opencv(path: str, rate: float) -> Iterator[Frame]:
    import cv2

    video: Any = cv2.VideoCapture(path)
    try:
        if not video.isOpened():
            raise FileError(f"{path}: OpenCV cannot read it as a video")
        frames_per_second = video.get(cv2.CAP_PROP_FPS) or 30.0

        def read() -> "npt.NDArray[np.uint8]":
            found, picture = video.retrieve()
            if not found:
                raise FileError(f"{path}: a frame cannot be decoded")
            return np.ascontiguousarray(picture[:, :, ::-1])

        number = 0
        while video.grab():
            yield Frame(number / frames_per_second, read)
            number += 1
    finally:
        video.release()


def _frames_by_av(path: str, rate: float) -> Iterator[Frame]:
    av: Any = importlib.import_module("av")
    try:
        with av.open(path) as container:
            first: Optional[float] = None
            for number, frame in enumerate(container.decode(video=0)):
                seconds = float(number) / 30 if frame.time is None else float(frame.time)
                first = seconds if first is None else first
                yield Frame(max(seconds - first, 0.0), lambda frame=frame: frame.to_ndarray(format="rgb24"))  # type: ignore[misc]
    except (av.error.FFmpegError, IndexError) as error:
        raise FileError(f"{path}: PyAV cannot read it as a video: {error}") from error


def _read_ppm(stream: IO[bytes]) -> "Optional[npt.NDArray[np.uint8]]":
    """Returns the next picture of a stream of binary PPM files, as ffmpeg writes them; None at the end."""
    if stream.readline() != b"P6\n":
        return None
    width, height = map(int, stream.readline().split())
    stream.readline()
    data = stream.read(3 * width * height)
    return np.frombuffer(data, np.uint8).reshape(height, width, 3) if len(data) == 3 * width * height else None


def _frames_by_program(path: str, rate: float) -> Iterator[Frame]:
    frames_per_second = _PROGRAM_FRAMES * rate
    source = os.path.abspath(path)  # an absolute path, because a name that begins with '-' would be an option
    command = ["ffmpeg", "-v", "error", "-nostdin", "-i", f"file:{source}", "-vf", f"fps={frames_per_second}", "-c:v", "ppm", "-f",
               "image2pipe", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None and program.stderr is not None
        try:
            number = 0
            while (picture := _read_ppm(program.stdout)) is not None:
                yield Frame((number + 0.5) / frames_per_second, lambda picture=picture: picture)  # type: ignore[misc]
                number += 1
            if number == 0:
                reason = program.stderr.read().decode("utf-8", "replace").strip().splitlines()
                raise FileError(f"{path}: ffmpeg cannot read it as a video: {reason[-1] if reason else 'it has no frames'}")
        finally:
            program.kill()


def _reader() -> Callable[[str, float], Iterator[Frame]]:
    """Returns the first available way to read videos on this machine."""
    if importlib.util.find_spec("cv2") is not None:
        return _frames_by_opencv
    if importlib.util.find_spec("av") is not None:
        return _frames_by_av
    if shutil.which("ffmpeg") is not None:
        return _frames_by_program
    raise ModuleNotFoundError(
        "nothing here reads videos: pip install opencv-python-headless, or av, or install the program ffmpeg", name="cv2"
    )


def _made_of(video: str, rate: float) -> Dict[str, Any]:
    facts = os.stat(video)
    return {"bytes": facts.st_size, "changed": facts.st_mtime_ns, "frames_per_second": rate, "frames": 0}


def has_other_frames(video: str, folder: pathlib.Path, rate: float) -> bool:
    """Returns whether the folder has all frames of another video, or of another rate."""
    try:
        known = json.loads((folder / DONE).read_text(encoding="utf-8"))
        return known["frames"] > 0 and {**known, "frames": 0} != _made_of(video, rate)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def replace_frames(new: pathlib.Path, folder: pathlib.Path) -> None:
    """Moves frames into a folder, in place of its frames, and removes their folder. A stopped call leaves neither folder
    complete."""
    try:
        text = (new / DONE).read_text(encoding="utf-8")
        for path in (new / DONE, folder / DONE, *folder.glob("frame_[0-9]*.png")):
            path.unlink(missing_ok=True)
        for path in new.iterdir():
            path.replace(folder / path.name)
        (folder / DONE).write_text(text, encoding="utf-8")
        new.rmdir()
    except OSError as error:
        raise FileError(f"{folder}: its frames cannot be replaced: {error}") from error


def extract_frames(video: str, folder: pathlib.Path, rate: float, report: Callable[[int], None]) -> int:
    """Writes the sharpest frame of each moment as frame_00001.png and so on. Frames that are there stay, so a stopped run
    continues.

    Args:
        video: path of the video.
        folder: folder for the frames and the file DONE.
        rate: frames per second.
        report: called with the number of frames so far.

    Returns:
        Number of frames.
    """
    if not 0 < rate < 1000:
        raise ArgumentError(f"frames_per_second is {rate}, expected more than 0 and less than 1000")
    done = folder / DONE
    try:
        made_of = _made_of(video, rate)
        folder.mkdir(parents=True, exist_ok=True)
        known = json.loads(done.read_text(encoding="utf-8")) if done.exists() else {}
        if {**known, "frames": 0} == made_of:
            if known["frames"]:
                return int(known["frames"])
        else:
            for path in folder.glob("frame_[0-9]*.png"):
                path.unlink()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{video}: its frames cannot be prepared: {error}") from error
    write_json(done, made_of)
    count = 0
    for moment, picture in sharpest_frames(_reader()(video, rate), rate):
        path = folder / f"frame_{moment + 1:05d}.png"
        if not path.exists():
            write_png(path, picture)
        count += 1
        report(count)
    if count == 0:
        raise FileError(f"{video}: it has no frames that can be decoded")
    write_json(done, {**made_of, "frames": count})
    return count
