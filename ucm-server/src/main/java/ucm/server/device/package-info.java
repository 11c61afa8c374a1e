/**
 * The device plane: opens a worker's KV cache on a GPU and copies blocks between it and the slots. Where it cannot,
 * the worker copies by itself. It knows neither holds nor requests.
 */
package ucm.server.device;
