"""Collections of small pictures for tests, and the command's results for them."""

import csv

import hartsift

SIZES = ((160, 120), (200, 150), (240, 320), (120, 90), (97, 131))


def write_picture(path, image):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path, **({"quality": 92} if path.suffix == ".jpg" else {}))


def write_pictures(folder, count, broken=(), folders=5):
    """Writes generated pictures of several sizes and formats to several folders; broken ones are truncated or no
    images. Returns their names."""
    names = []
    for number in range(count):
        ending = (".png", ".jpg", ".pgm")[number % 3]
        name = f"{number % folders}/im{number:0{len(str(count))}d}{ending}"
        width, height = SIZES[number % len(SIZES)]
        write_picture(folder / name, hartsift.render_scene(width, height, number + 1))
        if number in broken:
            data = (folder / name).read_bytes()
            (folder / name).write_bytes(data[: len(data) // 3] if number % 2 else b"no image")
        names.append(name)
    return names


def manifest_digests(path):
    """The digest of each image in a manifest; None if the image failed."""
    lines = path.read_text().split("\n", 2)[2]
    return {row["image"]: row["digest"] or None for row in csv.DictReader(lines.splitlines())}
