"""Which blocks of a hybrid model are loaded and saved: rules, tables, and what does not fit together."""

from ucm import protocol
from ucm.integration.vllm import groups
from ucm.protocol import ALL, CHUNK, LAST, NO_SLOT, Found, Part, Planned, Rule

FULL, WINDOW, STATE = Rule(ALL, 0, 4), Rule(LAST, 7, 4), Rule(LAST, 1, 4)


def found(tokens, slots, *parts):
    return Found(1, tokens, 9, 5, slots, 6, 5, [Part(*part) for part in parts])


def test_rules_say_what_the_next_token_looks_at():
    assert [FULL.first_needed(end) for end in (0, 40)] == [0, 0]
    # As many tokens as a window has, the token itself among them.
    assert [WINDOW.first_needed(end) for end in (0, 7, 11, 12, 16)] == [0, 0, 1, 1, 2]
    assert [STATE.first_needed(end) for end in (4, 8)] == [0, 1]
    assert [Rule(CHUNK, 8, 4).first_needed(end) for end in (7, 8, 12, 16)] == [0, 2, 2, 4]


def test_each_group_loads_what_it_has_blocks_for():
    tables = [[11, 12, 13, 14, 15], [0, 0, 0, 23, 24], [0, 0, 0, 0, 31]]
    hit = found(20, [1, 2, 3, 4, 5, 6, 7, 8], (0, 5), (3, 2), (4, 1))
    assert groups.loaded([FULL, WINDOW, STATE], tables, hit, 0, 20) == [
        [(11, 1), (12, 2), (13, 3), (14, 4), (15, 5)],
        [(23, 6), (24, 7)],
        [(31, 8)],
    ]


def test_what_is_not_needed_is_not_loaded():
    hit = found(12, [1, 2, 3], (1, 3))
    assert groups.loaded([WINDOW], [[9, 0, 22, 23]], hit, 4, 12) == [[(22, 2), (23, 3)]]


def test_a_hit_that_does_not_fit_is_not_loaded_at_all():
    hit = found(20, [1, 2], (3, 2))
    assert groups.loaded([WINDOW], [[0, 0, 0, 23, 24]], hit, 0, 20) == [[(23, 1), (24, 2)]]
    # A block that the engine looks at and nothing fills; another length; no table; too short a table.
    assert groups.loaded([WINDOW], [[0, 0, 22, 23, 24]], hit, 0, 20) == []
    assert groups.loaded([WINDOW], [[0, 0, 0, 23, 24]], hit, 0, 16) == []
    assert groups.loaded([WINDOW], [], hit, 0, 20) == []
    assert groups.loaded([WINDOW], [[0, 0, 0, 23]], hit, 0, 20) == []
    assert groups.loaded([WINDOW, STATE], [[0, 0, 0, 23, 24]] * 2, hit, 0, 20) == []


def test_blocks_that_a_window_has_passed_are_not_saved():
    table = [[21, 22, 23, 24]]
    planned = Planned(1, 7, 1, [5, NO_SLOT, 6])
    assert groups.saved([WINDOW], table, planned, 11) == [(22, 5), (24, 6)]
    # One token further, block 1 is still looked at; four further it may be another request's.
    assert groups.saved([WINDOW], table, planned, 12) == [(22, 5), (24, 6)]
    assert groups.saved([WINDOW], table, planned, 16) == []
    assert groups.saved([], table, planned, 16) == [(22, 5), (24, 6)]
    assert groups.saved([], [[21, 22, 23]], planned, 0) == []


def test_states_are_where_the_engine_says():
    planned = Planned(1, 7, 3, [5], group=2)
    assert groups.saved_states(STATE, {("a", 2, 16): 41}, "a", planned) == [(41, 5)]
    # Of another request, another group, or after other tokens.
    for other in (("b", 2, 16), ("a", 1, 16), ("a", 2, 12), ("a", 2, 20)):
        assert groups.saved_states(STATE, {other: 41}, "a", planned) == []


def test_a_state_is_not_taken_from_a_request_that_is_not_in_the_step():
    class Output:
        num_scheduled_tokens = {"a": 4}

        class kv_connector_block_state:
            boundary_state_offloads = {"a": [(1, 41, 16)], "b": [(1, 42, 16)]}

    from ucm.integration.vllm import compat

    assert compat.handed_off(Output) == {("a", 1, 16): 41}
    assert protocol.GROUPS == 40
