"""Where a worker is among the ranks; set by the toy engine."""


class _Group:
    rank_in_group = 0
    world_size = 1


_TP = None


def get_tp_group():
    assert _TP is not None, "tensor parallel group is not initialized"
    return _TP


def set_tp_group(rank, size):
    global _TP
    _TP = _Group()
    _TP.rank_in_group = rank
    _TP.world_size = size
