/**
 * What the stores share that keep blocks in files: the files themselves, the index of known blocks, look-ups,
 * space and eviction, the health of directories, and the administration of directories. It knows no store.
 */
@org.jspecify.annotations.NullMarked
@SuppressWarnings("module") // The stores named below are built after this module.
module ucm.store.file {
  requires static org.jspecify;
  requires org.slf4j;
  requires transitive ucm.api;
  requires ucm.platform;

  exports ucm.store.file to
      ucm.store.ds3fs,
      ucm.store.nfs,
      ucm.store.posix,
      ucm.store.s3;
  exports ucm.store.file.config to
      ucm.store.ds3fs,
      ucm.store.nfs,
      ucm.store.posix,
      ucm.store.s3;
  exports ucm.store.file.format to
      ucm.store.ds3fs,
      ucm.store.nfs,
      ucm.store.posix,
      ucm.store.s3;
  exports ucm.store.file.tier to
      ucm.store.ds3fs,
      ucm.store.nfs,
      ucm.store.posix,
      ucm.store.s3;
}
