"""Text to messages: ``parse``, and ``read_net`` / ``read_solver`` which also upgrade old formats.

protobuf's text parser does the parsing; this module reads files, and turns the parser's errors
into messages with the place, the nearest known name and the fork that a field comes from.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from layrubnet.errors import PrototxtError, nearest
from layrubnet.proto import MESSAGES, NetParameter, SolverParameter
from layrubnet.prototxt import sniff
from layrubnet.prototxt.forks import fork_of
from layrubnet.prototxt.positions import Path as FieldPath
from layrubnet.prototxt.positions import Positions, locate
from layrubnet.prototxt.upgrade import upgrade_net, upgrade_solver

_UNKNOWN_FIELD = re.compile(r'Message type "layrubnet\.(\w+)" has no field named "([^"]*)"')
_UNKNOWN_VALUE = re.compile(r'Enum type "layrubnet\.([\w.]+)" has no value named (.*?)\.?$')
_REPEATED = re.compile(r'should not have multiple "(\w+)" fields')
_INLINE = "<text>"


def parse(text: str, kind: Any, filename: str = _INLINE, allow_unknown: bool = False) -> Any:
    """Return a message of class ``kind`` from text.

    ``allow_unknown`` skips fields that the schema does not have. Raises
    :class:`~layrubnet.errors.PrototxtError` with ``file:line:col``.
    """
    message = kind()
    text = text.removeprefix("\ufeff")
    try:
        with warnings.catch_warnings():
            # Python only warns of "C:\data"; Caffe's parser refuses it, and so do we.
            warnings.filterwarnings("error", message=".*invalid.* escape")
            text_format.Parse(text, message, allow_unknown_field=allow_unknown)
    except Warning:
        raise PrototxtError(
            "a string has an invalid escape after a backslash",
            where=_first_bad_escape(text, filename),
            hint="write / or \\\\ in paths",
        ) from None
    except text_format.ParseError as error:
        raise _explain(error, filename, kind) from None
    except (ValueError, RecursionError) as error:
        raise PrototxtError(f"cannot be parsed: {error}", where=filename) from None
    missing = message.FindInitializationErrors()
    if missing:
        raise PrototxtError(f"the required field {missing[0]!r} is missing", where=filename)
    return message


def read_net(
    source: str | os.PathLike[str], *, filename: str | None = None, allow_unknown: bool = False
) -> tuple[Any, Positions]:
    """Return an upgraded NetParameter and the positions of its layers.

    ``source`` is a path, or the text itself (a ``str`` with a line break, a brace or a quote).
    """
    text, name = load(source, filename)
    net = parse(text, NetParameter, name, allow_unknown)
    return upgrade_net(net, layer_positions(text, name))


def read_solver(
    source: str | os.PathLike[str], *, filename: str | None = None, allow_unknown: bool = False
) -> Any:
    """Return an upgraded SolverParameter; ``source`` as in :func:`read_net`.

    As in Caffe, a missing ``snapshot_prefix`` becomes the solver file's path without its suffix,
    and a folder becomes a file prefix in it. Nets inside the solver are upgraded, too.
    """
    text, name = load(source, filename)
    solver = upgrade_solver(parse(text, SolverParameter, name, allow_unknown), name)
    for field in ("net_param", "train_net_param"):
        if solver.HasField(field):
            _upgrade_inside(getattr(solver, field), text, name, ((field, 0),))
    for index, net in enumerate(solver.test_net_param):
        _upgrade_inside(net, text, name, (("test_net_param", index),))
    if name != _INLINE:
        _complete_prefix(solver, Path(name))
    return solver


def to_text(message: Any) -> str:
    """Return a message as Caffe's tools write it (whole floats without ``.0``)."""
    text = text_format.MessageToString(message)
    return re.sub(r"(?m)^( *\w+: -?\d+)\.0$", r"\1", text)


def layer_positions(text: str, filename: str, under: FieldPath = ()) -> Positions:
    """Return where the layers of a net begin; ``under`` leads to a net inside a solver."""
    text = text.removeprefix("\ufeff")
    return Positions(filename, locate(text, filename, ("layer", "layers"), under))


def load(source: str | os.PathLike[str], filename: str | None = None) -> tuple[str, str]:
    """Return the text of a path or of a text, and the name for messages about it."""
    if isinstance(source, str) and (not source or any(mark in source for mark in '\n{"')):
        return source.removeprefix("\ufeff"), filename or _INLINE
    name = filename or os.fspath(source)
    return decode(read_bytes(source, name), name), name


def read_bytes(path: str | os.PathLike[str], name: str) -> bytes:
    """Return the content of a prototxt file, or say why it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        folder = Path(path).parent
        near = nearest(Path(path).name, _names_in(folder))
        hint = f"did you mean {folder / near[0]}?" if near else f"looked in {folder.absolute()}"
        raise PrototxtError("no such file", where=name, hint=hint) from None
    except IsADirectoryError:
        raise PrototxtError("is a folder, not a prototxt file", where=name) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PrototxtError(f"cannot be read: {reason}", where=name) from None


def decode(data: bytes, name: str) -> str:
    """Return the text of a file's bytes; refuse binary and empty files."""
    if not data.strip():
        raise PrototxtError("the file is empty", where=name)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise PrototxtError("the file is UTF-16", where=name, hint="save it as UTF-8")
    kind = sniff.kind_of(data)
    if kind != sniff.TEXT or b"\0" in data:
        what = kind if kind != sniff.TEXT else "a file with NUL bytes"
        raise PrototxtError(
            f"this is {what}, not a prototxt file",
            where=name,
            hint="weights are given with --weights, snapshots with --snapshot",
        )
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise PrototxtError(
            "the text is not UTF-8", where=f"{name}:{line}:{column}", hint="save it as UTF-8"
        ) from None


def _names_in(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def _upgrade_inside(net: Any, text: str, name: str, under: FieldPath) -> None:
    upgraded, _ = upgrade_net(net, layer_positions(text, name, under))
    net.CopyFrom(upgraded)


def _complete_prefix(solver: Any, path: Path) -> None:
    if not solver.HasField("snapshot_prefix"):
        solver.snapshot_prefix = str(path.with_suffix(""))
    elif solver.snapshot_prefix.endswith("/") or Path(solver.snapshot_prefix).is_dir():
        solver.snapshot_prefix = str(Path(solver.snapshot_prefix) / path.stem)


def _first_bad_escape(text: str, filename: str) -> str:
    found = re.search(r"""(?<!\\)(?:\\\\)*\\(?:[^abfnrtvxuU0-7'"\\]|[4-7][0-7]{2})""", text)
    if found is None:
        return filename
    line = text.count("\n", 0, found.start()) + 1
    return f"{filename}:{line}:{found.start() - text.rfind(chr(10), 0, found.start())}"


def _explain(error: text_format.ParseError, filename: str, kind: Any) -> PrototxtError:
    what = re.sub(r"^\d+:\d+ : ", "", str(error))
    # The parser quotes the whole line first; an editor shows it better.
    what = re.sub(r"^'.*': (?=[A-Z])", "", what, flags=re.DOTALL)
    line, column = error.GetLine(), error.GetColumn()
    where = filename if line is None else f"{filename}:{line}:{column}"
    what, hint = _advice(what, kind)
    return PrototxtError(what.replace("layrubnet.", ""), where=where, hint=hint)


def _advice(what: str, kind: Any) -> tuple[str, str]:
    unknown = _UNKNOWN_FIELD.search(what)
    if unknown:
        owner, field = unknown.groups()
        return what, _field_advice(owner, field, kind)
    value = _UNKNOWN_VALUE.search(what)
    if value:
        return what, _value_advice(*value.groups())
    if _REPEATED.search(what):
        return what, "give it once"
    if "parse integer" in what:
        return what, "write a whole number, without a point or an exponent"
    return what, ""


def _field_advice(owner: str, field: str, kind: Any) -> str:
    known = _all_messages().get(owner)
    names = [f.name for f in known.fields] if known is not None else []
    parts = []
    near = nearest(field, names)
    if near:
        parts.append(f"did you mean {near[0]!r}?")
    elif kind is NetParameter and field in MESSAGES["SolverParameter"].DESCRIPTOR.fields_by_name:
        return "this is a solver's field: was a solver file given as a net?"
    elif kind is SolverParameter and field in NetParameter.DESCRIPTOR.fields_by_name:
        return "this is a net's field: was a net file given as a solver?"
    elif field in MESSAGES["LayerParameter"].DESCRIPTOR.fields_by_name:
        parts.append("it belongs to the layer itself: is a brace missing before it?")
    fork = fork_of(field)
    if fork:
        parts.append(f"the field is known in {fork}")
    parts.append("--allow-unknown-fields skips unknown fields")
    return "; ".join(parts)


def _value_advice(enum: str, value: str) -> str:
    message, _, name = enum.rpartition(".")
    owner = _all_messages().get(message)
    if owner is None:
        return "one of TRAIN, TEST"
    names = [v.name for v in owner.enum_types_by_name[name].values]
    if value.strip("\"'") in names:
        return f"without quotes: {value.strip(chr(34) + chr(39))}"
    near = nearest(value.strip("\"'"), names)
    if near:
        return f"did you mean {near[0]}?"
    return "one of " + ", ".join(names)


def _all_messages() -> dict[str, Any]:
    return {name: kind.DESCRIPTOR for name, kind in MESSAGES.items()}
