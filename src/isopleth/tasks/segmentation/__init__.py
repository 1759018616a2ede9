"""Segmentation of a series by its shortest description, for the change point detector."""
