/**
 * {@code ucm lite}: lite mode on a trace, and the status of engines in lite mode. Traces or
 * status files go in, hit rates come out. It moves no bytes.
 */
package ucm.cli.lite;
