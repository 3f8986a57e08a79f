"""Tests of the layers, one file each."""
