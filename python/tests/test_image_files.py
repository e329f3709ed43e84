"""Files are read as by the command: damage, value ranges, and one exception class for unusable files."""
import io
import struct
import warnings
import zlib

import numpy as np
import pytest

import hartsift


def chunk(name, data, checksum=0):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data) ^ checksum)


def png(pixels, before=b""):
    """A gray PNG of uint8 or uint16."""
    height, width = pixels.shape
    rows = pixels.astype(pixels.dtype.newbyteorder(">"))
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def tiff(pixels, extra=()):
    """A gray TIFF of any sample type. extra: further tags (tag, type, value), each with one number."""
    height, width = pixels.shape
    formats = {"u": 1, "i": 2, "f": 3}
    entries = [(256, 4, width), (257, 4, height), (258, 3, 8 * pixels.itemsize), (259, 3, 1), (262, 3, 1), (273, 4, 8),
               (277, 3, 1), (278, 4, height), (279, 4, pixels.nbytes), (339, 3, formats[pixels.dtype.kind]), *extra]
    at = 8 + pixels.nbytes + pixels.nbytes % 2
    body = struct.pack("<H", len(entries))
    for tag, kind, value in sorted(entries):
        body += struct.pack("<HHII", tag, kind, 1, value)
    return b"II*\0" + struct.pack("<I", at) + pixels.tobytes() + bytes(pixels.nbytes % 2) + body + bytes(4)


@pytest.fixture(name="image")
def image_fixture():
    return hartsift.render_scene(120, 90, 3)


@pytest.fixture(name="damaged")
def damaged_fixture(image):
    return png(image, before=chunk(b"tEXt", b"Title\0x", checksum=1))


def test_damage_warns_and_strict_refuses(image, damaged, tmp_path):
    expected = hartsift.extract(image)
    path = tmp_path / "photo.png"
    path.write_bytes(damaged)
    for source in (str(path), damaged):
        with pytest.warns(UserWarning, match="tEXt: CRC error.*strict=True"):
            assert hartsift.extract(source) == expected
        with pytest.warns(UserWarning, match="tEXt"):
            assert list(hartsift.extract_many([source])) == [expected]
        with pytest.warns(UserWarning, match="tEXt"):
            assert (hartsift.load_image(source) == image).all()
        with pytest.raises(hartsift.FileError, match="tEXt"):
            hartsift.extract(source, strict=True)
        with pytest.raises(hartsift.FileError, match="tEXt"):
            list(hartsift.extract_many([source], strict=True))
        with pytest.raises(hartsift.FileError, match="tEXt"):
            hartsift.load_image(source, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hartsift.extract(png(image), strict=True) == expected


def test_one_class_for_missing_empty_and_damaged_files(image, tmp_path):
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "cut.png").write_bytes(png(image)[:200])
    (tmp_path / "other.png").write_bytes(b"no picture at all")
    for name in ("missing.png", "empty.png", "cut.png", "other.png"):
        path = str(tmp_path / name)
        for call in (hartsift.extract, hartsift.load_image, lambda one: list(hartsift.extract_many([one]))):
            with pytest.raises(hartsift.FileError, match=name):
                call(path)
            with pytest.raises(OSError):
                call(path)
    with pytest.raises(hartsift.ArgumentError):  # programs from before this class existed still catch it
        hartsift.extract(str(tmp_path / "cut.png"))
    with pytest.raises(hartsift.DamagedFileError):
        hartsift.load_image(io.BytesIO(b""))


def test_value_range_of_files(image, tmp_path):
    """A file with a value range gives the same features as its array."""
    deep = image.astype(np.uint16) * 16
    signed = image.astype(np.int16) * 20 - 2560
    floats = image.astype(np.float32) * np.float32(0.5) - 10
    for name, content, array, value_range in (("deep.png", png(deep), deep, (0, 4095)),
                                              ("deep.tif", tiff(deep), deep, (0, 4095)),
                                              ("signed.tif", tiff(signed), signed, (-2560, 2540)),
                                              ("floats.tif", tiff(floats), floats, (-10, 117.5))):
        path = tmp_path / name
        path.write_bytes(content)
        expected = hartsift.extract(array, value_range=value_range)
        assert len(expected) > 20
        assert hartsift.extract(str(path), value_range=value_range) == expected
        assert list(hartsift.extract_many([str(path)], value_range=value_range)) == [expected]
    assert (hartsift.load_image(tiff(signed), value_range=(-2560, 2540)) == signed).all()
    with pytest.raises(hartsift.ArgumentError, match="value range"):
        hartsift.extract(tiff(signed))
    with pytest.raises(hartsift.ArgumentError, match="value range"):
        hartsift.extract(tiff(floats))
    unit = image.astype(np.float32) / 255
    assert hartsift.extract(tiff(unit)) == hartsift.extract(unit)


def test_low_ranges_warn(image, tmp_path):
    thermal = (29500 + 3 * image.astype(np.uint16)).astype(np.uint16)
    for source in (thermal, png(thermal), tiff(thermal)):
        with pytest.warns(UserWarning, match=r"samples from 2\d+ to 3\d+ only.*value_range=\(2\d+, 3\d+\)"):
            hartsift.extract(source)
    deep = image.astype(np.uint16) * 16
    with pytest.warns(UserWarning, match=r"value_range=\(0, 4095\)"):
        hartsift.extract(tiff(deep))
    for name in ("a.tif", "b.tif"):  # with many files, each one is named
        (tmp_path / name).write_bytes(tiff(deep))
    with pytest.warns(UserWarning, match="b.tif has samples from 96 to 4080 only"):
        list(hartsift.extract_many([tmp_path / "a.tif", str(tmp_path / "b.tif")]))
    with warnings.catch_warnings():  # MaxSampleValue
        warnings.simplefilter("error")
        assert len(hartsift.extract(tiff(deep, extra=[(281, 3, 4095)]))) > 20
        assert hartsift.load_image(tiff(deep, extra=[(281, 3, 4095)])).dtype == np.uint16
