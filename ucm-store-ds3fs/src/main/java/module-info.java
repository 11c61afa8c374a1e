/**
 * The store {@code Ds3fs}: host memory to and from 3FS, through USRBIO.
 *
 * @provides ucm.api.admin.HealthCheck for 3FS's library, its mounts and the shared memory it needs
 */
@org.jspecify.annotations.NullMarked
module ucm.store.ds3fs {
  requires com.sun.jna;
  requires static org.jspecify;
  requires org.slf4j;
  requires ucm.api;
  requires ucm.platform;
  requires ucm.store.file;

  provides ucm.api.admin.HealthCheck with
      ucm.store.ds3fs.Ds3fsHealthCheck;
  provides ucm.api.Store with
      ucm.store.ds3fs.Ds3fsStore;
}
