"""Tests of the memory planner."""
