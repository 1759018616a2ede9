"""Files of tables that tests write, and what is read from them."""

from __future__ import annotations

from datetime import datetime

import pytest

from isopleth import InputError, read_table

TEXT = "day,price,colour,sold\n2024-01-31,1.5,red,true\n2024-02-01,NA,blue,False\n2024-02-02,2.5,,true\n"
CELLS = {
    "day": [datetime(2024, 1, 31), datetime(2024, 2, 1), datetime(2024, 2, 2)],
    "price": [1.5, None, 2.5],
    "colour": ["red", "blue", None],
    "sold": [True, False, True],
}


def written(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def cells(table):
    return table.data.to_pydict()


def refused(path, **how):
    with pytest.raises(InputError) as caught:
        read_table(path, **how)
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    return caught.value
