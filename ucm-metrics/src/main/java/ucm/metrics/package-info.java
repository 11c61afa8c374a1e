/**
 * Prometheus: the registry in which stores and connectors count, the endpoint that answers
 * scrapes, and its configuration file. Counts go in, the text format comes out. It knows no
 * store.
 */
package ucm.metrics;
