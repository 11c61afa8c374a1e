/**
 * The store {@code Nfs}: device memory to and from files of a network file system in one stage,
 * through slots of pinned host memory. Transfers of device memory come in, tasks on staged host
 * memory go to {@link ucm.store.file}. It knows no other store.
 */
package ucm.store.nfs;
