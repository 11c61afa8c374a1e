/**
 * What commands print: tables, JSON, CSV, progress, sizes and durations, and files written on the
 * way. Values go in, text comes out. It knows no command.
 */
package ucm.cli.output;
