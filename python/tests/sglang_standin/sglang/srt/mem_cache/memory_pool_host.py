"""The host pool: where each byte of a page lies, by layout and kind of attention."""

import random
import threading

import torch

POISON = 0x5A


class HostPool:
    """K and V of MHA, or the latent of MLA. Free memory is poisoned, so that a late write shows."""

    def __init__(
        self,
        layout,
        mla=False,
        page_size=4,
        pages=300,
        layers=3,
        heads=2,
        dim=8,
        dtype=torch.bfloat16,
        first=0,
    ):
        self.layout, self.mla, self.page_size, self.dtype = layout, mla, page_size, dtype
        self._itemsize = torch.empty(0, dtype=dtype).element_size()
        self.size = pages * page_size
        self.layer_num, self.head_num, self.head_dim = layers, 1 if mla else heads, dim
        self.start_layer, self.end_layer = first, first + layers
        inner = (self.head_num, dim)
        shape = {
            "layer_first": (layers, self.size, *inner),
            "page_first": (self.size, layers, *inner),
            "page_first_direct": (pages, layers, page_size, *inner),
            "page_head": (pages, self.head_num, page_size, layers, dim),
        }[layout]
        self.kv_buffer = torch.empty(shape if mla else (2, *shape), dtype=dtype)
        self._bytes = self.kv_buffer.view(torch.uint8)
        self._bytes.fill_(POISON)
        self._free = list(range(pages))
        self._lock = threading.Lock()

    # -- what a storage may use --------------------------------------------------------------------

    def get_size_per_token(self):
        return self.get_ksize_per_token() * (1 if self.mla else 2)

    def get_ksize_per_token(self):
        return self.layer_num * self.head_num * self.head_dim * self._itemsize

    def get_page_buffer_meta(self, indices):
        assert len(indices) % self.page_size == 0
        pointers, sizes = [], []
        for first in indices.tolist()[:: self.page_size]:
            parts = self._parts(first)
            if self.layout == "layer_first":
                # A piece for each layer, K and V by turns.
                parts = [piece for layer in zip(*parts) for piece in layer]
            for piece in parts:
                assert piece.is_contiguous()
                pointers.append(piece.data_ptr())
                sizes.append(piece.numel() * piece.element_size())
        return pointers, sizes

    def get_dummy_flat_data_page(self):
        elements = self.page_size * self.get_size_per_token() // self._itemsize
        return torch.zeros(elements, dtype=self.dtype)

    def get_data_page(self, index, flat=True):
        page = torch.stack(self._parts(int(index)))
        return page.flatten() if flat else page

    def set_from_flat_data_page(self, index, data_page):
        parts = self._parts(int(index))
        for part, bytes_of in zip(parts, data_page.chunk(len(parts))):
            part.copy_(bytes_of.reshape(part.shape))

    def _parts(self, first):
        """K and V of the page that begins at a token, or its latent."""
        assert first % self.page_size == 0
        tokens = slice(first, first + self.page_size)
        buffers = [self.kv_buffer] if self.mla else list(self.kv_buffer)
        if self.layout == "layer_first":
            return [buffer[:, tokens] for buffer in buffers]
        if self.layout == "page_first":
            return [buffer[tokens] for buffer in buffers]
        return [buffer[first // self.page_size] for buffer in buffers]

    # -- what the engine does ----------------------------------------------------------------------

    def alloc(self, pages, choice=random):
        """The tokens of some pages, in any order of pages."""
        with self._lock:
            choice.shuffle(self._free)
            taken, self._free = self._free[:pages], self._free[pages:]
        assert len(taken) == pages
        return torch.cat([torch.arange(i * self.page_size, (i + 1) * self.page_size) for i in taken])

    def free(self, indices):
        for first in indices.tolist()[:: self.page_size]:
            for part in self._parts(first):
                part.view(torch.uint8).fill_(POISON)
            with self._lock:
                self._free.append(first // self.page_size)

    def write(self, first, content):
        page = torch.frombuffer(bytearray(content), dtype=self.dtype)
        self.set_from_flat_data_page(first, page)

    def read(self, first):
        return self.get_data_page(first).view(torch.uint8).numpy().tobytes()

    def assert_unused(self):
        """Nothing was written to memory that is free, and all of it is."""
        assert len(self._free) * self.page_size == self.size
        assert bool((self._bytes == POISON).all())
