/**
 * Devices that hold an engine's KV cache: memory, streams, events, as a service that drivers
 * provide. Copies and events go in. Host memory is a device too; it knows no store.
 */
package ucm.device;
