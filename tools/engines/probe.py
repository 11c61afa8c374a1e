"""UCM's connector with loads in wrong places, and with its calls timed; see `tools/engines/run`."""

import json
import os
import statistics
import time
from collections import defaultdict

from no_connector import NoConnector
from ucm.integration.vllm.ucm_connector import UCMConnector
from ucm.staging import Staging

# What vLLM calls in each step, in whichever version; the first of a role begins a step.
CALLS = {
    "SCHEDULER": [
        "build_connector_meta",
        "update_connector_output",
        "has_pending_push_work",
        "has_pending_block_frees",
        "get_kv_connector_stats",
        "take_events",
    ],
    "WORKER": [
        "bind_connector_metadata",
        "handle_preemptions",
        "start_load_kv",
        "has_connector_metadata",
        "wait_for_layer_load",
        "save_kv_layer",
        "wait_for_save",
        "get_finished",
        "get_transfer_results",
        "get_block_ids_with_load_errors",
        "get_kv_connector_stats",
        "get_kv_connector_kv_cache_events",
        "build_connector_worker_meta",
        "clear_connector_metadata",
    ],
}
# Steps of each of the two.
SHOWN = 64

_load = Staging.load


def _shifted(self, layout, layers, slots, blocks):
    """Each block gets the bytes of the one before it. Blocks that only change places would not show:
    attention does not ask for the order of keys, and their positions are in them."""
    return _load(self, layout, layers, [*slots[:1], *slots[:-1]], blocks)


Staging.load = _shifted


class ProbedConnector(UCMConnector):
    """By turns a step's calls are timed here and on one that does nothing, which is asked first then: what a
    call costs whose code and data the computation before it has driven out of the processor's caches."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        role = self.role.name
        self._probe_empty = NoConnector(*arguments, **named)
        self._probe_turn = "ucm"
        self._probe_step = defaultdict(float)
        self._probe_steps = {"ucm": [], "empty": []}
        self._probe_inside = False
        self._probe_path = f"{os.environ['UCM_PROBE']}-{role}-{os.getpid()}.steps"
        for name in CALLS[role]:
            if hasattr(self, name) and hasattr(self._probe_empty, name):
                setattr(self, name, self._timed(name, name == CALLS[role][0]))

    def _timed(self, name, begins):
        ours, empty = getattr(self, name), getattr(self._probe_empty, name)

        def timed(*arguments, **named):
            if self._probe_inside:
                # A call within another is counted once.
                return ours(*arguments, **named)
            if begins:
                self._probe_end_step()
            call = ours if self._probe_turn == "ucm" else empty
            self._probe_inside = True
            begin = time.perf_counter_ns()
            try:
                found = call(*arguments, **named)
            finally:
                spent = time.perf_counter_ns() - begin
                self._probe_inside = False
            self._probe_step[name] += spent / 1000
            # What only the empty one wants to be asked changes nothing.
            return found if call is ours or name == "has_connector_metadata" else ours(*arguments, **named)

        return timed

    def _probe_end_step(self):
        steps = self._probe_steps[self._probe_turn]
        steps.append(dict(self._probe_step))
        self._probe_step.clear()
        self._probe_turn = "empty" if self._probe_turn == "ucm" else "ucm"
        if self._probe_turn == "ucm" and len(steps) % SHOWN == 0:
            # Most steps of decoding have no work: the median is one of those.
            found = {
                turn: {
                    "step": statistics.median(sum(one.values()) for one in some[-SHOWN:]),
                    "calls": {
                        name: statistics.median(one.get(name, 0.0) for one in some[-SHOWN:])
                        for name in CALLS[self.role.name]
                    },
                }
                for turn, some in self._probe_steps.items()
            }
            with open(self._probe_path, "w", encoding="utf-8") as file:
                json.dump({"role": self.role.name.lower(), **found}, file)
