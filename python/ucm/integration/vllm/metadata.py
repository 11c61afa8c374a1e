"""What the scheduler side tells the workers of a step. It is not changed after it was made."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Dict, List, Tuple

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorMetadata


def pack(numbers: List[int]) -> bytes:
    return array("I", numbers).tobytes()


def unpack(packed: bytes) -> List[int]:
    numbers = array("I")
    numbers.frombytes(packed)
    return numbers.tolist()


# Blocks and slots of each KV cache group but the first, for the layers of that group.
More = Tuple[Tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Load:
    """Slots to be copied into blocks of the engine; block and slot numbers are packed u32."""

    request_id: str
    hold: int
    generation: int
    asynchronous: bool
    blocks: bytes
    slots: bytes
    # By the machine's monotonic clock: the slots were its own by then.
    since: float
    more: More = ()


@dataclass(frozen=True)
class Save:
    """Blocks of the engine, of one KV cache group, to be copied into slots after the step."""

    request_id: str
    save: int
    generation: int
    blocks: bytes
    slots: bytes
    # As that of a load.
    since: float
    group: int = 0


@dataclass
class UCMConnectorMetadata(KVConnectorMetadata):  # type: ignore[misc]
    """One step."""

    loads: List[Load] = field(default_factory=list)
    saves: List[Save] = field(default_factory=list)
    # Requests that have ended; their blocks are kept until a worker says that nothing copies them.
    delayed: List[str] = field(default_factory=list)
    # Blocks of requests that lost them may be overwritten in this step.
    fences: bool = False
    # Blocks that are saved may be given to other requests in the next step.
    lets_go: bool = False
    # Nothing is computed in this step.
    empty: bool = False
    # Nothing is computed, and no request is left: the last step, if no request comes.
    last: bool = False
    # What was counted since the step before, for the engine's own statistics.
    counts: Dict[str, int] = field(default_factory=dict)


class _Idle(UCMConnectorMetadata):
    def __reduce__(self) -> str:
        # Pickled as this name, so that workers in other processes know it, too.
        return "IDLE"


# A step in which nothing is to be done, as most are.
IDLE = _Idle()
