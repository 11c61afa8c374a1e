/**
 * Hit statistics, lite mode's status, recorded traces and metrics of the connector. Events of
 * requests go in, log lines and files come out. No decision is taken here.
 */
package ucm.pipeline.connector.statistics;
