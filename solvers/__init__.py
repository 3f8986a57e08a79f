"""Solvers: learning-rate policies, update rules, the training loop, snapshots."""
