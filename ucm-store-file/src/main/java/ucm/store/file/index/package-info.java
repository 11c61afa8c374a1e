/**
 * What this process knows of blocks without asking the file system: which are present, and when
 * they were used. Ids go in, answers come out; it may be wrong about what others removed. It
 * makes no system call.
 */
package ucm.store.file.index;
