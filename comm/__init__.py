"""Exchanging gradients between processes: to come. This version trains in one process."""
