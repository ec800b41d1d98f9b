"""Tables of the documentation, made of benchmarks/results: `python -m benchmarks.docs`, or `make docs`."""
