"""HiCache: its storages, the host pool, and the threads that use both."""
