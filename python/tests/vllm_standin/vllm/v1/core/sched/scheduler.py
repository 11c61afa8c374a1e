"""Only what a connector asks of the scheduler's class."""

from vllm import PROFILE


class Scheduler:
    if PROFILE >= (0, 16):

        def _free_request(self, request, delay_free_blocks=False):
            raise NotImplementedError

    else:

        def _free_request(self, request):
            raise NotImplementedError
