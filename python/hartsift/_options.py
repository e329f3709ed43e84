"""Keyword arguments to hs_options: every field by its name, enumerators by theirs."""

from __future__ import annotations

import ctypes
import difflib
import operator
import re
from typing import Any, Dict, Iterable, Literal, Mapping, Optional, Tuple, TypedDict, Union

from ._errors import ArgumentError, check
from ._library import library
from ._structures import HsExpertOptions, HsOptions

PROFILES = {"lowe": 0, "opencv": 1, "vlfeat": 2, "colmap": 3}
LAYOUTS = {"ubc": 0, "vlfeat": 1}
NORMS = {"l2": 0, "root": 1}
_RULES = {"lowe": 0, "opencv": 1, "vlfeat": 2}
_DEVICES = {"auto": 0, "cpu": 1, "cuda": 2, "hybrid": 3}

#: The fields that hold an enumeration, and the names of its values.
ENUMERATIONS: Dict[str, Dict[str, int]] = {
    "profile": PROFILES,
    "octave_rule": _RULES,
    "upsample": {"aligned": 0, "half-pixel": 1, "opencv": 2},
    "blur_radius_rule": _RULES,
    "border_rule": {"reflect-101": 0, "replicate": 1},
    "candidate_rule": _RULES,
    "refine_rule": _RULES,
    "orientation_rule": _RULES,
    "descriptor_rule": _RULES,
    "norm": NORMS,
    "layout": LAYOUTS,
    "descriptor": {"u8": 0, "f32": 1, "none": 2},
    "selection": {"response": 0, "scale": 1, "levels": 2},
    "device": _DEVICES,
    "decoder": {"auto": 0, "cpu": 1, "gpu": 2},
}
_NOT_OFFERED = {"struct_size", "allocator", "expert", "unused", "workload"}  # workload: see Batch


def _offered(structure: Any) -> Dict[str, Any]:
    return {field[0]: field[1] for field in structure._fields_ if field[0] not in _NOT_OFFERED}


_EXPERT_TYPES = _offered(HsExpertOptions)
_TYPES: Dict[str, Any] = {**_offered(HsOptions), **_EXPERT_TYPES}
_SHORTHANDS: Dict[str, Tuple[str, ...]] = {
    "region": ("region_x", "region_y", "region_width", "region_height"),
    "grid": ("grid_columns", "grid_rows"),
}


Profile = Literal["lowe", "opencv", "vlfeat", "colmap"]
Rule = Literal["lowe", "opencv", "vlfeat"]
Layout = Literal["ubc", "vlfeat"]
Norm = Literal["l2", "root"]


class OptionsBesideSigma(TypedDict, total=False):
    """All of Options but sigma, which ``SIFT`` has among its own arguments."""

    profile: Profile  #: the preset that the others start from
    first_octave: int  #: -1 doubles the image; -1..3
    octaves: int  #: most octaves, 0: as many as the image's size gives
    octave_rule: Rule
    scales: int  #: scales per octave, 1..8
    upsample: Literal["aligned", "half-pixel", "opencv"]
    input_blur: float  #: the blur that the image is assumed to have, pixels
    blur_radius_rule: Rule
    border_rule: Literal["reflect-101", "replicate"]
    border: int
    contrast: float  #: |D| that a keypoint needs, times scales
    candidate_rule: Rule
    refine_rule: Rule
    settle: float
    edge: float  #: largest ratio of principal curvatures
    orientation_rule: Rule
    max_orientations: int  #: features per keypoint, 0: all
    upright: bool
    descriptor_rule: Rule
    norm: Norm  #: "root": RootSIFT
    layout: Layout  #: order of the descriptor's bins
    descriptor: Literal["u8", "f32", "none"]
    dsp: bool  #: pool descriptors over domain sizes
    dsp_sizes: int  #: how many
    dsp_smallest: float  #: times the keypoint's own size
    dsp_largest: float
    affine: bool  #: describe in the ellipses that gradients give
    max_features: int  #: exactly so many when there are more, 0: all
    selection: Literal["response", "scale", "levels"]  #: which; "levels" (profile colmap): whole ones, so not exactly
    region: Tuple[int, int, int, int]  #: x, y, width, height; or the four fields
    region_x: int
    region_y: int
    region_width: int
    region_height: int
    grid: Tuple[int, int]  #: columns, rows that max_features is spread over; or the two fields
    grid_columns: int
    grid_rows: int
    max_pixels: int
    max_memory_bytes: int
    threads: int  #: CPU threads, 0: one for each core
    device: str  #: "auto", "cpu", "cuda", "cuda:N" or "hybrid"
    device_index: int
    variant: str  #: "stage=name,...", see Extractor.backends
    split: int
    in_flight: int
    images_per_launch: int
    equalize: bool
    #: what decodes JPEG files, to the same pixels: "gpu" the GPU, an error where none does; "auto" that for a list of 16
    #: files and more, where there is one
    decoder: Literal["auto", "cpu", "gpu"]


class Options(OptionsBesideSigma, total=False):
    """The options of an extraction. What is left out has the profile's value.

    Enumerations are given by name, as on the command line (``norm="root"``, ``device="cuda:1"``). Ranges and defaults
    of all fields stand in ``hartsift.h``.
    """

    sigma: float  #: blur of an octave's first level, in its samples


def name_of(field: str, value: int) -> str:
    """The name of an enumeration's value."""
    return next(name for name, number in ENUMERATIONS[field].items() if number == value)


def enumerator(field: str, names: Mapping[str, int], value: Union[str, int]) -> int:
    """The number of an enumeration's value that is given by name or number."""
    if isinstance(value, str):
        found = names.get(value.lower().replace("_", "-"))
        if found is None:
            raise ArgumentError(f"{field} is {value!r}, expected one of {', '.join(names)}")
        return found
    return operator.index(value)


def _fits(kind: Any, value: int) -> bool:
    bits = 8 * ctypes.sizeof(kind)
    signed = kind(-1).value < 0
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1) if signed else 0 <= value < 1 << bits


def set_field(structure: ctypes.Structure, kind: Any, field: str, value: Any) -> None:
    """Writes a number to a field; ctypes alone would cut off what does not fit."""
    if kind in (ctypes.c_float, ctypes.c_double):
        setattr(structure, field, float(value))
        return
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{field} must be a whole number, not {type(value).__name__}") from None
    if not _fits(kind, number):
        raise ArgumentError(f"{field} is {number}, which is out of range")
    setattr(structure, field, number)


def unknown_name(what: str, name: str, known: Iterable[str]) -> TypeError:
    """The exception for a keyword that does not exist, with the nearest one that does, and all of them."""
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return TypeError(f"unknown {what} {name!r}{hint} (known: {', '.join(sorted(known))})")


def _spread_shorthands(settings: Dict[str, Any]) -> Dict[str, Any]:
    spread = dict(settings)
    for name, fields in _SHORTHANDS.items():
        if name in spread:
            values = tuple(spread.pop(name) or (0,) * len(fields))
            if len(values) != len(fields):
                raise ArgumentError(f"{name} takes {len(fields)} numbers ({', '.join(fields)}), not {len(values)}")
            spread.update(zip(fields, values))
    return spread


def _set_device(options: HsOptions, value: Union[str, int]) -> None:
    if isinstance(value, str):
        with_index = re.fullmatch(r"cuda:(\d{1,4})", value.lower())
        if with_index:
            options.device, options.device_index = _DEVICES["cuda"], int(with_index.group(1))
            return
    options.device = enumerator("device", _DEVICES, value)


class OptionsSet:
    """hs_options and the hs_expert_options beside them; ``view`` is what the library takes."""

    def __init__(self, profile: int) -> None:
        self.view, self.expert = HsOptions(), HsExpertOptions()
        for structure, initialise in (
            (self.view, library.hs_options_init_sized),
            (self.expert, library.hs_expert_options_init_sized),
        ):
            check(initialise(ctypes.byref(structure), ctypes.sizeof(structure), profile))
        self.view.expert = ctypes.addressof(self.expert)

    def part(self, name: str) -> ctypes.Structure:
        """The structure that has this field."""
        return self.expert if name in _EXPERT_TYPES else self.view

    def key(self) -> Tuple[Any, ...]:
        """Equal for options that mean the same."""
        return tuple(getattr(self.part(name), name) for name in _TYPES)

    def as_dict(self) -> Dict[str, Any]:
        """All options by name, enumerations by the names of their values."""
        values: Dict[str, Any] = {name: getattr(self.part(name), name) for name in _TYPES}
        for name in ENUMERATIONS:
            values[name] = name_of(name, values[name])
        variant: Optional[bytes] = self.expert.variant
        values["variant"] = variant.decode("utf-8") if variant else None
        return values


def make_options(settings: Mapping[str, Any]) -> OptionsSet:
    """Options of the profile named in the settings, changed by the others. Ranges are checked by the library."""
    spread = _spread_shorthands(dict(settings))
    profile = spread.pop("profile", "lowe")
    options = OptionsSet(enumerator("profile", PROFILES, profile))
    if "max_features" in spread and options.view.selection == ENUMERATIONS["selection"]["levels"]:
        spread.setdefault("selection", "scale")  # levels have no exact number, and one was asked for
    for name in ("dsp_sizes", "dsp_smallest", "dsp_largest"):
        if name in spread and "dsp" not in spread:
            raise ArgumentError(f"{name} is for dsp: expected dsp=True too")
    for name, value in spread.items():
        if name not in _TYPES:
            raise unknown_name("option", name, [*_TYPES, *_SHORTHANDS])
        if name == "device":
            _set_device(options.view, value)
        elif name in ENUMERATIONS:
            set_field(options.part(name), ctypes.c_int, name, enumerator(name, ENUMERATIONS[name], value))
        elif name == "variant":
            options.expert.variant = value.encode("utf-8") if value else None
        else:
            set_field(options.part(name), _TYPES[name], name, value)
    return options
