/**
 * What stores need of the machine they run on: system calls on files, queues of reads and writes, memory,
 * threads, and copies to and from memory of a device; and tables and eviction orders of blocks. It knows
 * no store.
 */
@org.jspecify.annotations.NullMarked
@SuppressWarnings("module") // The modules named below are built after this one.
module ucm.platform {
  requires com.carrotsearch.hppc;
  requires com.sun.jna;
  requires static org.jspecify;
  requires org.slf4j;
  requires transitive ucm.api;
  requires ucm.device;

  exports ucm.platform.device to
      ucm.store.cache,
      ucm.store.ds3fs,
      ucm.store.file,
      ucm.store.nfs,
      ucm.store.posix;
  exports ucm.platform.eviction to
      ucm.lite,
      ucm.store.cache,
      ucm.store.fake;
  exports ucm.platform.fault to
      ucm.pipeline,
      ucm.store.cache,
      ucm.store.file;
  exports ucm.platform.io to
      ucm.store.cache,
      ucm.store.ds3fs,
      ucm.store.file,
      ucm.store.nfs,
      ucm.store.posix;
  exports ucm.platform.libc to
      ucm.cli,
      ucm.server,
      ucm.store.cache,
      ucm.store.ds3fs,
      ucm.store.file,
      ucm.store.nfs,
      ucm.store.posix;
  exports ucm.platform.memory to
      ucm.server,
      ucm.store.cache,
      ucm.store.ds3fs,
      ucm.store.file,
      ucm.store.nfs,
      ucm.store.posix;
  exports ucm.platform.table to
      ucm.lite,
      ucm.store.cache,
      ucm.store.fake,
      ucm.store.file;
  exports ucm.platform.thread to
      ucm.cli,
      ucm.pipeline,
      ucm.server,
      ucm.store.cache,
      ucm.store.ds3fs,
      ucm.store.file,
      ucm.store.nfs,
      ucm.store.posix,
      ucm.store.s3;
}
