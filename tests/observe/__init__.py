"""Tests of what training shows."""
