/**
 * The store {@code Posix}: host memory to and from files.
 *
 * @provides ucm.api.admin.HealthCheck for the directories
 */
@org.jspecify.annotations.NullMarked
module ucm.store.posix {
  requires static org.jspecify;
  requires ucm.api;
  requires ucm.store.file;

  provides ucm.api.admin.HealthCheck with
      ucm.store.posix.PosixHealthCheck;
  provides ucm.api.Store with
      ucm.store.posix.PosixStore;
}
