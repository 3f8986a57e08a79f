"""Tests of the devices and their operations."""
