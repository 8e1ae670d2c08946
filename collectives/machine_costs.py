# SPDX-License-Identifier: Apache-2.0
"""What a machine costs ranks that share its memory, as a value, and as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NoReturn

from collectives._ffi import check, ffi, lib
from collectives.errors import InvalidArgumentError
from collectives.topology.checked import cost, number, refused, shown

FORMAT = "collectives machine costs"
VERSION = 2
LONGEST = 1 << 20  # bytes of a file
POINTS = 4
# What a slow machine that is shared may be measured to have, and no more: else it is no number of
# a machine, and all that is predicted by it is wrong.
_MOST = {"seconds": 60.0, "seconds_per_byte": 1.0, "nbytes": 2.0**62}


@dataclass(frozen=True)
class Curve:
    """Seconds per byte, by how many bytes are worked on: four points, their bytes ascending."""

    nbytes: tuple[float, ...]
    seconds_per_byte: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse what is no curve."""
        for name in ("nbytes", "seconds_per_byte"):
            values = getattr(self, name)
            if not isinstance(values, list | tuple) or len(values) != POINTS:
                raise refused(name, values, f"{POINTS} numbers")
            checked = tuple(_bounded(f"{name}[{i}]", value, name) for i, value in enumerate(values))
            object.__setattr__(self, name, checked)
        ascending = all(a < b for a, b in zip(self.nbytes, self.nbytes[1:], strict=False))
        if self.nbytes[0] <= 0 or not ascending:
            raise refused("nbytes", self.nbytes, "numbers above 0 that ascend")


@dataclass(frozen=True)
class CoreCosts:
    """Between two cores: seconds until a flag is seen, and seconds per byte.

    ``read`` what the other has just written, and ``write`` into a slot whose turn it is again, as
    in calls, by the bytes of a message; ``streamed_*``: where the writer goes around the caches.
    ``measured``: else in proportion to the other placement, or the usual ones.
    """

    flag: float
    read: Curve
    write: Curve
    streamed_read: Curve
    streamed_write: Curve
    measured: bool

    def __post_init__(self) -> None:
        """Refuse what is no cost."""
        object.__setattr__(self, "flag", _bounded("flag", self.flag, "seconds"))
        _check_types(self, Curve, bool)


@dataclass(frozen=True)
class MachineCosts:
    """What a machine costs: seconds, seconds per byte, and bytes of caches.

    ``cores`` that the ranks have between them (0: one each); seconds of an ``op`` of a plan and of
    a ``call``, whatever they do, and until a core works for another rank (``turn``); ``fold`` per
    byte of an operand where memory costs nothing; to ``read`` and ``write`` own data, also around
    the caches (``stream``), by the bytes of all that a rank goes through in a call; between cores
    that share a cache (``near``) or none (``far``).
    """

    cores: int
    private_cache: float
    shared_cache: float
    op: float
    call: float
    turn: float
    fold: float
    read: Curve
    write: Curve
    stream: Curve
    near: CoreCosts
    far: CoreCosts

    def __post_init__(self) -> None:
        """Refuse what is no cost."""
        object.__setattr__(self, "cores", number("cores", self.cores))
        for name in ("private_cache", "shared_cache"):
            object.__setattr__(self, name, _bounded(name, getattr(self, name), "nbytes"))
        for name in ("op", "call", "turn"):
            object.__setattr__(self, name, _bounded(name, getattr(self, name), "seconds"))
        object.__setattr__(self, "fold", _bounded("fold", self.fold, "seconds_per_byte"))
        _check_types(self, Curve, CoreCosts)

    def placed(self, far: bool) -> MachineCosts:
        """Return the same machine with its cores far apart, or near."""
        near, away = replace(self.near, measured=not far), replace(self.far, measured=far)
        return replace(self, near=near, far=away)

    def to_json(self) -> str:
        """Return the text of a file that :meth:`from_json` reads."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, content: str | bytes, name: str = "the text") -> MachineCosts:
        """Return what :meth:`to_json` wrote. ``name`` of the file, for errors.

        Raises:
            InvalidArgumentError: it is no such JSON, or a value is none; the sentence says which.
        """
        return _costs_in(content, name)


def _bounded(what: str, value: object, unit: str) -> float:
    """Return a number of seconds, bytes, or seconds per byte that a machine may have."""
    most = _MOST[unit]
    found = cost(what, value, unit.replace("_", " "))
    if found > most:
        raise refused(what, value, f"{unit.replace('_', ' ')}, {most:g} at most")
    return found


def _check_types(value: Any, *others: type) -> None:
    """Refuse a field that is neither a number, which was checked, nor of its own class."""
    wanted = {other.__name__: other for other in others}
    for field in fields(value):
        cls = wanted.get(str(field.type))
        if cls is not None and not isinstance(getattr(value, field.name), cls):
            raise refused(field.name, getattr(value, field.name), f"a {cls.__name__}")


# ---- JSON ----------------------------------------------------------------------------------------


def _refuse(name: str, why: str) -> NoReturn:
    raise InvalidArgumentError(f"{name} {why}")


def _costs_in(content: str | bytes, name: str) -> MachineCosts:
    if len(content) > LONGEST:
        _refuse(name, f"has more than {LONGEST} bytes: it holds no costs of a machine")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        _refuse(name, f"is not JSON: {error}")
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        _refuse(name, f"does not say that its format is '{FORMAT}'")
    version = document.pop("version", None)
    if isinstance(version, bool) or version != VERSION:
        _refuse(name, f"has version {shown(version)}; this library reads {VERSION}")
    try:
        made: MachineCosts = _made(MachineCosts, document, "")
    except InvalidArgumentError as error:
        _refuse(name, f"does not hold the costs of a machine: {error}")
    return made


_CLASSES: Mapping[str, type] = {"Curve": Curve, "CoreCosts": CoreCosts}


def _made(cls: Any, values: Any, where: str) -> Any:
    names = [field.name for field in fields(cls)]
    if not isinstance(values, dict) or set(values) != set(names):
        raise refused(where or "it", values, f"an object with the keys {', '.join(names)}")
    made = {}
    for field in fields(cls):
        inner = _CLASSES.get(str(field.type))
        at = f"{where}.{field.name}" if where else field.name
        value = values[field.name]
        made[field.name] = value if inner is None else _made(inner, value, at)
    try:
        return cls(**made)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{where}: {error}" if where else str(error)) from None


# ---- the native layer's --------------------------------------------------------------------------


def native_of(costs: MachineCosts) -> Any:
    """Return a ``coll_machine``."""
    machine = ffi.new("coll_machine *")
    machine.size = ffi.sizeof("coll_machine")
    _fill(machine, costs)
    return machine


def _fill(target: Any, value: Any) -> None:
    for field in fields(value):
        own = getattr(value, field.name)
        if isinstance(own, Curve):
            curve = getattr(target, field.name)
            curve.bytes, curve.seconds_per_byte = own.nbytes, own.seconds_per_byte
        elif isinstance(own, CoreCosts):
            _fill(getattr(target, field.name), own)
        else:
            setattr(target, field.name, own)


def costs_of(machine: Any) -> MachineCosts:
    """Return what a ``coll_machine`` says."""
    return MachineCosts(
        cores=machine.cores,
        private_cache=machine.private_cache,
        shared_cache=machine.shared_cache,
        op=machine.op,
        call=machine.call,
        turn=machine.turn,
        fold=machine.fold,
        read=_curve_of(machine.read),
        write=_curve_of(machine.write),
        stream=_curve_of(machine.stream),
        near=_between_of(machine.near),
        far=_between_of(machine.far),
    )


def _curve_of(curve: Any) -> Curve:
    return Curve(tuple(curve.bytes), tuple(curve.seconds_per_byte))


def _between_of(costs: Any) -> CoreCosts:
    return CoreCosts(
        flag=costs.flag,
        read=_curve_of(costs.read),
        write=_curve_of(costs.write),
        streamed_read=_curve_of(costs.streamed_read),
        streamed_write=_curve_of(costs.streamed_write),
        measured=bool(costs.measured),
    )


def usual_costs() -> MachineCosts:
    """Return the costs of a machine with two cores of an AMD EPYC, where nothing is measured."""
    machine = ffi.new("coll_machine *")
    check(lib.coll_usual_machine(machine))
    return costs_of(machine)


def load_costs(path: str | os.PathLike[str]) -> MachineCosts:
    """Return what a file holds; InvalidArgumentError says what is wrong with it."""
    with open(path, "rb") as file:
        return MachineCosts.from_json(file.read(LONGEST + 1), os.fspath(path))
