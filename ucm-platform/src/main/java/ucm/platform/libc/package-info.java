/**
 * The C library through JNA: system calls on files, paths, vectors of memory, error numbers. Java
 * values go in, and results or a {@link ucm.platform.libc.FileException} come out. It knows no
 * block, no thread and no queue.
 */
package ucm.platform.libc;
