/**
 * {@code ucm trace}: commands that read, describe, change and make traces, and their HTML report.
 * Traces go in; tables, reports or traces come out. Simulations themselves are in {@code
 * ucm.lite}.
 */
package ucm.cli.trace;
