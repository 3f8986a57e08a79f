"""The Caffe-compatible schema."""
