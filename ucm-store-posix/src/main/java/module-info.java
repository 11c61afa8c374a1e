/** The store {@code Posix}: host memory to and from files. */
@org.jspecify.annotations.NullMarked
module ucm.store.posix {
  requires static org.jspecify;
  requires org.slf4j;
  requires ucm.api;
  requires ucm.store.common;

  provides ucm.api.Store with
      ucm.store.posix.PosixStore;
}
