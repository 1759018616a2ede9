"""``python -m isopleth``: the command line."""

from isopleth_command import main

main()
