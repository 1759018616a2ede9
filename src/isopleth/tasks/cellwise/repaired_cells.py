"""Repairs of the cells of a judged table: what is usual in each cell, and which of the flagged ones are certain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isopleth.tables.amounts import amount_of, is_below_detection
from isopleth.tables.rules import Determines, Words
from isopleth.tables.unread import UnreadCells
from isopleth.tasks.cellwise.factors import doubtful_factors
from isopleth.tasks.cellwise.margins import flagged_cells, worst_cells
from isopleth.tasks.cellwise.mistakes import FoundMistakes, Mistake
from isopleth.tasks.cellwise.model import CellModel, JudgedTable
from isopleth.tasks.cellwise.repairs import RARE, SURE, USUAL, CellRepairs, RepairReasons
from isopleth.tasks.cellwise.usual_cells import UsualCells

# So many times as likely as the word to be written is another one that the law of its column speaks for.
_SPEAKS_FOR = 20.0


def repairs_of(model: CellModel, rows: JudgedTable, mistakes: FoundMistakes) -> CellRepairs:
    """Return what is told of the cells of a table: what is usual there, by which mistake, and which are certain."""
    table, evidence = rows.table, model.evidence
    usual, solved = _usual(model, rows)
    doubted = doubtful_factors(model, rows, mistakes)
    told = CellRepairs(rows.scores, evidence.excess(table, rows.judged.excess), usual, mistakes.found, doubted=doubted)
    bounds, absent = model.bounds_at(table), evidence.absent(table)
    told = told.with_absent(absent).with_mistakes(table.order, mistakes.scores, bounds)
    flagged = flagged_cells(told.scores, told.excess, bounds)
    reasons = RepairReasons(told, told.with_usual(flagged))
    reasons.of_mistakes(table.order, lambda each: mistake_in_words(model, rows, each, sure=each.row not in doubted))
    reasons.add(absent, "0 stands for a missing cell", certain=False)
    for (i, j), rule in solved.items():
        reasons.add(np.array([i]), f"cannot be read, and {rule}", j)
    for j, cells in rows.unread.items():
        for i, text in zip(cells.rows.tolist(), cells.texts, strict=True):
            reasons.add(np.array([i]), _why_unread(text, cells.kind), j, certain=False)
    _reasons_of_words(model, rows, reasons, usual)
    left = _in_kept_equations(model, rows)
    for cell in mistakes.swappable:
        left[cell] = True
    for k in range(table.n_numeric):
        j = int(table.order[k])
        if (
            table.columns is None or table.columns.columns[j].kind != "time"
        ):  # what is usual is no date that stood there
            reasons.of_far_numbers(j, table.rows[:, k], flagged, bounds, left[:, k])
    return replace(told, repairs=reasons.found, unclear=reasons.unclear)


def _in_kept_equations(model: CellModel, rows: JudgedTable) -> np.ndarray:
    """Return a mask of the encoded cells in equations that their rows keep: another number in one alone would break it."""
    table, evidence = rows.table, model.evidence
    out, cells = np.zeros(table.rows.shape, dtype=bool), evidence.columns(table)
    for rule in evidence.equations:
        places = [evidence.place(table, name) for name in rule.columns]
        kept = ~rule.breaks(cells) & ~np.isnan(table.rows[:, places]).any(axis=1)
        out[np.ix_(kept, places)] = True
    return out


def _why_unread(text: str, kind: str) -> str:
    """Return what is wrong with a cell that is not of the kind of its column."""
    if is_below_detection(text):
        return "below a limit of detection that is not said"
    if kind == "numbers" and _says_number(text):
        return "not in the unit of its column"
    return "cannot be read"


def _says_number(text: str) -> bool:
    """Return whether a cell is a number, in whatever unit; a single letter right behind a digit may be a digit, as in 4o."""
    found = [amount for sign in ".," if (amount := amount_of(text, sign)) is not None]
    return any(not (len(each.after) == 1 and each.after.isalpha() and text[-2:-1].isdigit()) for each in found)


def mistake_in_words(model: CellModel, rows: JudgedTable, mistake: Mistake, *, sure: bool = True) -> str:
    """Return what a mistake is, or may be, with the names of its columns."""
    if mistake.computed:
        return mistake.said
    said = mistake.said if sure else mistake.said.replace("{} is", "{} may be")
    return said.format(*(model.evidence.names[rows.table.order[k]] for k in mistake.columns))


def looks_like(model: CellModel, rows: JudgedTable, i: int, j: int) -> bool:
    """Return whether a cell holds a word that looks like another one of its column."""
    name, forms = model.evidence.names[j], model.evidence.forms
    return name in forms.meant and (name, model.evidence.columns(rows.table.take([i]))[name].codes[0]) in forms


def _reasons_of_words(model: CellModel, rows: JudgedTable, reasons: RepairReasons, usual: UsualCells) -> None:
    """Add the reasons why a word is replaced: it looks like another one, a word tells it, or one is far the likeliest.

    A rare word that no other column has is a word of its own, and nobody can tell that it is wrong.
    """
    table, evidence = rows.table, model.evidence
    columns = evidence.columns(table)
    told = [each.rule for each in evidence.rules if isinstance(each.rule, Determines)]
    for k in range(table.n_numeric, table.rows.shape[1]):
        j = int(table.order[k])
        name, words = evidence.names[j], columns[evidence.names[j]]
        forms = np.append([(name, code) in evidence.forms for code in range(len(words.levels))], False)
        doubted = np.flatnonzero(reasons.open[:, j])
        if len(doubted):
            reasons.open[doubted[_speaks_for_another(model, rows, doubted, k, usual)], j] = False
        reasons.add(forms[words.codes], f"looks like {USUAL}", j)
        for rule in told:
            if rule.second == name:
                reasons.add(rule.breaks(columns), f"not {rule}", j)
        counts = np.append(model.bounds.counts[k - table.n_numeric], np.zeros(len(words.levels) + 1))
        others = (columns[other] for other in columns if other != name and isinstance(columns[other], Words))
        foreign = np.append(np.isin(words.levels, [word for each in others for word in each.levels]), False)
        rare = np.flatnonzero((counts[words.codes] <= RARE) & foreign[words.codes] & reasons.open[:, j])
        if len(rare):
            shares = model.laws.word_shares(evidence.without_absent(table, table.rows[rare]), k)
            if shares is not None:
                reasons.add(rare[shares.max(axis=1) > SURE], f"{USUAL} is far the likeliest", j)


def _speaks_for_another(model: CellModel, rows: JudgedTable, at: np.ndarray, k: int, usual: UsualCells) -> np.ndarray:
    """Tell in which rows a rule, or the law by far, says another word of a column than the one to be written.

    A spelling says chair, and the price of the row a lamp: which of them is wrong is open.
    """
    table, evidence = rows.table.take(at), model.evidence
    j = int(table.order[k])
    name, columns = evidence.names[j], evidence.columns(table)
    written, words = usual.at(at, np.full(len(at), j))[1], columns[name]
    shares = model.laws.word_shares(evidence.without_absent(table, table.rows), k)
    if shares is None:
        out = np.zeros(len(at), dtype=bool)
    else:
        own = np.take_along_axis(shares, written.astype(np.intp)[:, None], axis=1)[:, 0]
        out = shares.max(axis=1) > _SPEAKS_FOR * own
    for rule in (each.rule for each in evidence.rules):
        if isinstance(rule, Determines) and rule.second == name:
            says = rule.says(columns, words.levels)
            out |= (says >= 0) & (says != written)
    return np.asarray(out)


def _usual(model: CellModel, rows: JudgedTable) -> tuple[UsualCells, dict[tuple[int, int], str]]:
    """Return what would be usual in each cell, and the equations that tell cells that cannot be read, by row and column.

    A broken equation says what its worst cell should hold, exactly, so does a column that determines another one, and a misspelt
    word is the word that it is a form of, of several the likeliest; everything else is told by the law.
    """
    table, evidence = rows.table, model.evidence
    usual = UsualCells(table.rows.shape, lambda at, columns: model.quantiles(table, rows.judged, at, columns))
    solved: dict[tuple[int, int], str] = {}
    cells = evidence.columns(table)
    worst = worst_cells(rows.scores, model.bounds_at(table))[0]
    for rule in evidence.equations:
        broken = rule.breaks(cells)
        for name in rule.columns:
            j, said = evidence.names.index(name), evidence.solved_for(rule, name, cells)
            at = np.flatnonzero(broken & (worst == j) & np.isfinite(said))
            if j in rows.unread:
                garbled = _garbled(rows.unread[j])
                garbled = garbled[np.isfinite(said[garbled])]
                solved |= {(i, j): str(rule) for i in garbled.tolist()}
                at = np.union1d(at, garbled)
            usual.put(at, j, said[at])
    _put_determined(model, rows, usual)
    for name, meant in evidence.forms.meant.items():
        j, k = evidence.names.index(name), evidence.place(table, name)
        for code, among in meant.items():
            at = np.flatnonzero(cells[name].codes == code)
            usual.put(at, j, model.laws.likeliest(table.rows[at], k, among))
    return usual, solved


def _put_determined(model: CellModel, rows: JudgedTable, usual: UsualCells) -> None:
    """Say what other columns determine in the cells that are not so, where these columns agree."""
    table, evidence = rows.table, model.evidence
    cells = evidence.columns(table)
    told: dict[str, list[Determines]] = {}
    for each in evidence.rules:
        if isinstance(each.rule, Determines):
            told.setdefault(each.rule.second, []).append(each.rule)
    for name, rules in told.items():
        broken = np.flatnonzero(np.any([rule.breaks(cells) for rule in rules], axis=0))
        if not len(broken):
            continue
        levels = sorted({word for rule in rules for word in rule.words.values()})
        said = np.array([rule.says(cells, levels)[broken] for rule in rules])
        most = said.max(axis=0)
        at, words = broken[agreed := ((said < 0) | (said == most)).all(axis=0)], [levels[i] for i in most[agreed]]
        if isinstance(cells[name], Words):
            place = {word: code for code, word in enumerate(cells[name].levels)}
            values = np.array([place.get(word, np.nan) for word in words])
        else:
            values = np.array(words, dtype=np.float64)
        known = ~np.isnan(values)
        usual.put(at[known], evidence.names.index(name), values[known])


def _garbled(cells: UnreadCells) -> np.ndarray:
    """Return the rows of cells that hold digits and say no number: words and numbers in another unit are meant."""
    return np.array(
        [
            row
            for row, text in zip(cells.rows.tolist(), cells.texts, strict=True)
            if any(map(str.isdigit, text)) and not _says_number(text)
        ],
        dtype=np.intp,
    )
