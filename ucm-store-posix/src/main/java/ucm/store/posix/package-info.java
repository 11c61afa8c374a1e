/**
 * The store {@code Posix}: host memory to and from files of a local or network file system. It
 * gives {@link ucm.store.file.FileStore} its name and its health check. It knows no other store.
 */
package ucm.store.posix;
