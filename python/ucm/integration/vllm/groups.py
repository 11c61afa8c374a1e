"""Which of a request's blocks are loaded and saved, group by group of a KV cache."""

from __future__ import annotations

from typing import List, Mapping, Sequence, Tuple

from ucm.protocol import NO_SLOT, Found, Planned, Rule

# Blocks of the engine, and their slots. Block 0 is none: no token looks at it.
Pairs = List[Tuple[int, int]]
# A state: its request, its group, and after how many tokens it is.
State = Tuple[str, int, int]


def loaded(
    rules: Sequence[Rule], tables: Sequence[Sequence[int]], found: Found, computed: int, external: int
) -> List[Pairs]:
    """What is loaded of a hybrid model's hit, for each group.

    Empty when the engine wants other blocks filled than those that are there: then nothing may be loaded.
    """
    if external != found.tokens or not len(rules) == len(tables) == len(found.parts):
        return []
    made: List[Pairs] = []
    at = 0
    for rule, table, part in zip(rules, tables, found.parts):
        begin, end = computed // rule.block_tokens, (computed + external) // rule.block_tokens
        slots = found.slots[at : at + part.blocks]
        at += part.blocks
        held = table[part.first : end]
        if (
            not begin <= part.first <= end == part.first + len(slots)
            or len(held) != len(slots)
            or any(table[begin : part.first])
        ):
            return []
        made.append([(block, slot) for block, slot in zip(held, slots) if block != 0])
    return made


def saved(
    rules: Sequence[Rule], tables: Sequence[Sequence[int]], planned: Planned, computed: int
) -> Pairs:
    """What is saved of a plan. Empty when it names blocks that the request does not have or, as so many
    tokens are computed when the step begins, may not have any more."""
    table = tables[planned.group] if planned.group < len(tables) else ()
    held = rules[planned.group].first_needed(computed) if rules else 0
    pairs = [
        (table[i] if held <= i < len(table) else 0, slot)
        for i, slot in enumerate(planned.slots, planned.first_block)
        if slot != NO_SLOT
    ]
    return pairs if all(block for block, _ in pairs) else []


def saved_states(
    rule: Rule, states: Mapping[State, int], request_id: str, planned: Planned
) -> Pairs:
    """The same for states: the engine says in which blocks they are."""
    pairs = [
        (states.get((request_id, planned.group, (i + 1) * rule.block_tokens), 0), slot)
        for i, slot in enumerate(planned.slots, planned.first_block)
        if slot != NO_SLOT
    ]
    return pairs if all(block for block, _ in pairs) else []
