"""Data sources, decoding, transformation and prefetching: all of it on the host."""

from __future__ import annotations

from layrubnet.data.datum import decode_datum, encode_datum
from layrubnet.data.feed import Batches
from layrubnet.data.lmdb_source import LmdbSource, write_lmdb
from layrubnet.data.memory import MemoryBatches
from layrubnet.data.records import RecordSource, open_records
from layrubnet.data.transform import Transformer

__all__ = [
    "Batches",
    "LmdbSource",
    "MemoryBatches",
    "RecordSource",
    "Transformer",
    "decode_datum",
    "encode_datum",
    "open_records",
    "write_lmdb",
]
