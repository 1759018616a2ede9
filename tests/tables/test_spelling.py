"""Wrong forms of words against a count of edits, and words that are other words."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from isopleth.tables.spelling import case_forms, meant_words, misspelt, one_edit


def edits(one, two):
    """Fewest lost, added and changed letters and swaps of two that stand together, by a table of all beginnings."""
    away = {(i, 0): i for i in range(len(one) + 1)} | {(0, k): k for k in range(len(two) + 1)}
    for i, k in product(range(1, len(one) + 1), range(1, len(two) + 1)):
        other = one[i - 1] != two[k - 1]
        steps = [away[i - 1, k] + 1, away[i, k - 1] + 1, away[i - 1, k - 1] + other]
        if i > 1 and k > 1 and one[i - 2 : i] == two[k - 2 : k][::-1] and other:
            steps.append(away[i - 2, k - 2] + 1)
        away[i, k] = min(steps)
    return away[len(one), len(two)]


def test_one_edit_is_an_edit_distance_of_one():
    words = ["".join(letters) for length in (2, 3, 4) for letters in product("ab", repeat=length)] + [
        "abc",
        "acb",
        "abcd",
    ]
    for one, two in product(words, words):
        assert one_edit(one, two) == (edits(one, two) == 1), (one, two)


@pytest.mark.parametrize(
    ("word", "right", "wrong"),
    [
        ("nroth", "north", True),
        ("norh", "north", True),
        ("nnorth", "north", True),
        ("nxrth", "north", True),
        ("nxrxh", "north", False),
        ("east", "north", False),
        ("ys", "yes", True),
        ("yxs", "yes", True),
        ("xs", "ys", False),  # words of two letters are other words
        ("sy", "ys", False),
        ("A1", "A2", False),  # another code
        ("item 12", "item 13", False),
        ("itm 12", "item 13", True),
        ("hospitxls clinic", "hospital clinics", True),  # two edits of many letters
        ("abcdef", "uvwxyz", False),
    ],
)
def test_words_look_like_a_wrong_form_of_a_right_one(word, right, wrong):
    assert misspelt([word], [right]).tolist() == [wrong]
    others = ["quartz", "umbrella"]
    assert misspelt([*others, word], [right]).tolist() == [False, False, wrong]
    assert misspelt([word], ["quartz", right]).tolist() == [wrong]


def test_case_is_a_wrong_form_beside_a_far_more_frequent_word():
    words = ["Oslo", "oslo", "OS LO", "Rome", "rome", "01", "1"]
    counts = np.array([40, 4, 1, 30, 4, 90, 1])
    assert case_forms(words, counts) == {1: 0, 2: 0}  # rome has more than a tenth
    assert case_forms(words, np.array([40, 5, 1, 40, 4, 90, 1])) == {4: 3}
    assert case_forms(words, np.array([40, 4, 0, 0, 0, 0, 0])) == {1: 0}


@pytest.mark.parametrize(
    ("count", "of_right", "meant"),
    [(1, 10, True), (1, 9, False), (5, 50, True), (5, 49, False), (6, 600, False)],
)
def test_few_rows_of_a_word_may_be_another_that_is_ten_times_as_frequent(count, of_right, meant):
    found = meant_words(["south", "soth", "west"], np.array([of_right, count, 100]))
    assert found == ({1: [0]} if meant else {})


def test_a_word_between_two_is_meant_as_the_more_frequent_one_first():
    words = ["cart", "card", "carx", "cartwheels", "cartwheel", "cartwhee", "car"]
    assert meant_words(words, np.array([50, 80, 1, 0, 0, 0, 0])) == {2: [1, 0]}
    assert meant_words(words, np.array([50, 50, 1, 0, 0, 0, 0])) == {2: [1, 0]}  # ties by the word
    assert meant_words(words, np.array([0, 0, 0, 90, 0, 1, 0])) == {5: [3]}  # without the last two letters
    assert meant_words(words, np.array([50, 0, 0, 0, 0, 0, 1])) == {6: [0]}
