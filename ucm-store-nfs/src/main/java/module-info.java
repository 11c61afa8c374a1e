/**
 * The store {@code Nfs}: device memory to and from files, in one stage. It exports nothing.
 *
 * <p>What it has in common with {@code Posix} it has from there; its own are the tree of the original's
 * NFS store, the names of its keys, and the buffers between device and files.
 */
@org.jspecify.annotations.NullMarked
module ucm.store.nfs {
  requires static org.jspecify;
  requires org.slf4j;
  requires ucm.api;
  requires ucm.device;
  requires ucm.store.common;
  requires ucm.store.posix;

  provides ucm.api.Store with
      ucm.store.nfs.NfsStore;
}
