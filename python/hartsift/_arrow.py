"""Features of many images as Arrow tables, with one row per image: the content of Parquet files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ._errors import ArgumentError, Error
from ._features import KEYPOINT_DTYPE, Features, Origin
from ._library import DESCRIPTOR_LENGTH, METHOD_VERSION, METHOD_VERSION_AFFINE
from ._names import name_of_text, printable, text_of_name
from ._options import WORK_OPTIONS

if TYPE_CHECKING:
    from ._hints import Layout

#: Fields of keypoints that are list columns, by their names in the tables.
KEYPOINT_COLUMNS = ("x", "y", "sigma", "orientation", "response", "octave", "level")
PRIOR_COLUMNS = ("focal_length", "latitude", "longitude", "altitude")
#: Columns with few different values, which are stored with a dictionary.
DICTIONARY_COLUMNS = ["status", "method", "options"]
#: Number of images in a row group: about 30 MB with 3000 features per image.
ROW_GROUP_IMAGES = 64
_DESCRIPTOR_BYTES = {"u8": DESCRIPTOR_LENGTH, "f32": 4 * DESCRIPTOR_LENGTH, "none": DESCRIPTOR_LENGTH}
# Options that affect speed or success but not the result. decoder is not among them, because rows of earlier versions
# have it.
_CHANGE_NO_RESULT = WORK_OPTIONS - {"decoder"}


@dataclass(frozen=True)
class ImageRow:
    """Result of one image: its features, or an error.

    Attributes:
        image: its name.
        features: None if it failed.
        error: the reason if it failed, else None.
        priors: camera data from a JPEG's EXIF: ``focal_length`` in pixels, ``latitude``, ``longitude`` in degrees,
            ``altitude`` in metres; unknown values are left out.
    """

    image: str
    features: Optional[Features]
    error: Optional[Error]
    priors: Mapping[str, float]


def feature_schema(descriptor: str = "u8") -> pa.Schema:
    """The columns of a table of features, see FORMATS.md. descriptor: value of the option of that name."""
    if descriptor not in _DESCRIPTOR_BYTES:
        raise ArgumentError(f"descriptor is {descriptor!r}, expected one of {', '.join(_DESCRIPTOR_BYTES)}")
    floats, shorts = pa.list_(pa.float32()), pa.list_(pa.int16())
    return pa.schema(
        [
            pa.field("image", pa.string(), nullable=False),
            ("width", pa.int32()),
            ("height", pa.int32()),
            ("features", pa.int64()),
            ("digest", pa.string()),
            *((name, shorts if name in ("octave", "level") else floats) for name in KEYPOINT_COLUMNS),
            ("descriptors", pa.list_(pa.binary(_DESCRIPTOR_BYTES[descriptor]))),
            ("exif_orientation", pa.int32()),
            *((name, pa.float64()) for name in PRIOR_COLUMNS),
            pa.field("status", pa.string(), nullable=False),
            ("error", pa.string()),
            pa.field("method", pa.int32(), nullable=False),
            pa.field("options", pa.string(), nullable=False),
        ]
    )


_LIST_TYPES = {
    name: (feature_schema("u8").field(name).type, feature_schema("f32").field(name).type)
    for name in (*KEYPOINT_COLUMNS, "descriptors")
}


def options_text(options: Mapping[str, Any]) -> str:
    """All settings on which results depend, as JSON with sorted names: equal texts give equal features. options: those of
    an ``Extractor`` and of reading."""
    return json.dumps({name: value for name, value in options.items() if name not in _CHANGE_NO_RESULT}, sort_keys=True)


def _lists(values: pa.Array, counts: Sequence[Optional[int]]) -> pa.Array:
    """Splits values into lists of these lengths; a length None gives a null."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum([count or 0 for count in counts], out=offsets[1:])
    if offsets[-1] >= 1 << 31:
        raise ArgumentError(f"{offsets[-1]} features in one table, which holds fewer than 2^31: make smaller ones")
    missing = pa.array([count is None for count in counts], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=missing)


def table_of_rows(rows: Sequence[ImageRow], options: str, descriptor: str) -> pa.Table:
    """A table with one row per image. options: the text from ``options_text``."""
    schema = feature_schema(descriptor)
    found = [row.features for row in rows]
    counts = [None if features is None else len(features) for features in found]
    records = [np.empty(0, KEYPOINT_DTYPE), *(one.records for one in found if one is not None)]
    columns: Dict[str, Any] = {
        "image": [text_of_name(row.image) for row in rows],
        "width": [None if one is None else one.image_size[0] for one in found],
        "height": [None if one is None else one.image_size[1] for one in found],
        "features": counts,
        "digest": [None if one is None else one.digest for one in found],
        "exif_orientation": [None if one is None else one.exif_orientation for one in found],
        "status": ["HS_OK" if row.error is None else row.error.name or "HS_ERR_ARGUMENT" for row in rows],
        "error": [None if row.error is None else printable(str(row.error)) for row in rows],
        "method": [METHOD_VERSION_AFFINE if json.loads(options).get("affine") else METHOD_VERSION] * len(rows),
        "options": [options] * len(rows),
    }
    for name in KEYPOINT_COLUMNS:
        columns[name] = _lists(pa.array(np.concatenate([one[name] for one in records])), counts)
    for name in PRIOR_COLUMNS:
        columns[name] = [row.priors.get(name) for row in rows]
    columns["descriptors"] = _descriptor_lists(found, descriptor)
    return pa.table([pa.array(columns[field.name], field.type) if isinstance(columns[field.name], list)
                     else columns[field.name] for field in schema], schema=schema)


def _descriptor_lists(found: Sequence[Optional[Features]], descriptor: str) -> pa.ChunkedArray:
    """A chunk for each image, so that descriptors are not copied."""
    rows = pa.binary(_DESCRIPTOR_BYTES[descriptor])
    dtype = np.dtype("<f4" if descriptor == "f32" else np.uint8)

    def chunk(one: Optional[Features]) -> pa.Array:
        if one is None or descriptor == "none" or (one.descriptors is None and len(one) > 0):
            return pa.nulls(1, pa.list_(rows))
        own = one.descriptors
        values = np.ascontiguousarray(np.empty((0, DESCRIPTOR_LENGTH), dtype) if own is None else own, dtype)
        return _lists(pa.FixedSizeBinaryArray.from_buffers(rows, len(values), [None, pa.py_buffer(values)]), [len(values)])

    return pa.chunked_array([chunk(one) for one in found], pa.list_(rows))


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks) if column.num_chunks else (
        pa.array([], column.type))


def _numbers(values: pa.Array) -> Any:
    return values.to_numpy(zero_copy_only=False)


def _list_column(table: pa.Table, name: str) -> pa.Array:
    """A column of lists, cast to its documented type, because programs that rewrite a file may widen the type."""
    column = _whole(table, name)
    wanted, of_floats = _LIST_TYPES[name]
    if column.type in (wanted, of_floats):
        return column
    try:
        return column.cast(wanted)
    except pa.ArrowException as error:
        raise ArgumentError(f"column {name} is of type {column.type}, expected {wanted}: {error}") from None


def _check_lists(lists: Mapping[str, pa.Array], names: Sequence[str]) -> None:
    """Checks that every keypoint has a value in each column, and a descriptor if its image has descriptors."""
    filled = ~_numbers(pc.is_null(lists["x"]))
    wanted = np.diff(np.asarray(lists["x"].offsets))
    for name, column in lists.items():
        has = filled & ~_numbers(pc.is_null(column)) if name == "descriptors" else filled
        differing = np.flatnonzero(has & (np.diff(np.asarray(column.offsets)) != wanted))
        if len(differing) > 0:
            row = int(differing[0])
            raise ArgumentError(f"{names[row]}: has other numbers of x and of {name}: damaged")
        if column.values.null_count > 0:
            raise ArgumentError(f"column {name} has nulls among the features' values: damaged")


def iterate_features(table: pa.Table) -> Iterator[Tuple[Dict[str, Any], Optional[Features]]]:
    """Yields for each row the columns without lists, by name, and the features; None if the image failed. Descriptors
    refer to the table's memory.

    Needs the column x, for keypoints also y, sigma and orientation; other columns are optional.
    ``ArgumentError``: a missing column, or values that are no features.
    """
    has = set(table.column_names)
    if "x" not in has:
        raise ArgumentError("there is no column x: not a table of features")
    lists = {name: _list_column(table, name) for name in (*KEYPOINT_COLUMNS, "descriptors") if name in has}
    _check_lists(lists, table["image"].to_pylist() if "image" in has else [f"row {i}" for i in range(len(table))])
    values = {name: _numbers(lists[name].values) for name in lists if name != "descriptors"}
    offsets = {name: np.asarray(lists[name].offsets) for name in lists}
    descriptors = _descriptor_array(lists["descriptors"]) if "descriptors" in lists else None
    plain = table.select([name for name in table.column_names if name not in lists]).to_pylist()
    missing = _numbers(pc.is_null(lists["x"]))
    none = _numbers(pc.is_null(lists["descriptors"])) if descriptors is not None else None
    for index, row in enumerate(plain):
        if isinstance(row.get("image"), str):
            row["image"] = name_of_text(row["image"])
        if missing[index]:
            yield row, None
            continue
        places = {name: slice(offsets[name][index], offsets[name][index + 1]) for name in lists}
        records = np.zeros(places["x"].stop - places["x"].start, KEYPOINT_DTYPE)
        for name in values:
            records[name] = values[name][places[name]]
        rows = None if descriptors is None or none is None or none[index] else descriptors[places["descriptors"]]
        size = (row.get("width") or 0, row.get("height") or 0)
        layout, origin = _origin_of(row)
        yield row, Features(records, rows, size, layout, row.get("exif_orientation") or 0, origin)


def _origin_of(row: Mapping[str, Any]) -> Tuple["Layout", Optional[Origin]]:
    """Provenance of a row's descriptors, as far as its columns contain it."""
    if "options" not in row:
        return "ubc", None
    try:
        options = dict(json.loads(row["options"]))
    except (TypeError, ValueError):
        raise ArgumentError(f"column options is {row['options']!r}, expected JSON: damaged") from None
    known = "method" in row and "profile" in options and "norm" in options
    if not known:
        return options.get("layout", "ubc"), None
    origin = Origin(row["method"], options["profile"], options["norm"], bool(options.get("dsp")))
    return options.get("layout", "ubc"), origin


def _descriptor_array(lists: pa.Array) -> Any:
    """All descriptors of a column, uint8 or float32 [N, 128], without a copy."""
    values = lists.values
    size = values.type.byte_width
    dtype = np.dtype(np.uint8 if size == DESCRIPTOR_LENGTH else "<f4")
    buffer = values.buffers()[1]
    if buffer is None:
        return np.empty((0, DESCRIPTOR_LENGTH), dtype)
    whole = np.frombuffer(buffer, dtype, len(values) * DESCRIPTOR_LENGTH, values.offset * size)
    return whole.reshape(len(values), DESCRIPTOR_LENGTH)


def write_arguments(schema: pa.Schema, is_quick: bool = False) -> Dict[str, Any]:
    """Arguments for writing Parquet files: dictionaries only for columns with repeated values, statistics only for columns
    without lists. is_quick, for features: descriptors and the keypoints' floats are not compressed, which makes files a
    third larger and writing twice as fast."""
    lists = [field.name for field in schema if pa.types.is_list(field.type)]
    packed = [name for name in lists if schema.field(name).type.value_type == pa.int16()]
    plain = [name for name in schema.names if name not in lists]
    few = {**{name: "zstd" for name in plain}, **{f"{name}.list.element": "zstd" for name in packed}}
    return {
        "compression": few if is_quick else "zstd",
        "use_dictionary": list(DICTIONARY_COLUMNS),
        "write_statistics": plain,
    }


def differing_options(one: str, other: str) -> List[str]:
    """Options in one text whose values differ from those in another: "name=value"."""
    first, second = json.loads(one), json.loads(other)
    return [f"{name}={value}" for name, value in sorted(first.items()) if second.get(name) != value]
