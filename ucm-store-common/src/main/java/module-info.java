/**
 * What the stores share: system calls on files, the files of blocks, worker threads, copies to and from
 * memory of a device.
 */
@org.jspecify.annotations.NullMarked
@SuppressWarnings("module") // The stores named below are built after this module.
module ucm.store.common {
  requires com.sun.jna;
  requires static org.jspecify;
  requires org.slf4j;
  requires transitive ucm.api;
  requires ucm.device;

  exports ucm.store.common to
      ucm.store.cache,
      ucm.store.ds3fs,
      ucm.store.nfs,
      ucm.store.posix;
}
