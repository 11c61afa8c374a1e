/**
 * Copies between memory of a device and host memory, queued on streams. Copies go in, completions
 * come out on the queue's own threads. It knows devices by {@link ucm.device.Device} only, and no
 * block.
 */
package ucm.platform.device;
