"""``python -m isopleth``: the command line."""

from isopleth_command import main

if __name__ == "__main__":
    main()
