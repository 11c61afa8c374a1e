/**
 * Copies between a GPU and the host: each of the driver's ways, and the pool of Cache, beside one plain copy
 * of pinned memory. A device goes in, results come out. It knows no command line.
 */
package ucm.bench.gpu;
