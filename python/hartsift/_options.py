"""Converts keyword arguments to hs_options. The names of fields and enumerators are those of hs_option_describe."""

from __future__ import annotations

import ctypes
import difflib
import operator
import re
from ctypes import c_char_p, c_float, c_int, c_int32, c_size_t, c_uint64, c_void_p
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from ._errors import ArgumentError, check, know_fields
from ._library import library
from ._structures import HsOptionInfo

#: hs_option_type
INTEGER, FLAG, CHOICE, NUMBER, COUNT, BYTES, TEXT, POINTER, UNUSED = range(9)
_C_TYPES = (c_int32, c_int32, c_int, c_float, c_uint64, c_uint64, c_char_p, c_void_p, c_int32)


def described_options() -> List[HsOptionInfo]:
    """The library's descriptions of all fields of hs_options and hs_expert_options."""
    infos: List[HsOptionInfo] = []
    while info := library.hs_option_describe(len(infos)):
        infos.append(info.contents)
    return infos


def is_offered(info: HsOptionInfo) -> bool:
    """True if the field is available as a keyword. workload is not; see Batch."""
    return info.type not in (POINTER, UNUSED) and info.name != b"workload"


_INFOS = described_options()


def _structure(name: str, of_expert: int) -> Any:
    fields = [(info.name.decode(), _C_TYPES[info.type]) for info in _INFOS if info.of_expert == of_expert]
    namespace = {"_fields_": [("struct_size", c_size_t), *fields], "__doc__": name, "__module__": __name__}
    structure = type(name, (ctypes.Structure,), namespace)
    for info in _INFOS:
        if info.of_expert == of_expert and getattr(structure, info.name.decode()).offset != info.offset:
            raise ImportError(f"{name}.{info.name.decode()} is not at {info.offset} bytes, as the library has it")
    return structure


HsOptions = _structure("hs_options", 0)
HsExpertOptions = _structure("hs_expert_options", 1)
STRUCTURES: Dict[str, Any] = {"hs_options": HsOptions, "hs_expert_options": HsExpertOptions}
know_fields(STRUCTURES)

#: Fields whose type is an enumeration, and the names of its values.
ENUMERATIONS: Dict[str, Dict[str, int]] = {
    info.name.decode(): {name: value for value, name in enumerate(info.values.decode().split("|"))}
    for info in _INFOS
    if info.type == CHOICE and is_offered(info)
}
#: Options that change no byte of the features (HS_OPTIONS_WORK).
WORK_OPTIONS = frozenset(info.name.decode() for info in _INFOS if info.group == 1)
PROFILES, LAYOUTS, NORMS = ENUMERATIONS["profile"], ENUMERATIONS["layout"], ENUMERATIONS["norm"]
_DEVICES = ENUMERATIONS["device"]
_EXPERT_TYPES = {info.name.decode(): _C_TYPES[info.type] for info in _INFOS if info.of_expert}
_TYPES: Dict[str, Any] = {info.name.decode(): _C_TYPES[info.type] for info in _INFOS if is_offered(info)}
_SHORTHANDS: Dict[str, Tuple[str, ...]] = {
    "region": ("region_x", "region_y", "region_width", "region_height"),
    "grid": ("grid_columns", "grid_rows"),
}


def name_of(field: str, value: int) -> str:
    """The name of a value of an enumeration."""
    return next(name for name, number in ENUMERATIONS[field].items() if number == value)


def enumerator(field: str, names: Mapping[str, int], value: Union[str, int]) -> int:
    """The number of a value of an enumeration, which is given by name or number."""
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
    """Writes a number to a field. The range is checked, because ctypes would truncate the number."""
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
    """The exception for an unknown keyword. It names the most similar known one, and lists all."""
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


def _set_device(options: Any, value: Union[str, int]) -> None:
    if isinstance(value, str):
        with_index = re.fullmatch(r"cuda:(\d{1,4})", value.lower())
        if with_index:
            options.device, options.device_index = _DEVICES["cuda"], int(with_index.group(1))
            return
    options.device = enumerator("device", _DEVICES, value)


class OptionsSet:
    """An hs_options with its hs_expert_options; ``view`` is passed to the library."""

    def __init__(self, profile: int) -> None:
        self.view, self.expert = HsOptions(), HsExpertOptions()
        for structure, initialise in (
            (self.view, library.hs_options_init_sized),
            (self.expert, library.hs_expert_options_init_sized),
        ):
            check(initialise(ctypes.byref(structure), ctypes.sizeof(structure), profile))
        self.view.expert = ctypes.addressof(self.expert)

    def part(self, name: str) -> Any:
        """The structure that has the field with this name."""
        return self.expert if name in _EXPERT_TYPES else self.view

    def key(self) -> Tuple[Any, ...]:
        """A key for caches. Equivalent options have equal keys."""
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
    """Options of the profile in the settings, changed by the other settings. The library checks ranges."""
    spread = _spread_shorthands(dict(settings))
    profile = spread.pop("profile", "lowe")
    options = OptionsSet(enumerator("profile", PROFILES, profile))
    if "max_features" in spread and options.view.selection == ENUMERATIONS["selection"]["levels"]:
        spread.setdefault("selection", "scale")  # selection by levels cannot give an exact number of features
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
