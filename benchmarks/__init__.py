"""Compare time, memory and accuracy with other libraries: ``python -m benchmarks``."""
