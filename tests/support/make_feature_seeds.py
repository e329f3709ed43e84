"""Writes starting inputs for tests/fuzz/fuzz_features.c into a folder, from small files of every format.

usage: make_feature_seeds.py PROGRAM FOLDER     PROGRAM: write_sample_features of the build
"""
import pathlib
import subprocess
import sys
import tempfile

FORMATS = ["colmap.txt", "npz.npz", "csv.csv", "json.json", "lowe.key", "vlfeat.sift",
           "opencv.yml", "openmvg.feat", "bin.hsf"]


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for style in ("u8", "f32", "none"):
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([program, place, "1", style], check=True)
            for number, name in enumerate(FORMATS, start=1):
                path = pathlib.Path(place) / name
                if not path.exists():
                    continue
                beside = path.with_suffix(".desc").read_bytes() if name.endswith(".feat") else b""
                head = bytes([number, len(beside) & 255, len(beside) >> 8])
                (folder / f"{name.split('.')[0]}_{style}").write_bytes(head + path.read_bytes() + beside)


if __name__ == "__main__":
    main()
