"""Parts that every other package may use and that use no other package."""
