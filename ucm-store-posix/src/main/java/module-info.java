/**
 * The store {@code Posix}: host memory to and from files; and what other stores share with it that keep
 * blocks in files, see {@link ucm.store.posix.FileStore}.
 */
// The modules it is exported to are compiled later.
@SuppressWarnings("module")
@org.jspecify.annotations.NullMarked
module ucm.store.posix {
  requires static org.jspecify;
  requires org.slf4j;
  requires ucm.api;
  requires ucm.store.common;

  exports ucm.store.posix to
      ucm.store.nfs,
      ucm.store.ds3fs;

  provides ucm.api.Store with
      ucm.store.posix.PosixStore;
}
