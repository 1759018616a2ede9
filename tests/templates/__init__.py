"""Templates for new kernels and tasks. The tests instantiate them, so they run with every version."""
