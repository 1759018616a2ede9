"""Time, memory and accuracy beside other libraries: ``python -m benchmarks``."""
