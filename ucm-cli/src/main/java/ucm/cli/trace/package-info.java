/**
 * {@code ucm trace}: commands that read, describe and make traces, their HTML report, and the options of all.
 * Traces go in; tables, reports or traces come out. Simulations themselves are in {@code
 * ucm.lite}.
 */
package ucm.cli.trace;
