"""Shares of classes among rows without labels."""
