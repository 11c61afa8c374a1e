/**
 * The store {@code Nfs}: device memory to and from files, in one stage. It exports nothing.
 *
 * <p>It shares most of its code with the other stores of files; its own are the tree of the original's
 * NFS store, the names of its keys, and the buffers between device and files.
 *
 * @provides ucm.api.admin.HealthCheck for the directories
 */
@org.jspecify.annotations.NullMarked
module ucm.store.nfs {
  requires static org.jspecify;
  requires org.slf4j;
  requires ucm.api;
  requires ucm.device;
  requires ucm.platform;
  requires ucm.store.file;

  provides ucm.api.admin.HealthCheck with
      ucm.store.nfs.NfsHealthCheck;
  provides ucm.api.Store with
      ucm.store.nfs.NfsStore;
}
