"""Slow, obvious twins of what lacuna does fast, written from the specification alone. Imports nothing of lacuna."""

Outcomes = dict[tuple[int, int, bool, float, bool], float]

N_ROWS, N_COLUMNS = 8, 8
START = (7, 0)
GOAL = (6, 7)
ACTIONS = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (0, 0)]


def is_water(row: int, column: int, flooded: bool) -> bool:
    if row == 6:
        return False
    if flooded:
        return 2 <= column <= 5 and 2 <= row <= 7
    return 3 <= column <= 4 and 3 <= row <= 7


def colour(row: int, column: int, flooded: bool) -> int:
    right = column if column == 7 else column + 1
    wet = [is_water(row, column, flooded), is_water(row, right, flooded)]
    if wet == [True, True]:
        return 2
    if True in wet:
        return 1
    return 0


def reward(row: int, column: int, flooded: bool) -> float:
    if (row, column) == GOAL:
        return 100.0
    if is_water(row, column, flooded):
        return -10.0
    return -1.0


def clip(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def lake_outcomes(row: int, column: int, flooded: bool, action: int, wind: float, flood: float) -> Outcomes:
    """All that may follow an action: {(row, column, flooded, reward, ends): probability}."""
    if (row, column) == GOAL:
        row, column = START
    table: Outcomes = {}
    for flips, p_flood in [(True, flood), (False, 1 - flood)]:
        now_flooded = (not flooded) if flips else flooded
        for row_gust, p_row in [(0, 1 - wind), (-1, wind / 2), (1, wind / 2)]:
            for column_gust, p_column in [(0, 1 - wind), (-1, wind / 2), (1, wind / 2)]:
                to_row = clip(row + ACTIONS[action][0], 0, N_ROWS - 1)
                to_column = clip(column + ACTIONS[action][1], 0, N_COLUMNS - 1)
                to_row = clip(to_row + row_gust, 0, N_ROWS - 1)
                to_column = clip(to_column + column_gust, 0, N_COLUMNS - 1)
                to_row = clip(to_row, row - 1, row + 1)
                to_column = clip(to_column, column - 1, column + 1)
                pays = reward(to_row, to_column, now_flooded)
                key = (to_row, to_column, now_flooded, pays, (to_row, to_column) == GOAL)
                table[key] = table.get(key, 0.0) + p_flood * p_row * p_column
    return {key: p for key, p in table.items() if p > 0}
