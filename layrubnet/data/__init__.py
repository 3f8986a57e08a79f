"""Data sources, decoding, transformation and prefetching: all of it on the host."""

from __future__ import annotations

from layrubnet.data.lmdb_source import LmdbSource, write_lmdb
from layrubnet.data.records import RecordSource, open_records

__all__ = ["LmdbSource", "RecordSource", "open_records", "write_lmdb"]
