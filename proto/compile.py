"""Compile the ``.proto`` files into ``schema.binpb``: ``python -m layrubnet.proto.compile``.

Needed only after a change of the schema, with ``grpcio-tools`` (extra ``dev``). The result is
committed and shipped, so that users need no compiler.
"""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BINARY = FOLDER / "schema.binpb"


def compile_schema() -> bytes:
    """Return the serialised FileDescriptorSet of all ``.proto`` files in this folder."""
    protoc = importlib.import_module("grpc_tools.protoc")
    sources = sorted(path.name for path in FOLDER.glob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "schema.binpb"
        # With the imports included, each file comes after those that it needs.
        options = [f"-I{FOLDER}", "--include_imports", f"--descriptor_set_out={target}"]
        arguments = ["protoc", *options, *sources]
        if protoc.main(arguments) != 0:
            raise SystemExit("protoc refused the schema (its messages are above)")
        return target.read_bytes()


def main() -> None:
    """Write ``schema.binpb`` beside the sources."""
    BINARY.write_bytes(compile_schema())
    print(f"wrote {BINARY}")


if __name__ == "__main__":
    main()
