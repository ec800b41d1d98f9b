"""Measurements as they come, beside the same bursts clean; one module per subject."""
