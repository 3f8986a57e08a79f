"""Tests of the data side."""
