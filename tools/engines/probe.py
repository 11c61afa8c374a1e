"""UCM's connector with loads in wrong places, and with its calls timed; see `tools/engines/run`."""

import os
import statistics
import time

from ucm.integration.vllm.ucm_connector import UCMConnector
from ucm.staging import Staging

# What vLLM calls in each step, in whichever version; the first of a role begins a step.
CALLS = {
    "SCHEDULER": ["build_connector_meta", "update_connector_output", "has_pending_push_work"],
    "WORKER": [
        "bind_connector_metadata",
        "handle_preemptions",
        "start_load_kv",
        "wait_for_layer_load",
        "save_kv_layer",
        "wait_for_save",
        "get_finished",
        "get_transfer_results",
        "get_block_ids_with_load_errors",
        "get_kv_connector_stats",
        "clear_connector_metadata",
    ],
}
SHOWN = 64

_load = Staging.load


def _shifted(self, layout, layers, slots, blocks):
    """Each block gets the bytes of the one before it. Blocks that only change places would not show:
    attention does not ask for the order of keys, and their positions are in them."""
    return _load(self, layout, layers, [*slots[:1], *slots[:-1]], blocks)


Staging.load = _shifted


class ProbedConnector(UCMConnector):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        role = self.role.name
        self._ucm_steps, self._ucm_spent, self._ucm_depth = [], 0.0, 0
        path = f"{os.environ['UCM_PROBE']}-{role}-{os.getpid()}.steps"
        for name in CALLS[role]:
            if hasattr(self, name):
                setattr(self, name, self._timed(getattr(self, name), name == CALLS[role][0], role, path))

    def _timed(self, call, begins, role, path):
        def timed(*arguments, **named):
            if begins:
                self._ucm_end_step(role, path)
            self._ucm_depth += 1
            begin = time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                self._ucm_depth -= 1
                # A call within another is counted once.
                if self._ucm_depth == 0:
                    self._ucm_spent += time.perf_counter() - begin

        return timed

    def _ucm_end_step(self, role, path):
        self._ucm_steps.append(self._ucm_spent)
        self._ucm_spent = 0.0
        if len(self._ucm_steps) % SHOWN == 0:
            # Most steps of decoding have no work: the median is one of those.
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{role} {statistics.median(self._ucm_steps[-SHOWN:]) * 1e6:.2f}\n")
