"""``caffe.proto.caffe_pb2``: where scripts look for Caffe's messages."""

from __future__ import annotations

from layrubnet.pycaffe import caffe_pb2

__all__ = ["caffe_pb2"]
