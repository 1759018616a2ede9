"""``python -m isopleth.cli``."""

from isopleth.cli import main

main()
